# SPDX-License-Identifier: Apache-2.0
"""Joins the benchmarks of several programs in one file, and compares it with an earlier one.

python3 ci/bench.py PARTS OUT.json [BEFORE.json]
"""

import json
import sys
from pathlib import Path
from typing import Any

NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def joined(parts: Path) -> dict[str, Any]:
    """The median time of every benchmark, and how many items or bytes a second that is."""
    rows: dict[str, dict[str, float]] = {}
    context: dict[str, Any] = {}
    for path in sorted(parts.glob("*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        context = {key: run["context"][key] for key in ("host_name", "num_cpus", "mhz_per_cpu")}
        for b in run["benchmarks"]:
            if b.get("aggregate_name") != "median":
                continue
            row = {"nanoseconds": b["cpu_time"] * NANOSECONDS[b["time_unit"]]}
            row |= {key: b[key] for key in ("items_per_second", "bytes_per_second") if key in b}
            rows[b["run_name"]] = row
    return {"schema": 1, "context": context, "benchmarks": rows}


def compared(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, float]]:
    """How many times as long each benchmark takes as before, the slowest first."""
    old, new = before["benchmarks"], after["benchmarks"]
    ratios = [(name, new[name]["nanoseconds"] / old[name]["nanoseconds"]) for name in new if name in old]
    return sorted(ratios, key=lambda row: -row[1])


def main(parts: str, out: str, before: str = "") -> int:
    record = joined(Path(parts))
    Path(out).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for name, row in record["benchmarks"].items():
        rate = "".join(f"  {row[key]:.3g} {key}" for key in row if key != "nanoseconds")
        print(f"{row['nanoseconds']:14.0f} ns  {name}{rate}")
    if before:
        print(f"times as long as in {before}:")
        for name, ratio in compared(json.loads(Path(before).read_text(encoding="utf-8")), record):
            print(f"{ratio:8.2f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
