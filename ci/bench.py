# SPDX-License-Identifier: Apache-2.0
"""Joins the benchmarks of several programs in one file, says how their cost grows with each size, and compares it with
an earlier file.

python3 ci/bench.py PARTS OUT.json [BEFORE.json]
"""

import json
import math
import re
import sys
from collections import defaultdict
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


def exponents(record: dict[str, Any]) -> dict[str, float]:
    """The e of cost ~ size^e, fitted by least squares of the logarithms, wherever a part of the name that is a size
    ("4096", "tokens:4096") takes three values or more; it is * in the family's name."""
    families: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, row in record["benchmarks"].items():
        parts = name.split("/")
        for i, part in enumerate(parts):
            if size := re.fullmatch(r"(\w+:)?([1-9]\d*)", part):
                family = "/".join([*parts[:i], (size[1] or "") + "*", *parts[i + 1 :]])
                families[family].append((math.log(int(size[2])), math.log(row["nanoseconds"])))
    return {family: slope(points) for family, points in families.items() if len(points) >= 3}


def slope(points: list[tuple[float, float]]) -> float:
    x, y = (sum(point[i] for point in points) / len(points) for i in (0, 1))
    return sum((px - x) * (py - y) for px, py in points) / sum((px - x) ** 2 for px, _ in points)


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
    print("exponents of the cost, by size:")
    for family, exponent in exponents(record).items():
        print(f"{exponent:8.2f}  {family}")
    if before:
        print(f"times as long as in {before}:")
        for name, ratio in compared(json.loads(Path(before).read_text(encoding="utf-8")), record):
            print(f"{ratio:8.2f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
