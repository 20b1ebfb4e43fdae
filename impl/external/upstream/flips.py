# SPDX-License-Identifier: Apache-2.0
"""Writes a Markdown page from the runs of several releases, one column each: when did a verdict flip?

    flips.py JUDGED.md NAME=FOLDER ...

JUDGED.md says what was judged of earlier findings. NAME is a project and a version; FOLDER holds the run.json of a gate
and files.txt, the hashes of what was executed.
"""
from __future__ import annotations

import json
import sys
from pathlib import Path

from judged import NEW, Judged

ORDER = ("violated", "held", "note", "vacuous", "skipped")


def asked(run: dict) -> dict[tuple[str, str], str]:
    """The verdict of each (subject, property): the worst that any case gave."""
    verdicts: dict = {}
    for cell in run["cells"]:
        key = cell["implementation"], cell["property"]
        given = [verdict for verdict in ORDER if cell["verdicts"].get(verdict)] + [verdicts.get(key)]
        verdicts[key] = min((verdict for verdict in given if verdict), key=ORDER.index, default="not asked")
    return verdicts


def faults(run: dict) -> dict[tuple[str, str, str], int]:
    """In how many cases each (subject, property, cause) was seen. The cause is what the property saw, which the
    fingerprint has: what experiments name beside it may be another for each case."""
    counts: dict = {}
    for finding in run["findings"]:
        _, _, subject, named, cause, _ = finding["fingerprint"].split("|")
        key = subject, named, cause
        counts[key] = counts.get(key, 0) + finding["count"]
    return counts


def table(names: list[str], runs: list[dict], judged: Judged) -> list[str]:
    """One row for each fault that any release shows. A property that another fault violates may hold otherwise, so
    what flips is a cause."""
    columns = [(asked(run), faults(run)) for run in runs]
    rows = {key: None for _, found in columns for key in found}
    lines = ["| subject | property | cause | " + " | ".join(names) + " | | judged |",
             "|---" * (len(names) + 5) + "|"]
    unjudged = 0
    for row in rows:
        counts = [found.get(row, 0) if row[:2] in verdicts else None for verdicts, found in columns]
        shown = ["-" if count is None else f"**violated** ({count})" if count else "no" for count in counts]
        flips = [f"{'comes' if after else 'goes'} with {name}" for name, before, after
                 in zip(names[1:], counts, counts[1:]) if None not in (before, after) and bool(before) != bool(after)]
        judgement = judged.judgement(*row)
        unjudged += judgement == NEW
        lines.append(f"| {' | '.join([*row, *shown, ', '.join(flips), judgement])} |")
    broken = {row[:2] for row in rows}
    quiet = {key for verdicts, _ in columns for key in verdicts} - broken
    news = f"{unjudged} of them new: nobody has judged them yet" if unjudged else "each of them judged before"
    return [f"{len(rows)} faults, {news}.", "", *lines, "",
            f"{len(quiet)} pairs of subject and property are violated in none of these releases."]


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
    judged = Judged.read(Path(sys.argv[1]))
    names, folders = zip(*(argument.split("=", 1) for argument in sys.argv[2:]))
    runs = [json.loads((Path(folder) / "run.json").read_text()) for folder in folders]
    print("\n".join(["# Verdicts by release", "", *table(list(names), runs, judged), ""]))
    for name, folder, run in zip(names, folders, runs):
        print("\n".join(findings(name, Path(folder), run)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
