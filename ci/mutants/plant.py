# SPDX-License-Identifier: Apache-2.0
"""Writes a tenth of all mutants into a copy of the project at once; a variable of the environment wakes one.

    plant.py TREE BUILD PART

TREE is a clone that may be written into, BUILD a build folder of it that has been configured with `-include mutant.h`. A change that clang does not
accept (it must be known at compile time, the types do not have the other operation) is taken out and said. The mutants that stay are
listed in BUILD/mutants.json. PART is from 1 to 10; no two have a mutant in common.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from edits import rewritten
from points import Point, commands, points
from tenths import PARTS as TENTHS, tenths

ERROR = re.compile(r"^(\S+?):(\d+):\d+: (?:fatal )?error: ", re.MULTILINE)
NOTE = re.compile(r"^(\S+?):(\d+):\d+: (?:error|note): ", re.MULTILINE)
# What is odd is let pass, but for an array whose size is known when it runs (no one else would see why it fails), and a
# number that is narrowed unseen, which is a warning to be switched off and an error all the same.
QUIET = ("-Wno-everything", "-Werror=vla-cxx-extension", "-Werror=c++11-narrowing")
# What a verdict hangs on: the reference, its error analysis, the properties, the comparators.
PARTS = ("reference", "properties")
TESTS = re.compile(r"(_test|_benchmark)\.cpp$|/(given|fake|worked)_|/(textbook|adversary|precise)\.h$")


def sources(root: Path) -> tuple[set[str], set[str]]:
    """The files that mutants are planted in, and those that are compiled."""
    files = {str(file.relative_to(root)) for part in PARTS for file in (root / part).rglob("*.[ch]*")
             if file.suffix in (".h", ".cpp")}
    wanted = {file for file in files if not TESTS.search(file)}
    # Tests of the reference hand its templates scalars of their own, which have fewer operations.
    instantiated = {file for file in files if file.startswith("reference/") and file.endswith("_test.cpp")}
    return wanted, {file for file in wanted if file.endswith(".cpp")} | instantiated


class Field:
    """The tree, as it was and as it is now."""

    def __init__(self, root: Path, build: Path, chosen: list[Point]) -> None:
        self.root, self.build = root, build
        self.living = dict(enumerate(chosen, start=1))
        self.rejected: dict[str, int] = {}
        self.texts = {file: (root / file).read_bytes() for file in {point.file for point in chosen}}

    def write(self) -> None:
        for file, text in self.texts.items():
            edits = [(number, edit) for number, point in self.living.items() if point.file == file for edit in point.edits]
            new = rewritten(text, edits)
            if (self.root / file).read_bytes() != new:
                (self.root / file).write_bytes(new)

    def _complaints(self, item: tuple[str, list[str]]) -> set[tuple[str, int]]:
        file, words = item
        done = subprocess.run(["clang++-19", *words, file, "-fsyntax-only", "-ferror-limit=0", *QUIET], capture_output=True,
                              text=True, cwd=self.build)
        places = set()
        if done.returncode:
            for path, line in NOTE.findall(done.stderr):
                resolved = (self.build / path).resolve()
                if resolved.is_relative_to(self.root):
                    places.add((str(resolved.relative_to(self.root)), int(line)))
            if not places:
                raise SystemExit(f"{file} does not compile:\n{done.stderr[:3000]}")
        return places

    def weed(self, compiled: set[str]) -> None:
        """Takes out what does not compile, until everything does."""
        pending = list(commands(self.root, self.build, compiled))
        while pending:
            self.write()
            with ThreadPoolExecutor(2) as pool:
                complaints = list(pool.map(self._complaints, pending))
            pending = [item for item, places in zip(pending, complaints) if places]
            bad = set().union(*complaints)
            gone = [number for number, point in self.living.items() if (point.file, point.line) in bad]
            if bad and not gone:
                # An error may be told where something else begins: its neighbours are taken out too.
                gone = [number for number, point in self.living.items()
                        if any(point.file == file and abs(point.line - line) <= 3 for file, line in bad)]
                if not gone:
                    raise SystemExit(f"nothing planted explains the errors at {sorted(bad)[:5]}")
            for number in gone:
                kind = self.living.pop(number).kind
                self.rejected[kind] = self.rejected.get(kind, 0) + 1
            print(f"{len(gone)} changes do not compile, {len(self.living)} are left", flush=True)


def chosen_of(found: list[Point], texts: dict[str, list[str]], part: int) -> list[Point]:
    """Those of one tenth, in their order in the code."""
    found = sorted(found)
    places = [(point.file, point.change, texts[point.file][point.line - 1].strip()) for point in found]
    return [point for point, of in zip(found, tenths(places)) if of == part]


def main(tree: str, build_folder: str, part: int) -> None:
    root, build = Path(tree).resolve(), Path(build_folder).resolve()
    wanted, compiled = sources(root)
    found = points(root, build, wanted, compiled & wanted)
    print(f"{len(found)} places in {len({point.file for point in found})} files", flush=True)
    texts = {file: (root / file).read_text(encoding="utf-8").splitlines() for file in wanted}
    field = Field(root, build, chosen_of(found, texts, part))
    field.weed(compiled)
    listed = [{"number": number, "file": point.file, "line": point.line, "kind": point.kind, "change": point.change,
               "code": texts[point.file][point.line - 1].strip()}
              for number, point in sorted(field.living.items())]
    record = {"places": len(found), "planted": listed, "rejected": field.rejected, "seed": part}
    (build / "mutants.json").write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in map(str, range(1, TENTHS + 1)):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
