# SPDX-License-Identifier: Apache-2.0
"""What a trainer makes of the terms of a loss that is returned position by position."""

from __future__ import annotations

from typing import Any, Optional

from lossgate.worker.conversion import number_of
from lossgate.worker.layout import laid_out, place_of
from lossgate.worker.pytorch import torch
from lossgate.worker.result import returned
from lossgate.worker.trouble import BadResult, Trouble


class Reduction:
    """The reduction of a step, by the counts of the whole step: summed over micro-batches it is the loss."""

    def __init__(self, metadata: dict, subject: str, outputs: list[str], layout: str) -> None:
        self.name = metadata.get("reduction", "")
        self.subject = subject
        self.outputs = outputs  # of which the first are the terms
        self.layout = layout  # of the gradient that comes into the terms
        count = {"token_mean": "total_tokens", "sequence_mean": "total_sequences",
                 "seq_mean_token_sum_norm": "total_sequences", "sum_over_items": "option.num_items"}.get(self.name)
        if count is None and self.name != "sum":
            raise Trouble(f"a per-token loss has no reduction {self.name!r}")
        self.count = max(1, number_of(metadata.get(count, "1"))) if count else 1
        self.length = number_of(metadata.get("option.max_length", "1"))

    def __call__(self, result: Any, counts: Any, rows: Optional[slice] = None) -> Any:
        """Of some sequences alone, after all of them: their part of it."""
        terms = self._terms(result)
        if terms.shape != counts.shape:
            raise BadResult(f"{self.subject} returned a tensor of shape {list(terms.shape)}, where `returns = "
                            f"\"per_token\"` has one number for each position, {list(counts.shape)}")
        if rows is None and terms.requires_grad and self.layout != "contiguous":
            place = place_of(terms.shape, self.layout)
            terms.register_hook(lambda gradient: laid_out(gradient, place))
        # Where all count a trainer has no mask, and autograd expands one number to all terms.
        if not counts.all():
            terms = torch.where(counts, terms, torch.zeros_like(terms))
        wide = terms if terms.dtype == torch.float64 else terms.to(torch.float32)
        if rows is not None:
            wide, counts = wide[rows], counts[rows]
        if self.name == "sequence_mean" and wide.dim() == 2:
            wide = wide.sum(1) / counts.sum(1).clamp(min=1)
        loss = wide.sum() / self.count
        if self.name == "seq_mean_token_sum_norm":
            loss = loss / self.length
        others = {name: returned(result, name) for name in self.outputs[1:]}
        return {"loss": loss, self.outputs[0]: terms, **others} if self.outputs else loss

    def _terms(self, result: Any) -> Any:
        if not isinstance(result, torch.Tensor) and isinstance(getattr(result, "loss", None), torch.Tensor):
            return result.loss
        if isinstance(result, (tuple, list)) and result:
            result = result[0]
        if isinstance(result, dict):
            result = result.get("loss")
        if not isinstance(result, torch.Tensor) or not result.dtype.is_floating_point:
            raise BadResult(f"{self.subject} returned no tensor of numbers, one for each position")
        return result
