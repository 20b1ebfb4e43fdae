# SPDX-License-Identifier: Apache-2.0
"""Turns the records of ci/evidence.sh into a page: page.py FOLDER [BEFORE] > ci/EVIDENCE.md

What has no record in FOLDER stays as it stands on the page BEFORE, with its command and its commit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Callable, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import alarms
import buckets
import gates
import kept_runs
import mutation
import sections
import witnesses
from figure import Figure, table

HEAD = ("section", "figure", "goal", "measured", "met")


class Section(NamedTuple):
    title: str
    record: str  # that it is made of
    write: Callable[[list], tuple[list[Figure], list[str]]]
    statement: str = ""  # where it is not the record's


SECTIONS = (
    Section("Bounds", "bounds", sections.bounds),
    Section("Filter", "filter", sections.filtered),
    Section("False alarms", "alarms", alarms.section,
            "Sound implementations in hostile cases on which nothing was calibrated: is one accused of anything?"),
    Section("Gates", "gates", gates.section,
            "The gate as CI runs it, with other seeds: is one of them red, and does a sound implementation fail on any case?"),
    Section("Null answers", "null_answers", sections.null_answers),
    Section("Recall", "recall", sections.recall),
    Section("Cause", "recall", sections.cause,
            "What the first finding calls the fault: is it the class with which the variant is registered?"),
    Section("Buckets", "buckets", buckets.section),
    Section("Sensitivity", "sensitivity", sections.sensitivity),
    Section("Bias", "bias", sections.bias),
    Section("Baselines", "baselines", sections.baselines),
    Section("Witnesses", "witnesses", witnesses.section),
    Section("Mutation", "mutation", mutation.section),
)

PREFACE = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by ci/evidence.sh. Do not edit: every figure comes from a record. -->
# What the verdicts are worth

Each section was measured by the command that stands in it. Bounds of rates are one-sided and hold with 95 %
confidence (Clopper and Pearson; 3/n where none of n was seen). A goal that is missed is not a goal that is lowered.
"""


class Written(NamedTuple):
    """A section as it stands on a page: its rows of the overview, and the lines under its title."""
    rows: list[str]
    body: list[str]


def read_records(folder: Path) -> dict[str, dict]:
    records = {}
    for name in dict.fromkeys(section.record for section in SECTIONS):
        file = folder / f"{name}.json"
        if file.exists():
            records[name] = json.loads(file.read_text(encoding="utf-8"))
    return records


def origin(record: dict) -> str:
    torch = "" if record["torch"] == "loaded" else ", without LibTorch"
    return (f"`{record['command']}`, commit {record['commit']}, seed {record['seed']}, {len(record['units'])} units, "
            f"{record['seconds']:.0f} s of work ({record['instruction_set']}{torch})")


def read_page(text: str) -> dict[str, Written]:
    overview, *bodies = text.split("\n## ")
    found = {title: Written([], body.strip().splitlines()) for title, _, body in (part.partition("\n") for part in bodies)}
    for line in overview.splitlines():
        title = line.removeprefix("| ").partition(" | ")[0]
        if title in found:
            found[title].rows.append(line)
    return found


def written(section: Section, record: dict) -> Written:
    figures, body = section.write(list(record["units"].values()))
    rows = table(HEAD, [(section.title, f.name, f.goal, f.measured, f.verdict) for f in figures])[2:]
    return Written(rows, [section.statement or record["statement"], "", origin(record), "", *body])


def page(records: dict[str, dict], before: str = "") -> str:
    found = read_page(before)
    for section in SECTIONS:
        if section.record in records:
            found[section.title] = written(section, records[section.record])
    there = [(section.title, found[section.title]) for section in SECTIONS if section.title in found]
    overview = table(HEAD, []) + [row for _, own in there for row in own.rows]
    missing = [section.title.lower() for section in SECTIONS if section.title not in found]
    if missing:
        overview += ["", f"Not measured here: {', '.join(missing)}."]
    bodies = [line for title, own in there for line in ("", f"## {title}", "", *own.body)]
    return "\n".join([PREFACE, *overview, *bodies]).rstrip() + "\n"


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: page.py FOLDER [BEFORE]: the folder of the records, and the page of earlier ones")
    earlier = Path(sys.argv[2]) if len(sys.argv) == 3 else None
    sys.stdout.write(page(kept_runs.with_kept(read_records(Path(sys.argv[1])), kept_runs.read_all()),
                          earlier.read_text(encoding="utf-8") if earlier and earlier.exists() else ""))
