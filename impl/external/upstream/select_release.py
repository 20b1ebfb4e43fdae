# SPDX-License-Identifier: Apache-2.0
"""Prints the subjects of a project's file that a release has: select_release.py FILE VERSION [FOLDER].

A formula may change from one release to the next: a clamp comes in, an argument goes. Such a subject stands
in the file once for each formula, under one name, and the line `# releases RANGE` says which releases compute
it: conditions like `>= 0.10.3`, separated by commas, all of which must be true. With FOLDER, entries are
written relative to it.
"""
from __future__ import annotations

import operator
import re
import sys
from pathlib import Path

COMPARE = {">=": operator.ge, "<": operator.lt, "==": operator.eq, "<=": operator.le, ">": operator.gt}


def number(version: str) -> tuple:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def holds(conditions: str, version: str) -> bool:
    for condition in conditions.split(","):
        compare, bound = condition.split()
        if not COMPARE[compare](number(version), number(bound)):
            return False
    return True


def selected(text: str, version: str) -> str:
    head, *subjects = re.split(r"(?m)^(?=\[\[subject\]\]\s*$)", text)
    kept = []
    for subject in subjects:
        conditions = re.search(r"(?m)^# releases (.*)$", subject)
        if not conditions or holds(conditions.group(1), version):
            kept.append(subject)
    return head + "".join(kept)


def main() -> int:
    file, version = Path(sys.argv[1]), sys.argv[2]
    text = selected(file.read_text(), version)
    if len(sys.argv) > 3:
        text = text.replace('entry = "py:', f'entry = "py:{sys.argv[3]}/')
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
