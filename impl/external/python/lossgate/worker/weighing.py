# SPDX-License-Identifier: Apache-2.0
"""The loss of a function that returns outputs, one number for each position: what comes into each from above weighs it."""

from __future__ import annotations

from typing import Any, Callable

from lossgate.worker.layout import laid_out, place_of
from lossgate.worker.pytorch import torch
from lossgate.worker.result import outputs_of
from lossgate.worker.trouble import BadResult


class Weighing:
    """The sum of weight x output over the positions that count, so that the weights are the gradients of the outputs."""

    def __init__(self, subject: str, weights: dict[str, str], layout: str) -> None:
        self.subject = subject
        self.weights = weights  # output to the field that weighs it
        self.layout = layout  # of the gradients that come into the outputs

    def __call__(self, result: Any, counts: Any, given: Callable[[str], Any]) -> dict:
        """With the outputs, 0 where nothing counts; `given` are the fields by their names."""
        found = outputs_of(result, self.subject, list(self.weights))
        if not isinstance(found, dict):
            raise BadResult(f"{self.subject} returned no tensors; return {', '.join(self.weights)}")
        outputs = {name: self._masked(name, found[name], counts) for name in self.weights}
        terms = 0.0
        for name, output in outputs.items():
            wide = torch.float64 if output.dtype == torch.float64 else torch.float32
            weight = given(self.weights[name]).to(wide)
            # Of weight 0 is nothing, be it the log-prob of an impossible token.
            heavy = counts & (weight != 0)
            terms = terms + (torch.where(heavy, output, torch.zeros_like(output)).to(wide) *
                             torch.where(heavy, weight, torch.zeros_like(weight)))
        return {"loss": terms.sum(), **outputs}

    def _masked(self, name: str, output: Any, counts: Any) -> Any:
        if not isinstance(output, torch.Tensor) or not output.dtype.is_floating_point or output.shape != counts.shape:
            what = f"of shape {list(output.shape)}" if isinstance(output, torch.Tensor) else "that is no tensor"
            raise BadResult(f"{self.subject} returned {name!r} {what}, where `returns = \"outputs\"` has one number for "
                            f"each position, {list(counts.shape)}")
        if output.requires_grad and self.layout != "contiguous":
            place = place_of(output.shape, self.layout)
            output.register_hook(lambda gradient: laid_out(gradient, place))
        return torch.where(counts, output, torch.zeros_like(output))
