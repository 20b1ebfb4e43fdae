# SPDX-License-Identifier: Apache-2.0
"""One executed operation with its values, which can be asked again with others."""

from __future__ import annotations

import math
from typing import Any, Iterator, NamedTuple, Optional

from lossgate.worker.elements import aligned, bad_elements
from lossgate.worker.place import Place
from lossgate.worker.pytorch import torch


def replaced(tree: Any, values: Iterator) -> Any:
    """The arguments with each tensor exchanged, in order."""
    if isinstance(tree, torch.Tensor):
        return next(values)
    if isinstance(tree, (list, tuple)):
        return type(tree)([replaced(item, values) for item in tree])
    if isinstance(tree, dict):
        return {key: replaced(item, values) for key, item in tree.items()}
    return tree


def tensors_in(tree: Any) -> Iterator[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from tensors_in(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from tensors_in(item)


def scalars_in(tree: Any) -> Iterator[float]:
    if isinstance(tree, (int, float)) and not isinstance(tree, bool):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from scalars_in(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from scalars_in(item)


class Operation:
    """One executed operation with the values that it read and wrote."""

    def __init__(self, function: Any, arguments: tuple, sources: list, place: Optional[Place]) -> None:
        self.function = function
        self.arguments = arguments
        self.operands = [tensor.detach().clone() for tensor in tensors_in(arguments)]
        self.sources = sources
        self.place = place
        self.results: list[torch.Tensor] = []
        self.keys: list[tuple] = []
        self.kept: Any = None  # keeps the memory, so that no later tensor takes its place
        self.before: Any = None  # for what is written in place: the operation before

    @property
    def name(self) -> str:
        return self.function.__name__.split(".")[0].strip("_")

    def again(self, operands: list) -> list[torch.Tensor]:
        args, kwargs = replaced(self.arguments, iter([tensor.clone() for tensor in operands]))
        return list(tensors_in(self.function(*args, **kwargs)))

    def makes_sentinels(self) -> bool:
        """Writes an infinity that stands in the source text."""
        given = [value for value in scalars_in(self.arguments) if not math.isfinite(value)]
        return bool(given) or not self.operands

    def bears(self, which: int, at: int, operands: list) -> bool:
        return not bool(torch.isfinite(self.again(operands)[which].reshape(-1)[at]))

    def bears_the_same(self, which: int, at: int, operands: list) -> bool:
        """A NaN for a NaN: where sound operands give an infinity, one that is unsound brought the NaN."""
        found = self.again(operands)[which].reshape(-1)[at]
        return bool(found.isnan() if self.results[which].reshape(-1)[at].isnan() else ~torch.isfinite(found))

    def responsible(self, which: int, at: int) -> list[tuple[int, int]]:
        """The non-finite operand elements without which this result would be finite; none where it is born here."""
        bad = [bad_elements(operand) for operand in self.operands]
        if not any(len(elements) for elements in bad):
            return []
        healthy = [self._mended(operand, elements) for operand, elements in zip(self.operands, bad)]
        try:
            if self.bears_the_same(which, at, healthy):
                return []
            found = []
            for index, (operand, elements) in enumerate(zip(self.operands, bad)):
                near = aligned(at, tuple(self.results[which].shape), operand)
                order = [element for element in elements.tolist() if element == near] or elements.tolist()[:64]
                for element in order:  # which of them suffices to spoil the result
                    spoilt = list(healthy)
                    rest = elements[elements != element]
                    spoilt[index] = self._mended(operand, rest)
                    if self.bears(which, at, spoilt):
                        found.append((index, element))
                        break
        except Exception:  # an operation that cannot be repeated: take what is aligned, or any
            found = []
        return found or [(index, int(elements[0])) for index, elements in enumerate(bad) if len(elements)]

    @staticmethod
    def _mended(operand: torch.Tensor, elements: torch.Tensor) -> torch.Tensor:
        if not len(elements):
            return operand
        whole = operand.contiguous().clone()
        whole.view(-1)[elements] = 0.5  # inside the domain of log, sqrt, atanh, ...
        return whole


class Birth(NamedTuple):
    operation: Operation
    which: int
    at: int
