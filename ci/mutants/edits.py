# SPDX-License-Identifier: Apache-2.0
"""Changes of a text, some within others, made all at once."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """Text that takes the place of bytes [start, end) of a file."""

    start: int
    end: int
    depth: int  # of the expression in the tree: an outer one opens first and closes last
    text: str  # {} stands for the number of the mutant


def rewritten(text: bytes, edits: list[tuple[int, Edit]]) -> bytes:
    """The text with the edits of several mutants, which may lie within each other."""
    # At one place what closes comes before what opens; inner ones close first, outer ones open first.
    def order(item: tuple[int, Edit]) -> tuple:
        edit = item[1]
        closes = edit.start == edit.end and edit.text.startswith(")")
        return (edit.start, 0 if closes else 1, -edit.depth if closes else edit.depth, item[0])

    parts, at = [], 0
    for number, edit in sorted(edits, key=order):
        parts += [text[at:edit.start], edit.text.replace("{}", str(number)).encode()]
        at = max(at, edit.end)
    return b"".join([*parts, text[at:]])
