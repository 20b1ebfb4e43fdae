# SPDX-License-Identifier: Apache-2.0
"""Turns the records of ci/evidence.sh into a page: page.py FOLDER > ci/EVIDENCE.md"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Callable, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import buckets
import gates
import mutation
import sections
import witnesses
from figure import Figure, table


class Section(NamedTuple):
    title: str
    record: str  # that it is made of
    write: Callable[[list], tuple[list[Figure], list[str]]]
    statement: str = ""  # where it is not the record's


SECTIONS = (
    Section("Bounds", "bounds", sections.bounds),
    Section("Filter", "filter", sections.filtered),
    Section("Gates", "gates", gates.section),
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


def page(records: dict[str, dict]) -> str:
    figures: list[Figure] = []
    bodies: list[str] = []
    for section in SECTIONS:
        if section.record not in records:
            continue
        record = records[section.record]
        own, body = section.write(list(record["units"].values()))
        figures += own
        bodies += [f"## {section.title}", "", section.statement or record["statement"], "", origin(record), "", *body, ""]
    overview = table(("figure", "goal", "measured", "met"),
                     [(f.name, f.goal, f.measured, f.verdict) for f in figures])
    missing = [section.title.lower() for section in SECTIONS if section.record not in records]
    if missing:
        overview += ["", f"Not measured here: {', '.join(missing)}."]
    return "\n".join([PREFACE, *overview, "", *bodies]).rstrip() + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: page.py FOLDER, the one that the records lie in")
    sys.stdout.write(page(read_records(Path(sys.argv[1]))))
