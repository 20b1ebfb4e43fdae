# SPDX-License-Identifier: Apache-2.0
"""Writes a Markdown page from the runs of several releases, one column each: when did a verdict flip?

    flips.py NAME=FOLDER ...

FOLDER holds the run.json of a gate and files.txt, the hashes of what was executed.
"""
from __future__ import annotations

import json
import sys
from pathlib import Path

ORDER = ("violated", "held", "note", "vacuous", "skipped")


def verdicts(run: dict) -> dict[tuple[str, str], dict[str, int]]:
    """(subject, property) to its counts, all dtypes together."""
    counts: dict = {}
    for cell in run["cells"]:
        row = counts.setdefault((cell["implementation"], cell["property"]), dict.fromkeys(ORDER, 0))
        for verdict, count in cell["verdicts"].items():
            row[verdict] = row.get(verdict, 0) + count
    return counts


def word(counts: dict[str, int]) -> str:
    """The verdict of a row: the worst that any case gave."""
    return next((verdict for verdict in ORDER if counts.get(verdict)), "not asked")


def text(counts: dict[str, int]) -> str:
    verdict = word(counts)
    return f"**violated** ({counts['violated']} of {sum(counts.values())})" if verdict == "violated" else verdict


def table(names: list[str], runs: list[dict]) -> list[str]:
    columns = [verdicts(run) for run in runs]
    rows = {key: None for column in columns for key in column}
    lines = ["| subject | property | " + " | ".join(names) + " | |", "|---" * (len(names) + 3) + "|"]
    quiet = 0
    for subject, property_ in rows:
        cells = [column.get((subject, property_)) for column in columns]
        words = [word(cell) for cell in cells if cell]
        if "violated" not in words:
            quiet += 1
            continue
        flips = [name for name, before, after in zip(names[1:], cells, cells[1:])
                 if before and after and {word(before), word(after)} == {"violated", "held"}]
        shown = [text(cell) if cell else "-" for cell in cells]
        lines.append(f"| {subject} | {property_} | {' | '.join(shown)} | {'flips at ' + ', '.join(flips) if flips else ''} |")
    return [*lines, "", f"{quiet} other rows have no violation in any of these releases."]


def findings(name: str, folder: Path, run: dict) -> list[str]:
    lines = [f"### {name}", "", "| file under test | sha256 |", "|---|---|"]
    for line in (folder / "files.txt").read_text().splitlines():
        digest, path = line.split()
        lines.append(f"| {path} | `{digest}` |")
    lines += ["", f"{run['cases_run']} cases, seed {run['request']['seed']}, {len(run['findings'])} findings.", ""]
    for finding in run["findings"]:
        lines.append(f"* {finding['grade']} · {finding['implementation']} · {finding['property']} · {finding['cause']}: "
                     f"actual {finding['actual']}, expected {finding['expected']}; `{finding['case_file']}`")
    return lines + [""]


def main() -> int:
    names, folders = zip(*(argument.split("=", 1) for argument in sys.argv[1:]))
    runs = [json.loads((Path(folder) / "run.json").read_text()) for folder in folders]
    print("\n".join(["# Verdicts by release", "", *table(list(names), runs), ""]))
    for name, folder, run in zip(names, folders, runs):
        print("\n".join(findings(name, Path(folder), run)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
