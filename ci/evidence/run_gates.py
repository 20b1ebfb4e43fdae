# SPDX-License-Identifier: Apache-2.0
"""Runs the gate with seeds that nothing was calibrated on (rule F2), and writes FOLDER/gates.json.

  run_gates.py --out FOLDER --lossgate COMMAND --commit COMMIT --command TEXT [--full] [--seed N]

Each is what CI runs, all losses, implementations and faulty variants, but for the seed. A run that was stopped goes on where it
was.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from kept_record import Record, arguments

ROOT = Path(__file__).resolve().parents[2]
PROFILE = ROOT / "ci" / "profiles" / "gate.args"
STATEMENT = "Gates with seeds that nothing was calibrated on."
APART = 1000  # seeds of one --seed, so that no two of those have a gate in common


def counted(run: dict, status: int) -> dict:
    """Of each loss and dtype: the cases, how often a sound implementation was asked one, and what of it was violated."""
    sound = {(s["loss"], s["name"]) for s in run["subjects"] if not s["cause"]}
    asked: dict[str, dict[str, int]] = defaultdict(dict)
    violated: dict[str, list[str]] = defaultdict(list)
    for cell in run["cells"]:
        if (cell["loss"], cell["implementation"]) not in sound:
            continue
        name = f"{cell['loss']}/{cell['dtype']}"
        of = asked[name]
        of[cell["implementation"]] = max(of.get(cell["implementation"], 0), cell["cases"])
        if cell["verdicts"]["violated"]:
            violated[name].append(f"{cell['loss']}.{cell['implementation']} {cell['dtype']}: {cell['property']}")
    return {"status": status, "violated": violated, "troubles": len(run["troubles"]),
            "cases": {name: max(of.values()) for name, of in asked.items()},
            "asked": {name: sum(of.values()) for name, of in asked.items()},
            "killed": sum(kill["killed"] for kill in run["kills"]), "kills": len(run["kills"])}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--lossgate", type=Path, required=True)
    given = parser.parse_args()
    record = Record("gates", STATEMENT, given)
    out = given.out / "gate"
    for seed in range(APART * given.seed + 1, APART * given.seed + 1 + (200 if given.full else 2)):
        if str(seed) in record:
            continue
        start = time.monotonic()
        # Of flags that are given twice the last one counts.
        done = subprocess.run([given.lossgate.resolve(), "gate", f"@{PROFILE}", "--seed", str(seed), "--out", out.resolve()],
                              cwd=ROOT, stdout=subprocess.DEVNULL)
        run = json.loads((out / "run.json").read_text(encoding="utf-8"))
        if run["request"]["seed"] != seed or run["interrupted"]:
            raise SystemExit(f"the gate with seed {seed} did not end: status {done.returncode}")
        record.add({str(seed): {**counted(run, done.returncode), "seconds": time.monotonic() - start}})


if __name__ == "__main__":
    main()
