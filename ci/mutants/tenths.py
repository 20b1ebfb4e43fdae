# SPDX-License-Identifier: Apache-2.0
"""All places in ten parts of about the same size, none of which has a place of another: who asks one after the other has asked all.

A place stays in its part when code elsewhere changes.
"""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Iterable

PARTS = 10


def tenths(places: Iterable[tuple[str, str, str]]) -> list[int]:
    """The part of each, from 1 on. A place is its file, its change and its line's text, and which of those it is."""
    seen: Counter = Counter()
    parts = []
    for place in places:
        seen[place] += 1
        parts.append(1 + zlib.crc32("\n".join((*place, str(seen[place]))).encode()) % PARTS)
    return parts
