# SPDX-License-Identifier: Apache-2.0
"""Runs that are kept for good, one for each seed: adds what was asked in full to those of its kind.

  kept_runs.py RECORD KEPT    adds the run of RECORD (alarms.json or gates.json of ci/evidence.sh) to the runs of KEPT

10^6 cases of each loss and dtype, or 200 gates, take nights, and commits seldom live as long. So runs of several commits count
together, of each seed one, with the commit that asked it. It makes room only for a run that asks the same cases again: an alarm
goes when its case is asked anew, and in no other way.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import alarms
import gates

HERE = Path(__file__).resolve().parent
KINDS = {"alarms": alarms, "gates": gates}  # each tells what a record comes to (`counted`), and if that `accuses`
SAME = ("seed", "commit", "instruction_set", "torch", "seconds")


def run_of(record: dict) -> dict:
    """What a record comes to, small enough to be kept for good."""
    return {**{key: record[key] for key in SAME}, **KINDS[record["kind"]].counted(list(record["units"].values()))}


def added(runs: list[dict], run: dict) -> list[dict]:
    """The runs with this one in its seed's place; ValueError where it asks less than that did."""
    before = next((other for other in runs if other["seed"] == run["seed"]), None)
    for name, cases in before["cases"].items() if before else ():
        if run["cases"].get(name, 0) < cases:
            raise ValueError(f"seed {run['seed']} was asked {cases:,} cases of {name} at {before['commit']}, "
                             f"and {run['cases'].get(name, 0):,} now")
    return sorted([*(other for other in runs if other is not before), run], key=lambda other: other["seed"])


def read_kept(file: Path) -> list[dict]:
    return json.loads(file.read_text(encoding="utf-8"))["runs"] if file.exists() else []


def read_all(folder: Path = HERE) -> dict[str, list[dict]]:
    return {kind: read_kept(folder / f"{kind}.json") for kind in KINDS}


def shown(runs: list[dict], record: dict | None) -> list[dict]:
    """The runs that a page shows: a smaller one of a seed that is kept says something new only where it accuses."""
    if record is None:
        return runs
    run = run_of(record)
    try:
        return added(runs, run)
    except ValueError:
        return [*runs, run] if KINDS[record["kind"]].accuses(run) else runs


def record_of(kind: str, runs: list[dict]) -> dict:
    """The runs as one record of many units."""
    def of(key: str) -> str:
        return ", ".join(dict.fromkeys(str(run[key]) for run in runs))
    return {"command": f"ci/evidence.sh --full --seed N {kind}", "commit": of("commit"), "seed": of("seed"),
            "instruction_set": of("instruction_set"), "torch": of("torch"), "seconds": sum(run["seconds"] for run in runs),
            "units": {str(run["seed"]): run for run in runs}}


def with_kept(records: dict[str, dict], kept: dict[str, list[dict]]) -> dict[str, dict]:
    """The records, where those of a kind that is kept hold all its runs."""
    whole = {kind: shown(kept.get(kind, []), records.get(kind)) for kind in KINDS}
    return {**records, **{kind: record_of(kind, runs) for kind, runs in whole.items() if runs}}


def main() -> None:
    record, kept = (Path(argument) for argument in sys.argv[1:])
    run = run_of(json.loads(record.read_text(encoding="utf-8")))
    try:
        runs = added(read_kept(kept), run)
    except ValueError as error:
        sys.exit(f"kept_runs: not kept: {error}")
    kept.write_text(json.dumps({"schema": 1, "runs": runs}, indent=1) + "\n", encoding="utf-8")
    print(f"kept_runs: seed {run['seed']}, {sum(run['cases'].values()):,} cases; {kept} has {len(runs)} runs")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: kept_runs.py RECORD KEPT")
    main()
