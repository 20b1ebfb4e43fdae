# SPDX-License-Identifier: Apache-2.0
"""`as shifted`: tensors for a function that moves labels by one position itself."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional

from lossgate.worker.conversion import IGNORED_LABEL
from lossgate.worker.pytorch import torch

SHIFTED = "shifted"


class Shift(NamedTuple):
    """One position more: behind the others, where nothing is left to predict, or ahead of them, which nobody predicts.
    So that the field is what is left after the function's own `[:, :-1]` or `[:, 1:]`."""

    ahead: bool
    value: int

    def longer(self, shape: tuple) -> tuple:
        return (shape[0], shape[1] + 1, *shape[2:])

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        extra = tensor.new_full((tensor.shape[0], 1, *tensor.shape[2:]), self.value)
        return torch.cat([extra, tensor] if self.ahead else [tensor, extra], dim=1)

    def own(self, tensor: torch.Tensor) -> torch.Tensor:
        """The field's positions of what was handed over."""
        return tensor.narrow(1, int(self.ahead), tensor.shape[1] - 1)

    def kept(self, tensor: torch.Tensor) -> bool:
        """Whether the position that was added is as it was."""
        extra = tensor.detach().narrow(1, 0 if self.ahead else tensor.shape[1] - 1, 1)
        return bool((extra == self.value).all())

    def index(self, at: int, shape: tuple) -> int:
        """Where an element of the field lies among those that were handed over."""
        each = math.prod(shape[2:])
        return at + (at // (shape[1] * each) + int(self.ahead)) * each


def shift_of(field: dict) -> Optional[Shift]:
    """How a field is shifted; none where a function that shifts has no use for it."""
    if field["axes"][:2] != ["sequences", "tokens"]:
        return None
    known = {"label": Shift(True, IGNORED_LABEL), "mask": Shift(True, 0)}
    return known.get(field["role"], Shift(False, 0) if len(field["axes"]) > 2 else None)


def is_shifted(source: Any) -> bool:
    return SHIFTED in [word.strip() for word in source.split(" as ")[1:]]
