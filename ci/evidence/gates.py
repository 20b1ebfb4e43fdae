# SPDX-License-Identifier: Apache-2.0
"""Gates with other seeds: from what each counted to what is kept of them, figures and tables."""

from __future__ import annotations

from collections import Counter

from figure import Figure, table
from proportion import few, most

GATES = 200
GOAL = 10**6


def counted(units: list[dict]) -> dict:
    """What the gates of a run come to."""
    cases, asked, violated = Counter(), Counter(), {}
    for unit in units:
        cases.update(unit["cases"])
        asked.update(unit["asked"])
        for name, labels in unit["violated"].items():
            violated.setdefault(name, Counter()).update(labels)
    return {"gates": len(units), "red": sum(u["status"] != 0 for u in units), "accusing": sum(bool(u["violated"]) for u in units),
            "killed": sum(u["killed"] for u in units), "kills": sum(u["kills"] for u in units),
            "cases": dict(sorted(cases.items())), "asked": dict(sorted(asked.items())),
            "violated": {name: dict(sorted(labels.items())) for name, labels in sorted(violated.items())}}


def accuses(run: dict) -> bool:
    return run["red"] > 0 or run["accusing"] > 0


def section(runs: list[dict]) -> tuple[list[Figure], list[str]]:
    gates, red, accusing, killed, kills = (sum(run[key] for run in runs) for key in ("gates", "red", "accusing", "killed", "kills"))
    cases, asked, alarms, accused = Counter(), Counter(), Counter(), Counter()
    for run in runs:
        cases.update(run["cases"])
        asked.update(run["asked"])
        for name, labels in run["violated"].items():
            alarms.update(labels)
            accused[name] += sum(labels.values())
    least = min(cases.values(), default=0)
    figures = [
        Figure("gates with other seeds that are red", f"0 of {GATES}", few(red, gates), red == 0 and gates >= GATES),
        Figure("gates with other seeds that accuse a sound implementation", "0", few(accusing, gates), not alarms),
        Figure("sound answers of those", "", f"{asked.total():,}", None),
        Figure("cases of a loss and dtype of those, at least", f">= {GOAL:,}", f"{least:,}", least >= GOAL),
        Figure("kills that those gates owe", "", most(killed, kills), None),
    ]
    body = ["Of each seed the last run, which draws its gates' seeds from its own.", "",
            *table(("seed", "commit", "gates", "seconds of work", "red", "accusing"),
                   [(run["seed"], run["commit"], run["gates"], f"{run['seconds']:,.0f}", run["red"], run["accusing"]) for run in runs]),
            "", "Cases of each loss and dtype, and how often a sound implementation was asked one.", "",
            *table(("loss and dtype", "cases", "asked", "cells violated"),
                   [(name, f"{cases[name]:,}", f"{asked[name]:,}", accused[name]) for name in sorted(cases)])]
    if alarms:
        body += ["", "Violated:", "", *table(("where", "gates"), sorted(alarms.items()))]
    return figures, body
