# SPDX-License-Identifier: Apache-2.0
"""What a page says of a measurement, and how it sets it out."""

from __future__ import annotations

import math
from typing import Iterable, NamedTuple, Optional, Sequence


class Figure(NamedTuple):
    name: str
    goal: str
    measured: str
    met: Optional[bool]  # None: nothing was asked of it

    @property
    def verdict(self) -> str:
        return {True: "yes", False: "**no**", None: ""}[self.met]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A Markdown table; text that would end a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]


def median(values: Sequence[float]) -> float:
    """The lower one of an even number, so that it is one of them."""
    return sorted(values)[(len(values) - 1) // 2] if values else math.nan


def power_of_two(size: float) -> str:
    return f"2^{math.log2(size):.1f}"
