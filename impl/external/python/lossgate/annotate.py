# SPDX-License-Identifier: Apache-2.0
"""Shows a run.json where a change is reviewed: an annotation at each guilty line.

    python -m lossgate.annotate run/run.json

Annotations go to standard output as workflow commands. The summary of the job is the summary.md beside the record.
The exit status is 0 whatever the record holds, 2 if it cannot be read.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from typing import Any, Optional, Sequence

SCHEMA = 1
LEVELS = {"red": "error", "expired waiver": "error", "tolerated": "notice"}
MOST_ANNOTATIONS = 10  # of a level, that a step may have


def escaped(text: str, property_value: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property_value else text


def file_of(finding: dict) -> Optional[str]:
    """The guilty file from here: records have it from the folder of the lossgate.toml on."""
    named = finding["source_file"]
    if not named:
        return None
    flags = shlex.split(finding["source_flags"])
    config = flags[flags.index("--config") + 1] if "--config" in flags else ""
    below = os.path.join(os.path.dirname(config), named)
    for path in (below, named):
        if os.path.isfile(path):
            return os.path.normpath(path)
    return None


def replay_of(finding: dict, folder: str) -> str:
    """The command by which to see it again from here, where the flags of a subject name its files."""
    stored, command = finding["case_file"], finding["repro"]
    if not stored or not finding["source_flags"]:
        return command
    return command.replace(stored, shlex.quote(os.path.join(folder, stored)), 1)


def lines_of(finding: dict, statement: str, folder: str) -> list[str]:
    """What there is to say of a finding, in pairs that a table or a message can show."""
    pairs = [("", statement), ("code", finding["source_text"]), ("place", f"{finding['place']}: {finding['detail']}"),
             ("inputs", ", ".join(finding["inputs"])), ("options", ", ".join(finding.get("options", [])))]
    if finding["actual"]:
        pairs.append(("actual", f"{finding['actual']}, expected {finding['expected']}, "
                                f"error ratio {finding['error_ratio']}"))
    pairs += [("grade", "; ".join(filter(None, (finding["grade"], finding["reach"])))), ("cause", finding["cause"]),
              ("replay", replay_of(finding, folder)), ("to accept", f"{finding['fingerprint']} | reason | issue | expires YYYY-MM-DD")]
    return [f"{key:<10}{text}" if key else text for key, text in pairs if text]


def annotations(record: dict, folder: str = "") -> list[str]:
    statements = {each["name"]: each["statement"] for each in record["properties"]}
    commands: dict[str, list[str]] = {"error": [], "notice": []}
    for finding in record["findings"]:
        level = LEVELS.get(finding["state"])
        if level is None:
            continue
        where = [f"title={escaped(finding['property'] + ' violated by ' + finding['implementation'], True)}"]
        file = file_of(finding)
        if file is not None:
            where += [f"file={escaped(file, True)}", f"line={finding['source_line']}"]
        message = "\n".join(lines_of(finding, statements.get(finding["property"], ""), folder))
        commands[level].append(f"::{level} {','.join(where)}::{escaped(message)}")
    for trouble in record["troubles"]:
        commands["error"].append(f"::error title=lossgate could not do its work::{escaped(trouble)}")
    return [command for level in commands for command in commands[level][:MOST_ANNOTATIONS]]


def read(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise ValueError(f"not a record of schema {SCHEMA}")
    return record


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lossgate.annotate", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("record", nargs="?", default="run/run.json", help="run/run.json unless said")
    path = parser.parse_args(arguments).record
    try:
        record = read(path)
    except (OSError, ValueError) as error:
        print(f"::error title=lossgate::{escaped(f'{path} cannot be read: {error}')}")
        return 2
    for command in annotations(record, os.path.dirname(path)):
        print(command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
