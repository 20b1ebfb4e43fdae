# SPDX-License-Identifier: Apache-2.0
"""Prints the subjects that a release has, ready for `lossgate gate --config`.

    select_release.py FILE.toml VERSION DEVICE INTERPRETER FOLDER...

The release, and what else it needs, is installed in the folders. Limits of cases go where the device is not the CPU.
A formula may change from one release to the next: a clamp comes in, an argument goes. Such a subject stands in the file
once for each formula, under one name, and the line `# releases RANGE` says which releases compute it: conditions like
`>= 0.10.3`, separated by commas, all of which must be true.
"""
from __future__ import annotations

import json
import operator
import re
import sys
from pathlib import Path

COMPARE = {">=": operator.ge, "<": operator.lt, "==": operator.eq, "<=": operator.le, ">": operator.gt}
HEADING = "[[subject]]"


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def holds(conditions: str, version: str) -> bool:
    for condition in conditions.split(","):
        compare, bound = condition.split()
        if not COMPARE[compare](number(version), number(bound)):
            return False
    return True


def selected(text: str, version: str, added: str = "") -> str:
    """The subjects of `version`; `added` goes into each of them."""
    head, *subjects = re.split(r"(?m)^(?=\[\[subject\]\]$)", text)
    kept = []
    for subject in subjects:
        conditions = re.search(r"(?m)^# releases (.*)$", subject)
        if not conditions or holds(conditions.group(1), version):
            kept.append(subject.replace(HEADING, HEADING + added, 1))
    return head + "".join(kept)


def without_limits(text: str) -> str:
    """The same without limits of cases, which stand for a CPU."""
    return re.sub(r"(?m)^most_cases = .*\n", "", text)


def main() -> int:
    file, version, device, interpreter, *path = sys.argv[1:]
    added = {"folder": str(Path(file).resolve().parent), "interpreter": interpreter, "device": device, "path": path}
    lines = "".join(f"\n{key} = {json.dumps(value)}" for key, value in added.items())
    text = Path(file).read_text()
    if device != "cpu":
        text = without_limits(text)
    print(selected(text, version, lines), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
