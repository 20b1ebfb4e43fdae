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
    nothing: int  # what stands for no token

    def longer(self, shape: tuple) -> tuple:
        return (shape[0], shape[1] + 1, *shape[2:])

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        extra = self._extra(tensor)
        return torch.cat([extra, tensor] if self.ahead else [tensor, extra], dim=1)

    def _extra(self, tensor: torch.Tensor) -> torch.Tensor:
        """Ahead, what the next one is: the first token of a row that begins with one counts, unless somebody shifts. So
        does what is behind, which is not 0 for whoever goes by all positions."""
        if self.ahead and tensor.shape[1]:
            return tensor.detach()[:, :1]
        value = self.nothing if self.ahead else 0.5 if tensor.is_floating_point() else 0
        return tensor.new_full((tensor.shape[0], 1, *tensor.shape[2:]), value)

    def own(self, tensor: torch.Tensor) -> torch.Tensor:
        """The field's positions of what was handed over."""
        return tensor.narrow(1, int(self.ahead), tensor.shape[1] - 1)

    def kept(self, tensor: torch.Tensor) -> bool:
        """Whether the position that was added is as it was."""
        return bool((self.added(tensor.detach()) == self._extra(self.own(tensor))).all())

    def added(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.narrow(1, 0 if self.ahead else tensor.shape[1] - 1, 1)

    def touches(self, gradient: torch.Tensor) -> bool:
        """Whether the loss is said to depend on the position that was added. What is no number says nothing of that."""
        added = self.added(gradient)
        return bool(((added != 0) & added.isfinite()).any())

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
