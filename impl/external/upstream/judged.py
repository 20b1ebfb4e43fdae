# SPDX-License-Identifier: Apache-2.0
"""Reads what was judged of earlier findings, so that a later run can say what is new."""
from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

HEAD = ["subject", "property", "cause", "seen in", "judgement", "why"]
NEW = "**new**"


class Row(NamedTuple):
    """A fault: the subjects, properties and causes by which it is seen."""

    subjects: frozenset
    properties: frozenset
    causes: frozenset
    judgement: str


class Judged:
    """The first table of a Markdown file that has the columns of HEAD; cells of several names have commas."""

    def __init__(self, text: str) -> None:
        cells = [[cell.strip() for cell in line.strip().strip("|").split("|")]
                 for line in text.splitlines() if line.startswith("|")]
        if HEAD not in cells:
            raise ValueError(f"no table with the columns {', '.join(HEAD)}")
        self.rows = []
        for row in cells[cells.index(HEAD) + 2:]:
            if len(row) != len(HEAD):
                break  # another table
            names = [frozenset(name.strip() for name in cell.split(",")) for cell in row[:3]]
            self.rows.append(Row(*names, row[4]))

    @classmethod
    def read(cls, file: Path) -> "Judged":
        try:
            return cls(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise SystemExit(f"{file}: {error}") from None

    def judgement(self, subject: str, named: str, cause: str) -> str:
        """What was judged of this cause of a violation of the property `named`, or that nobody has."""
        return next((row.judgement for row in self.rows if subject in row.subjects and named in row.properties
                     and cause in row.causes), NEW)
