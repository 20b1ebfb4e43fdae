# SPDX-License-Identifier: Apache-2.0
"""Wakes one planted mutant after the other and runs our tests: which ones does no test notice?

    measure.py --build BUILD --out FOLDER --commit TEXT --command TEXT --full

BUILD is a folder that plant.py has planted and that was built since. Writes FOLDER/mutation.json after each mutant, and goes on
where it was when it is stopped.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "evidence"))

from kept_record import Record, arguments

MOST_BYTES = 4 << 30
# How much longer than the processor a program may take, on a machine that has other work.
PATIENCE = 20
# The tests beside the code first; each is a program of gtest. Those of the reference know of no property.
TESTS = {"reference": ("reference_test", "properties_test", "regressions_test"),
         "properties": ("properties_test", "regressions_test")}
STATEMENT = "Operators, constants and branches of the reference and of what compares with it, changed one at a time: do our tests notice?"


def run(program: Path, number: int, seconds: float) -> Optional[str]:
    """How the program fails, or None."""
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))

    environment = {**os.environ, "LOSSGATE_MUTANT": str(number), "RC_PARAMS": "seed=1"}
    try:
        done = subprocess.run([program, "--gtest_brief=1", "--gtest_fail_fast"], env=environment, preexec_fn=limit,
                              capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                              timeout=PATIENCE * (seconds + 1))
    except subprocess.TimeoutExpired:  # it waits for itself
        return "time"
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return {24: "time", 9: "time"}.get(-done.returncode, f"signal {-done.returncode}")
    failed = [line for line in done.stdout.splitlines() if line.startswith("[  FAILED  ]")]
    return failed[0].removeprefix("[  FAILED  ]").split("(")[0].strip().rstrip(",") if failed else f"status {done.returncode}"


def processor_seconds(program: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    how = run(program, 0, 600)
    if how:
        raise SystemExit(f"{program.name} fails without a mutant: {how}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def killer(build: Path, seconds: dict[str, float], mutant: dict) -> dict:
    start, killed_by = time.monotonic(), None
    for test in TESTS[mutant["file"].split("/")[0]]:
        # A mutant that takes five times as long has lost its way.
        how = run(build / "bin" / test, mutant["number"], 10 + 5 * seconds[test])
        if how:
            killed_by = f"{test}: {how}"
            break
    return {**mutant, "killed_by": killed_by, "seconds": time.monotonic() - start}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--build", type=Path, required=True)
    given = parser.parse_args()
    planted = json.loads((given.build / "mutants.json").read_text(encoding="utf-8"))
    given.seed = planted["seed"]
    record = Record("mutation", STATEMENT, given, places=planted["places"])
    seconds = {test: processor_seconds(given.build / "bin" / test) for test in TESTS["reference"]}
    left = [mutant for mutant in planted["planted"] if str(mutant["number"]) not in record]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, unit in enumerate(pool.map(lambda mutant: killer(given.build, seconds, mutant), left), start=1):
            record.add({str(unit["number"]): unit})
            if not unit["killed_by"]:
                print(f"survives: {unit['file']}:{unit['line']}: {unit['change']}", flush=True)
            if done % 25 == 0:
                print(f"{done} of {len(left)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
