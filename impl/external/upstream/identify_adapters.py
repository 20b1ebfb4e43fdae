# SPDX-License-Identifier: Apache-2.0
"""Does `lossgate identify` recognise the losses of released trainers?

    identify_adapters.py LOSSGATE INTERPRETER RELEASES PROJECT==VERSION...

RELEASES is the folder where ci/upstream.sh keeps them. Every function of the project's adapters is identified as it
stands, without a word of what its subjects in the TOML file say, and the answer is compared with them. Prints a row for
each function and the share that is named right: a whole match with the loss, under reductions that its subjects have.
A whole match with anything else is wrong; anything less is a miss. Exit status 1 where a name is wrong.
"""
from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from select_release import selected

ADAPTERS = Path(__file__).resolve().parent
COLUMNS = "{:<6} {:<34} {:<64} {:<64} {:>5}"


def subjects(text: str, version: str) -> dict[str, dict[str, list[str]]]:
    """Entry to loss to reductions, of the subjects that this version has."""
    wanted: dict[str, dict[str, list[str]]] = {}
    for subject in re.split(r"(?m)^\[\[subject\]\]$", selected(text, version))[1:]:
        value = dict(re.findall(r"(?m)^(loss|entry|reductions) = (.*)$", subject))
        reductions = re.findall(r"\w+", value.get("reductions", "sum"))
        losses = wanted.setdefault(value["entry"].strip('"'), {})
        known = losses.setdefault(value["loss"].strip('"'), [])
        known += [reduction for reduction in reductions if reduction not in known]
    return wanted


def files_of(project: str) -> list[Path]:
    """The adapters of a project: one of its name, or one that lists it."""
    name = re.compile(rf"(?m)^# projects (.* )?{re.escape(project)}( |$)")
    listed = [file for file in sorted(ADAPTERS.glob("*.toml")) if name.search(file.read_text())]
    return listed or [ADAPTERS / f"{project}.toml"]


def identify(lossgate: str, interpreter: str, entry: str, path: list[str]) -> tuple[str, list[str], float]:
    """(what it is called, under which reductions or none where it is no whole match, CPU seconds)."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path), PYTHONDONTWRITEBYTECODE="1")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        answer = subprocess.run([lossgate, "identify", f"{ADAPTERS}/{entry.removeprefix('py:')}", "--python", interpreter,
                                 "--out", f"{folder}/found.toml"], capture_output=True, text=True, env=environment,
                                cwd=folder, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    match = re.search(r"(?m)^  = (\w+)\(([\w, ]+)\): loss and gradients equal", answer.stdout)
    if match:  # a fault of its own defaults makes it no other loss
        return match.group(1), match.group(2).split(", "), seconds
    rest = re.search(r"(?m)^  (= .*|nearest .*|no answer .*)$", answer.stdout)
    return rest.group(1) if rest else answer.stderr.strip(), [], seconds


def main() -> int:
    lossgate, interpreter, releases, *specs = sys.argv[1:]
    verdicts = []
    print(COLUMNS.format("", "function", "wanted", "identified", "CPU s"))
    for spec in specs:
        project, version = spec.split("==")
        for file in files_of(project):
            text = file.read_text()
            needs = re.findall(r"(?m)^# needs (.*)$", text)
            packages = [f"{project.partition('+')[0]}=={version}", *" ".join(needs).split()]
            path = [f"{releases}/{package.replace('==', '-')}" for package in packages]
            for entry, wanted in subjects(text, version).items():
                name, reductions, seconds = identify(os.path.abspath(lossgate), interpreter, entry, path)
                right = bool(reductions) and set(reductions) <= set(wanted.get(name, []))
                verdicts.append("right" if right else "WRONG" if reductions else "miss")
                losses = ", ".join(f"{loss}({', '.join(some)})" for loss, some in wanted.items())
                found = f"{name}({', '.join(reductions)})" if reductions else name
                print(COLUMNS.format(verdicts[-1], f"{spec} {entry.rpartition(':')[2]}", losses, found, f"{seconds:.0f}"),
                      flush=True)
    print(f"{verdicts.count('right')} of {len(verdicts)} named right, {verdicts.count('WRONG')} wrong")
    return 1 if "WRONG" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
