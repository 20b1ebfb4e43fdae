# SPDX-License-Identifier: Apache-2.0
"""Sound implementations that were accused: adds what was asked in full to the runs that are kept, and makes a section of them.

  alarms.py RECORD KEPT    adds the run of RECORD (alarms.json of ci/evidence.sh) to the runs of KEPT

10^6 cases of each loss and dtype take nights, and commits seldom live as long. So runs of several commits count together, of
each seed one, with the commit that asked it. It makes room only for a run that asks the same cases again: an alarm goes when
its case is asked anew, and in no other way.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from figure import Figure, table
from proportion import few

GOAL = 10**6
THRESHOLD = 2  # T: a larger share is an alarm
KEPT = Path(__file__).resolve().parent / "alarms.json"
SAME = ("seed", "commit", "instruction_set", "torch", "seconds")


def run_of(record: dict) -> dict:
    """What a record comes to, small enough to be kept for good."""
    cases, asked, verdicts, alarms, nearest = Counter(), Counter(), Counter(), [], {}
    for unit in record["units"].values():
        name = f"{unit['loss']}/{unit['dtype']}"
        cases[name] += unit["cases"]
        asked.update({f"{unit['loss']}.{subject}": n for subject, n in unit["asked"].items()})
        verdicts.update(unit["verdicts"])
        alarms += [f"{name} {alarm}" for alarm in unit["alarms"]]
        if "nearest" in unit:
            nearest[name] = max(nearest.get(name, [0.0, ""]), [unit["nearest"], unit["nearest_of"]])
    return {**{key: record[key] for key in SAME}, "cases": dict(sorted(cases.items())), "asked": dict(sorted(asked.items())),
            "verdicts": dict(sorted(verdicts.items())), "nearest": dict(sorted(nearest.items())), "alarms": sorted(alarms)}


def added(runs: list[dict], run: dict) -> list[dict]:
    """The runs with this one in its seed's place; ValueError where it asks less than that did."""
    before = next((other for other in runs if other["seed"] == run["seed"]), None)
    for name, cases in before["cases"].items() if before else ():
        if run["cases"].get(name, 0) < cases:
            raise ValueError(f"seed {run['seed']} was asked {cases:,} cases of {name} at {before['commit']}, "
                             f"and {run['cases'].get(name, 0):,} now")
    return sorted([*(other for other in runs if other is not before), run], key=lambda other: other["seed"])


def read_kept(file: Path = KEPT) -> list[dict]:
    return json.loads(file.read_text(encoding="utf-8"))["runs"] if file.exists() else []


def shown(runs: list[dict], record: dict | None) -> list[dict]:
    """The runs that a page shows: a smaller one of a seed that is kept says something new only where it accuses."""
    if record is None:
        return runs
    run = run_of(record)
    try:
        return added(runs, run)
    except ValueError:
        return [*runs, run] if run["alarms"] else runs


def record_of(runs: list[dict]) -> dict:
    """The runs as one record of many units."""
    def of(key: str) -> str:
        return ", ".join(dict.fromkeys(str(run[key]) for run in runs))
    return {"command": "ci/evidence.sh --full --seed N alarms", "commit": of("commit"), "seed": of("seed"),
            "instruction_set": of("instruction_set"), "torch": of("torch"), "seconds": sum(run["seconds"] for run in runs),
            "units": {str(run["seed"]): run for run in runs}}


def shown_nearest(nearest: tuple[float, str] | None) -> tuple[str, str]:
    return ("", "") if nearest is None else (f"{nearest[0]:.3g}", nearest[1] if nearest[0] > 0 else "")


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
            *table(("seed", "commit", "cases of each", "seconds of work", "accused"),
                   [(run["seed"], run["commit"], f"{min(run['cases'].values()):,}", f"{run['seconds']:,.0f}", len(run["alarms"]))
                    for run in runs]), "",
            "Answers: " + ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items())) + ".", "",
            *table(("loss and dtype", "cases", "accused", "largest error", "of"),
                   [(name, f"{count:,}", few(accused[name], count), *shown_nearest(nearest.get(name)))
                    for name, count in sorted(cases.items())]), "",
            "Largest errors are shares of what is allowed, in runs that keep them.", "",
            *table(("implementation", "cases"), [(name, f"{count:,}") for name, count in sorted(asked.items())])]
    return figures, body + [line for seed, alarm in alarms for line in ("", f"* accused, seed {seed}: {alarm}")]


def main() -> None:
    record, kept = (Path(argument) for argument in sys.argv[1:])
    run = run_of(json.loads(record.read_text(encoding="utf-8")))
    try:
        runs = added(read_kept(kept), run)
    except ValueError as error:
        sys.exit(f"alarms: not kept: {error}")
    kept.write_text(json.dumps({"schema": 1, "runs": runs}, indent=1) + "\n", encoding="utf-8")
    print(f"alarms: seed {run['seed']}, {sum(run['cases'].values()):,} cases, {len(run['alarms'])} accused; {kept} has {len(runs)} runs")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: alarms.py RECORD KEPT")
    main()
