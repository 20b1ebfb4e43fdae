# SPDX-License-Identifier: Apache-2.0
"""Small batches for every fused loss, and the same loss from the LibTorch operators, which compute in f64."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "torch"))
from operator_calls import VARIANTS, arguments  # noqa: E402

Outputs = tuple[torch.Tensor, ...]


def batches(dtype: torch.dtype, device: str = "cpu") -> dict[str, tuple[list[torch.Tensor], dict[str, int]]]:
    """Of each loss: its tensors, and the counts of the step. The last position is masked."""
    plain = arguments(dtype)
    given = {name: (plain[name][0], plain[name][2]) for name in ("grpo", "value_clip", "log_prob", "jsd", "sparse_jsd")}
    logits, label = plain["log_prob"][0]
    given["logits_grpo"] = ([logits, label, *plain["grpo"][0][1:4]], plain["grpo"][2])
    return {name: ([tensor.to(device) for tensor in tensors], counts) for name, (tensors, counts) in given.items()}


def options(loss: str) -> list[dict[str, Any]]:
    if loss == "logits_grpo":
        return [{}, {"temperature": 0.7, "level": "sequence"}, *VARIANTS["grpo"]]
    return [{}, *VARIANTS[loss]]


def in_f64(loss: str) -> Callable[..., Outputs]:
    operators = torch.ops.lossgate
    if loss != "logits_grpo":
        return getattr(operators, loss)

    def from_logits(logits, label, old, reference, advantage, temperature=1.0, **rest):
        log_prob, _ = operators.log_prob(logits, label, temperature=temperature)
        return operators.grpo(log_prob, old, reference, advantage, label != -100, **rest)

    return from_logits


def wide(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.detach().double().cpu() if tensor.is_floating_point() else tensor.cpu() for tensor in tensors]
