# SPDX-License-Identifier: Apache-2.0
"""Generators of random numbers that other code draws from: a call may draw, and may not begin anew."""

from __future__ import annotations

import pickle
import random
import sys
from typing import Any, Callable, NamedTuple

from lossgate.worker.frames import bits
from lossgate.worker.pytorch import torch


class _Generator(NamedTuple):
    shown: str  # the call that reads it
    read: Callable[[], Any]
    draw: Callable[[], Any]


def _draw_of_torch() -> None:
    torch.rand(1, device="cpu", dtype=torch.float32)  # whatever the defaults are


def _generators() -> list[_Generator]:
    found = [_Generator("torch.get_rng_state()", lambda: bits(torch.get_rng_state()), _draw_of_torch),
             _Generator("random.getstate()", random.getstate, random.random)]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found.append(_Generator("numpy.random.get_state()", lambda: pickle.dumps(numpy.random.get_state(legacy=False)),
                                numpy.random.random))
    return found


class Generators:
    """Whether calls leave a generator where it was left before, wherever it stood when they began. Who draws as much
    each time leaves it elsewhere, and who puts it back leaves it where it stood."""

    def __init__(self) -> None:
        self._generators = _generators()
        self._left: list[tuple] = []

    def called(self, call: Callable[[], Any]) -> Any:
        for generator in self._generators:
            generator.draw()
        result = call()
        self._left.append(tuple(generator.read() for generator in self._generators))
        return result

    def begun_anew(self) -> list[str]:
        """Which are, of two calls or more: `torch.get_rng_state() is as another call left it`."""
        return [f"{generator.shown} is as another call left it"
                for generator, *left in zip(self._generators, *self._left) if all(state == left[0] for state in left)]
