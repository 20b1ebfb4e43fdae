# SPDX-License-Identifier: Apache-2.0
"""PyTorch, the one of the interpreter: https://github.com/pytorch/pytorch"""
from __future__ import annotations

import torch.nn.functional as F
from release import Release
from torch import Tensor

release = Release("torch", ("torch.nn.functional",))


def cross_entropy(logits: Tensor, label: Tensor, label_smoothing: float, reduction: str) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), label.flatten().long(), label_smoothing=label_smoothing,
                           reduction={"token_mean": "mean", "sum": "sum"}[reduction])
