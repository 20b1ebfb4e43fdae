# SPDX-License-Identifier: Apache-2.0
"""Our own code, changed one place at a time: from what the tests noticed to figures and tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from figure import Figure, table
from proportion import most, percent

REASONS = Path(__file__).parents[1] / "mutants" / "explained.txt"
GOAL = 0.95


def reasons(text: str) -> dict[tuple[str, str, str], str]:
    """`FILE | CHANGE | LINE | REASON`, where LINE is the line's own text: numbers of lines do not last."""
    found = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            file, change, rest = (part.strip() for part in line.split(" | ", 2))
            code, reason = rest.rsplit(" | ", 1)  # the code may have its own
            found[file, change, code] = reason
    return found


def section(units: list[dict]) -> tuple[list[Figure], list[str]]:
    known = reasons(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}
    alive = [u for u in units if not u["killed_by"]]
    killed = len(units) - len(alive)
    explained = [known.get((u["file"], u["change"], u["code"]), "") for u in alive]
    # The mutation score of DeMillo, Lipton and Sayward (Computer 11, 1978): without what is no change to anybody.
    noticeable = len(units) - sum(map(bool, explained))
    figures = [
        Figure("changes of our own code that our tests notice, of those that a test can notice", f">= {percent(GOAL)}",
               most(killed, noticeable), killed >= GOAL * noticeable),
        Figure("of all changes", "", most(killed, len(units)), None),
        Figure("changes that were tried", ">= 200", f"{len(units)}", len(units) >= 200),
        Figure("of those not noticed: explained", "all", most(sum(map(bool, explained)), len(alive)) if alive else "none",
               all(explained)),
    ]
    kinds = [(kind, len(of), sum(u["killed_by"] is not None for u in of)) for kind in sorted({u["kind"] for u in units})
             for of in [[u for u in units if u["kind"] == kind]]]
    ways = Counter("it ended, or took too long" if any(word in u["killed_by"] for word in (": signal", ": time"))
                   else u["killed_by"].split(":")[0] for u in units if u["killed_by"])
    body = ["Noticed by: " + ", ".join(f"{name} {count}" for name, count in ways.most_common()) + ".", "",
            *table(("kind of change", "tried", "noticed"), kinds), "", "Not noticed:", "",
            *table(("place", "change", "line", "why"),
                   [(f"{u['file']}:{u['line']}", f"`{u['change']}`", f"`{u['code']}`", why or "**unexplained**")
                    for u, why in zip(alive, explained)])]
    return figures, body
