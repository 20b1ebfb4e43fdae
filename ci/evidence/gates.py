# SPDX-License-Identifier: Apache-2.0
"""Gates with other seeds: from what each counted to figures and a table."""

from __future__ import annotations

from collections import Counter

from figure import Figure, table
from proportion import few, most

GOAL = 10**6


def section(units: list[dict]) -> tuple[list[Figure], list[str]]:
    red = sum(u["status"] != 0 for u in units)
    cases, asked = Counter(), Counter()
    for u in units:
        cases.update(u["cases"])
        asked.update(u["asked"])
    alarms, accused = Counter(), Counter()
    for u in units:
        for name, labels in u["violated"].items():
            alarms.update(labels)
            accused[name] += len(labels)
    killed, kills = sum(u["killed"] for u in units), sum(u["kills"] for u in units)
    figures = [
        Figure("gates with other seeds that are red", "0 of 200", few(red, len(units)), red == 0 and len(units) >= 200),
        Figure("gates with other seeds that accuse a sound implementation", "0", few(sum(bool(u["violated"]) for u in units),
                                                                                    len(units)), not alarms),
        Figure("sound answers of those", "", f"{asked.total():,}", None),
        Figure("cases of a loss and dtype of those, at least", f">= {GOAL:,}", f"{min(cases.values(), default=0):,}",
               min(cases.values(), default=0) >= GOAL),
        Figure("kills that those gates owe", "", most(killed, kills), None),
    ]
    body = ["Cases of each loss and dtype, and how often a sound implementation was asked one.", "",
            *table(("loss and dtype", "cases", "asked", "cells violated"),
                   [(name, f"{cases[name]:,}", f"{asked[name]:,}", accused[name]) for name in sorted(cases)])]
    if alarms:
        body += ["", "Violated:", "", *table(("where", "gates"), sorted(alarms.items()))]
    return figures, body
