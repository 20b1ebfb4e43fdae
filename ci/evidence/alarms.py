# SPDX-License-Identifier: Apache-2.0
"""Sound implementations that were accused: from what was asked in full to what is kept of it, figures and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from figure import Figure, table
from proportion import few

GOAL = 10**6
THRESHOLD = 2  # T: a larger share is an alarm


def counted(units: list[dict]) -> dict:
    """What the parts of a run come to."""
    cases, asked, verdicts, alarms, nearest = Counter(), Counter(), Counter(), [], {}
    for unit in units:
        name = f"{unit['loss']}/{unit['dtype']}"
        cases[name] += unit["cases"]
        asked.update({f"{unit['loss']}.{subject}": n for subject, n in unit["asked"].items()})
        verdicts.update(unit["verdicts"])
        alarms += [f"{name} {alarm}" for alarm in unit["alarms"]]
        if "nearest" in unit:
            nearest[name] = max(nearest.get(name, [0.0, ""]), [unit["nearest"], unit["nearest_of"]])
    return {"cases": dict(sorted(cases.items())), "asked": dict(sorted(asked.items())),
            "verdicts": dict(sorted(verdicts.items())), "nearest": dict(sorted(nearest.items())), "alarms": sorted(alarms)}


def accuses(run: dict) -> bool:
    return bool(run["alarms"])


def shown_nearest(nearest: tuple[float, str] | None) -> tuple[str, str]:
    return ("", "") if nearest is None else (f"{nearest[0]:.3g}", nearest[1] if nearest[0] > 0 else "")


def span(counts: Collection[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def section(runs: list[dict]) -> tuple[list[Figure], list[str]]:
    cases, asked, verdicts = Counter(), Counter(), Counter()
    for run in runs:
        cases.update(run["cases"])
        asked.update(run["asked"])
        verdicts.update(run["verdicts"])
    alarms = [(run["seed"], alarm) for run in runs for alarm in run["alarms"]]
    nearest = {}
    for run in runs:
        for name, (ratio, whose) in run.get("nearest", {}).items():
            nearest[name] = max(nearest.get(name, (0.0, "")), (ratio, f"{whose} of seed {run['seed']}"))
    largest = max((ratio for ratio, _ in nearest.values()), default=None)
    accused = Counter(alarm.split()[0] for _, alarm in alarms)
    least = min(cases.values(), default=0)
    figures = [
        Figure("times that a sound implementation is accused", "0", few(len(alarms), cases.total()), not alarms),
        *([] if largest is None else [Figure(
            "largest error of a sound implementation, as a share of the allowed one", f"<= {THRESHOLD}", f"{largest:.3g}", largest <= THRESHOLD)]),
        Figure("cases of a loss and dtype, at least", f">= {GOAL:,}", f"{least:,}", least >= GOAL),
        Figure("losses and dtypes of 10^6 cases", "all", f"{sum(n >= GOAL for n in cases.values())} of {len(cases)}", least >= GOAL),
    ]
    body = ["Of each seed the last run; an alarm of an earlier one goes when its case is asked again. A case asks one sound "
            "implementation, in turn, everything that a gate asks, beside the answer of another.", "",
            *table(("seed", "commit", "losses and dtypes", "cases of each", "seconds of work", "accused"),
                   [(run["seed"], run["commit"], len(run["cases"]), span(run["cases"].values()), f"{run['seconds']:,.0f}",
                     len(run["alarms"]))
                    for run in runs]), "",
            "Answers: " + ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items())) + ".", "",
            *table(("loss and dtype", "cases", "accused", "largest error", "of"),
                   [(name, f"{count:,}", few(accused[name], count), *shown_nearest(nearest.get(name)))
                    for name, count in sorted(cases.items())]), "",
            "Largest errors are shares of what is allowed, in runs that keep them.", "",
            *table(("implementation", "cases"), [(name, f"{count:,}") for name, count in sorted(asked.items())])]
    return figures, body + [line for seed, alarm in alarms for line in ("", f"* accused, seed {seed}: {alarm}")]
