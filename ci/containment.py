# SPDX-License-Identifier: Apache-2.0
"""Lets a brought loss do each fault of testdata/brought/faults.py TIMES times, and counts what the gate makes of it.

    ci/containment.py LOSSGATE PYTHON [TIMES] [FAULT...]

A fault is contained when the run goes on to its last case, says what the table says, keeps the case of every finding,
and leaves no process behind. Those after which the process goes on share one, in one run, and spoil nothing for each
other. Prints one line a fault; exit status 1 if one is not contained.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BROUGHT = os.path.join(HERE, "testdata", "brought")
TOGETHER = 3  # faults: they mostly wait, for a start or for a limit of time
AT_ONCE = 25  # cases of a run in which each ends the subject, or leaves processes; it is given up after 50 starts
MARK = b"LOSSGATE_SUBJECT="

CRASH, HANG, REFUSAL, NOTHING = "does_not_crash", "does_not_hang", "refusal", "nothing"
FAULTS = {
    "crash": CRASH, "hang": HANG, "exception": REFUSAL, "out_of_memory": REFUSAL, "out_of_memory_in_python": REFUSAL,
    "closed_pipe": CRASH, "garbage": CRASH, "wrong_shape": REFUSAL, "no_tensor": REFUSAL, "standard_output": NOTHING,
    "exit_at_once": CRASH, "exit_politely": REFUSAL, "fork_that_returns": NOTHING, "fork_that_stays": NOTHING,
    "daemon": NOTHING, "device_assert": REFUSAL,
}
HEAVY = {fault for fault, wanted in FAULTS.items() if wanted in (CRASH, HANG)} | {"fork_that_stays", "daemon"}
GENTLE = {"exception", "wrong_shape", "no_tensor", "standard_output", "exit_politely"}
MORE = {"hang": "seconds = 2\n", "out_of_memory": "megabytes = 1500\n", "out_of_memory_in_python": "megabytes = 1500\n"}


def orphans(below: str) -> list[int]:
    """Processes that a subject has started and that still are, of those that run in this folder."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                marked = MARK in file.read()
            if marked and os.readlink(f"/proc/{name}/cwd").startswith(below):
                found.append(int(name))
        except OSError:
            continue
    return found


def subject(python: str, fault: str) -> str:
    return (f'[[subject]]\nloss = "grpo"\nentry = "py:faults.py:{fault}"\ninterpreter = "{python}"\n'
            f'reductions = ["token_mean"]\n{MORE.get(fault, "")}'
            'options = { kl_penalty = 0, dual_clip = "none", log_ratio_clamp = 20, level = "token", '
            "clip_low = 0.2, clip_high = 0.2 }\n")


def gate(program: str, python: str, faults: list[str], folder: str, cases: int, seed: int) -> dict:
    with open(os.path.join(folder, "lossgate.toml"), "w", encoding="utf-8") as file:
        file.write("".join(subject(python, fault) for fault in faults))
    done = subprocess.run([program, "gate", "--config", "lossgate.toml", "--corpus", "empty", "--jobs", "1", "--cases",
                           str(cases), "--seed", str(seed), "--out", "run"], cwd=folder, capture_output=True, text=True)
    try:
        with open(os.path.join(folder, "run", "run.json"), encoding="utf-8") as file:
            return json.load(file)
    except OSError:
        return {"cases_run": 0, "troubles": [done.stderr], "cells": [], "findings": []}


def count(record: dict, fault: str, of: int, folder: str) -> int:
    """Cases of which the record says what is wanted of the fault, one of so many that were asked."""
    wanted = FAULTS[fault]
    if record["troubles"] or any(not os.path.isfile(os.path.join(folder, "run", finding["case_file"]))
                                 for finding in record["findings"]):
        return 0
    violated: dict[str, int] = {}
    for cell in record["cells"]:
        if cell["implementation"] == fault:
            violated[cell["property"]] = violated.get(cell["property"], 0) + cell["verdicts"]["violated"]
    if wanted == NOTHING:
        return 0 if any(violated.values()) else record["cases_run"] // of
    if wanted == REFUSAL:
        found = any(finding["implementation"] == fault for finding in record["findings"])
        crashed = violated.get(CRASH, 0) + violated.get(HANG, 0)
        return 0 if crashed or not found else max(violated.values())
    return violated.get(wanted, 0)


def contained_cases(program: str, python: str, faults: list[str], times: int) -> tuple[list[str], int]:
    """What is to be printed of each of the faults, and how many of their cases were not contained."""
    start, asked, contained, left, said = time.monotonic(), 0, dict.fromkeys(faults, 0), 0, ""
    with tempfile.TemporaryDirectory() as folder:
        for file in ("faults.py", "losses.py"):
            shutil.copy(os.path.join(BROUGHT, file), folder)
        os.mkdir(os.path.join(folder, "empty"))
        while asked < times:
            cases = min(times if HEAVY.isdisjoint(faults) else AT_ONCE, times - asked)
            record = gate(program, python, faults, folder, cases, seed=1 + asked)
            asked += cases
            for fault in faults:
                contained[fault] += count(record, fault, len(faults), folder)
            left += len(orphans(os.path.realpath(folder)))
            said = "; ".join(record["troubles"]) or said
    ends = f"{left:>9}{time.monotonic() - start:>9.1f}" + (f"  {said}" if said else "")
    lines = [f"{fault:<26}{asked:>6}{contained[fault]:>11}{ends}" for fault in faults]
    return lines, len(faults) * asked - sum(contained.values()) + left


def main(program: str, python: str, times: int, faults: list[str]) -> int:
    program, python = os.path.abspath(program), os.path.abspath(python)
    print(f"{'fault':<26}{'cases':>6}{'contained':>11}{'orphans':>9}{'seconds':>9}", flush=True)
    gentle = [fault for fault in faults if fault in GENTLE]
    runs = [[fault] for fault in faults if fault not in GENTLE] + ([gentle] if gentle else [])
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        for lines, cases in pool.map(lambda run: contained_cases(program, python, run, times), runs):
            missed += cases
            print(*lines, sep="\n", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 100,
                  sys.argv[4:] or list(FAULTS)))
