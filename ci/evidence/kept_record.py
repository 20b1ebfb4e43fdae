# SPDX-License-Identifier: Apache-2.0
"""A record of ci/evidence.sh that is written as it grows, for the kinds that are measured in Python."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def arguments(description: str) -> argparse.ArgumentParser:
    """What every one of them is told."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--command", required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", dest="full", action="store_false")
    parser.add_argument("--seed", type=int, default=1)
    return parser


class Record:
    """FOLDER/KIND.json: what is in it is not asked again, unless commit, seed or effort are others."""

    def __init__(self, kind: str, statement: str, given: argparse.Namespace, instruction_set: str = "any",
                 **more: object) -> None:
        given.out.mkdir(parents=True, exist_ok=True)
        self.file = given.out / f"{kind}.json"
        self.content = {"schema": 1, "kind": kind, "statement": statement, "commit": given.commit,
                        "command": given.command, "seed": given.seed, "effort": "full" if given.full else "quick",
                        "instruction_set": instruction_set, "torch": "loaded", **more, "seconds": 0.0, "units": {}}
        before = json.loads(self.file.read_text(encoding="utf-8")) if self.file.exists() else {}
        if all(before.get(key) == self.content[key] for key in ("schema", "kind", "commit", "seed", "effort", *more)):
            self.content.update(units=before["units"], seconds=before["seconds"])

    def __contains__(self, unit: str) -> bool:
        return unit in self.content["units"]

    def add(self, units: dict[str, dict]) -> None:
        """Each says how many `seconds` it took."""
        self.content["units"].update(units)
        self.content["seconds"] = sum(unit["seconds"] for unit in self.content["units"].values())
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps(self.content, indent=1) + "\n", encoding="utf-8")
        fresh.replace(self.file)
