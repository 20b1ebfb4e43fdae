# SPDX-License-Identifier: Apache-2.0
"""`as shifted`: tensors for a function that moves labels by one position itself."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional

from lossgate.worker.conversion import IGNORED_LABEL
from lossgate.worker.pytorch import torch

SHIFTED = "shifted"
# What is computed at a position, before its token is known, as whatever has more axes is; all else is said of a token.
_OF_POSITIONS = ("logit", "hidden_state", "value")


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
        """Whether the position that was added is as it was; a NaN is as another."""
        added, meant = self.added(tensor.detach()), self._extra(self.own(tensor).detach())
        return bool(((added == meant) | ((added != added) & (meant != meant))).all())

    def added(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.narrow(1, 0 if self.ahead else tensor.shape[1] - 1, 1)

    def stray(self, gradient: torch.Tensor) -> Optional[tuple[int, float]]:
        """In which sequence the loss is said to depend on the position that was added, and how much. What is no number
        says nothing of that."""
        added = self.added(gradient.detach())
        found = ((added != 0) & added.isfinite()).nonzero()
        return (int(found[0][0]), added[tuple(found[0])].item()) if len(found) else None

    def left_out(self) -> str:
        """What becomes of the position that was added, where a function shifts."""
        if self.ahead:
            return "the first position, which no logits predict: a function that shifts leaves it out by [:, 1:]"
        return "the last position, which no label follows: a function that shifts leaves it out by [:, :-1]"

    def index(self, at: int, shape: tuple) -> int:
        """Where an element of the field lies among those that were handed over."""
        each = math.prod(shape[2:])
        return at + (at // (shape[1] * each) + int(self.ahead)) * each


def shift_of(field: dict) -> Optional[Shift]:
    """How a field is shifted; none where it does not lie along positions. Labels, masks, log-probs, advantages and other
    numbers of a token lie as the tokens do, of which nothing predicts the first."""
    if field["axes"][:2] != ["sequences", "tokens"]:
        return None
    known = {"label": Shift(True, IGNORED_LABEL), "mask": Shift(True, 0)}
    behind = len(field["axes"]) > 2 or field["quantity"] in _OF_POSITIONS
    return known.get(field["role"], Shift(not behind, 0))


def is_shifted(source: Any) -> bool:
    return SHIFTED in [word.strip() for word in source.split(" as ")[1:]]
