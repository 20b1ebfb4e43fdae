# SPDX-License-Identifier: Apache-2.0
"""How tensors lie in memory."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple, Optional

from lossgate.worker.pytorch import torch


class Place(NamedTuple):
    """Where the elements of a field lie in memory that holds more."""

    size: int  # elements of all
    strides: tuple
    offset: int


@functools.lru_cache(maxsize=1024)
def place_of(shape: tuple, layout: str, by_sequence: bool = True) -> Optional[Place]:
    if not shape or layout == "contiguous":
        return None
    if layout == "padded_rows":
        return Place(math.prod(shape[:-1]) * (shape[-1] + 3), _strides((*shape[:-1], shape[-1] + 3)), 0)
    if layout == "transposed" and len(shape) >= 2:
        rows, columns, *rest = _strides((shape[1], shape[0], *shape[2:]))
        return Place(math.prod(shape), (columns, rows, *rest), 0)
    if layout == "transposed" and by_sequence:  # no bias
        return Place(2 * shape[0], (2,), 0)
    if layout == "sliced" and len(shape) >= 2:
        axis = max(len(shape) - 2, 1)
        wider = (*shape[:axis], shape[axis] + 1, *shape[axis + 1:])
        return Place(math.prod(wider), _strides(wider), int(len(shape) == 2))
    return Place(math.prod(shape) + 1, _strides(shape), 1)


def _strides(shape: tuple) -> tuple:
    """Those of a contiguous tensor."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def laid_out(tensor: torch.Tensor, place: Optional[Place]) -> torch.Tensor:
    """The same values where they shall lie; beside them lies a number that would show."""
    if place is None:
        return tensor.clone()
    # as_strided_ makes no view: what is copied into a view costs the backward a copy of all of it.
    around = torch.full((place.size,), 77, dtype=tensor.dtype, device=tensor.device)
    return around.as_strided_(tensor.shape, place.strides, place.offset).copy_(tensor)


def expanded(tensor: torch.Tensor) -> Optional[torch.Tensor]:
    """The same values, the first of each sequence along it (stride 0), where it has the same bits throughout; behind
    them lies a number that would show. Not of rows of logits: who reads those may want them dense."""
    if tensor.dim() != 2 or tensor.shape[-1] < 2 or tensor.numel() == 0:
        return None
    raw = tensor.unsqueeze(-1).view(torch.uint8)
    if not bool((raw == raw[..., :1, :]).all()):
        return None
    return laid_out(tensor[:, :1], Place(tensor.numel(), (1, 1), 0)).expand(tensor.shape)
