# SPDX-License-Identifier: Apache-2.0
"""A fault of a release, shown by a call of the release's own function and by nothing of lossgate's checks."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable, NamedTuple

import torch
from torch import Tensor

sys.path.append(str(Path(__file__).resolve().parents[2] / "impl/external/upstream"))
from release import Release  # noqa: E402,F401  executes single files of a release, and does nothing else


class Seen(NamedTuple):
    """Whether a release shows the fault, and by which numbers."""

    wrong: bool
    numbers: str


class Fault(NamedTuple):
    name: str
    title: str
    shown_by: tuple  # PROJECT==VERSION
    gone_from: tuple  # neighbours without it, which the same call must tell apart
    far: bool  # takes numbers that no healthy run has
    show: Callable[[], Seen]


FAULTS: dict = {}


def fault(name: str, title: str, shown_by: str, gone_from: str = "", far: bool = False) -> Callable:
    """Registers a function; `name` is how JUDGED.md refers to the fault, releases stand apart by a space."""

    def register(show: Callable[[], Seen]) -> Callable[[], Seen]:
        if name in FAULTS:
            raise ValueError(f"two faults are called {name}")
        FAULTS[name] = Fault(name, title, tuple(shown_by.split()), tuple(gone_from.split()), far, show)
        return show

    return register


def leaf(*values: object) -> Tensor:
    """A tensor that the loss is differentiated for."""
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)


def slope(loss: Tensor, given: Tensor) -> Tensor:
    """The gradient; 0 where the loss does not hang on `given`."""
    found = torch.autograd.grad(loss, given, allow_unused=True)[0] if loss.requires_grad else None
    return torch.zeros_like(given) if found is None else found


def shown(tensor: Tensor) -> str:
    """A tensor in one line."""
    texts = [f"{value:.6g}" for value in tensor.detach().flatten().tolist()]
    return texts[0] if tensor.dim() == 0 else "[" + ", ".join(texts) + "]"


def not_finite(loss: Tensor, given: Tensor, formula: str) -> Seen:
    """For inputs whose loss and gradient are finite by the formula."""
    gradient = slope(loss, given)
    wrong = not (loss.isfinite().all() and gradient.isfinite().all())
    return Seen(wrong, f"loss {shown(loss)}, gradient {shown(gradient)}; by the formula {formula}")


def split(whole: Tensor, parts: Tensor) -> Seen:
    """The loss of a step in one batch and in two, each added up as the release does."""
    wrong = not torch.allclose(whole, parts, rtol=1e-4, atol=0)
    return Seen(wrong, f"one batch {shown(whole)}, two micro-batches {shown(parts)}")


# Two micro-batches with 1 and 5 valid tokens; each term is 5 in the first and 1 in the second. The mean is 5/3, the
# mean of means 3.
MASK = torch.tensor([[1, 0, 0, 0, 0], [1, 1, 1, 1, 1]])
TERMS = torch.tensor([[5.0] * 5, [1.0] * 5])


def halves(of: Callable[[slice], Tensor]) -> Tensor:
    """Two micro-batches whose losses are divided by their number."""
    return (of(slice(0, 1)) + of(slice(1, 2))) / 2


FAR = 2.6e19  # its square is beyond f32, the half of it is not
SQUARE = "0.5 * d * d squares first: inf where the half of it fits"
