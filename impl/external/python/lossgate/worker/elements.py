# SPDX-License-Identifier: Apache-2.0
"""Single numbers of tensors: which are not finite, what stands at the same place elsewhere, how they read."""

from __future__ import annotations

import math
from typing import Any, Optional

from lossgate.worker.pytorch import torch


def number_text(value: Any) -> str:
    return f"{float(value) + 0.0:.6g}"  # -0 reads as 0


def bad_elements(tensor: torch.Tensor) -> torch.Tensor:
    """Flat indices of the non-finite elements, NaN first."""
    flat = tensor.detach().reshape(-1)
    if not flat.dtype.is_floating_point:
        return torch.empty(0, dtype=torch.int64)
    return torch.cat([flat.isnan().nonzero(), flat.isinf().nonzero()]).reshape(-1)


def aligned(flat_index: int, shape: tuple, operand: torch.Tensor) -> Optional[int]:
    """Flat index of the element of `operand` that broadcasting puts at `flat_index` of `shape`."""
    if operand.dim() == len(shape) - 1 and tuple(operand.shape) != shape[1:]:
        # A reduction without keepdim: the axis that is missing.
        for axis in range(len(shape) - 1, -1, -1):
            if tuple(operand.shape) == shape[:axis] + shape[axis + 1:]:
                inner = math.prod(shape[axis + 1:])
                return flat_index // (inner * shape[axis]) * inner + flat_index % inner
    if operand.dim() > len(shape):
        return None
    result, stride = 0, 1
    rest = flat_index
    for back in range(1, len(shape) + 1):
        at = rest % shape[-back] if shape[-back] else 0
        rest //= shape[-back] or 1
        if back <= operand.dim():
            extent = operand.shape[-back]
            if extent not in (1, shape[-back]):
                return None
            result += (at if extent != 1 else 0) * stride
            stride *= extent
    return result


def coordinates(flat_index: int, shape: tuple) -> list[int]:
    found = []
    for extent in reversed(shape):
        found.insert(0, flat_index % extent)
        flat_index //= extent
    return found


def extent_text(tensor: torch.Tensor) -> str:
    values = tensor.reshape(-1)
    if values.numel() == 0:
        return "of no element"
    if values.numel() <= 3:
        return ", ".join(number_text(value) for value in values.tolist())
    return f"{number_text(values.min())} to {number_text(values.max())}"
