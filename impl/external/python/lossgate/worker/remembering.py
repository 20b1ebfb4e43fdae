# SPDX-License-Identifier: Apache-2.0
"""What was worked out once is kept."""

from __future__ import annotations

from typing import Any

CACHED = 512


def remember(cache: dict, key: Any, value: Any) -> Any:
    """Keeps the value; a cache that has grown long begins anew."""
    if len(cache) > CACHED:
        cache.clear()
    cache[key] = value
    return value
