# SPDX-License-Identifier: Apache-2.0
"""Turns what ci/gpu.sh measured into gpu.json and the page GPU.md.

python3 ci/gpu_page.py RESULTS FOLDER
"""

import json
import sys
from pathlib import Path
from typing import Any, Iterator

VERDICTS = ("held", "violated", "vacuous", "skipped", "note")


def runs(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*/run.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def verdicts(folder: Path) -> list[dict[str, Any]]:
    """A row for each loss, dtype and implementation: how often each verdict fell."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for run in runs(folder):
        for cell in run["cells"]:
            key = cell["loss"], cell["dtype"], cell["implementation"]
            row = rows.setdefault(key, dict(zip(("loss", "dtype", "implementation"), key)) | dict.fromkeys(VERDICTS, 0))
            row["cases"] = max(row.get("cases", 0), cell["cases"])
            row["worst_ratio"] = max(row.get("worst_ratio", 0.0), cell["worst_ratio"])
            for verdict in VERDICTS:
                row[verdict] += cell["verdicts"][verdict]
    return [rows[key] for key in sorted(rows)]


def cells_that_differ(first: Path, second: Path) -> int:
    """Of two runs with the same cases; 0 where the second gave the same verdicts and ratios."""
    both = [[cell for run in runs(folder) for cell in run["cells"]] for folder in (first, second)]
    return sum(a != b for a, b in zip(*both, strict=True))


def bandwidths(path: Path) -> list[dict[str, Any]]:
    """Median bytes a second of every benchmark, and its share of the copy on the same device."""
    rows = [
        {"name": b["run_name"].removesuffix("/real_time"), "bytes_per_second": b["bytes_per_second"]}
        for b in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]
        if b.get("aggregate_name") == "median"
    ]
    limit = {r["name"].split("/")[1]: r["bytes_per_second"] for r in rows if r["name"].startswith("copy/")}
    for row in rows:
        form = next(part for part in row["name"].split("/") if part in limit)
        row["share_of_copy"] = row["bytes_per_second"] / limit[form]
    return rows


def statuses(path: Path) -> dict[str, int]:
    """Lines of a name and an exit status; none where nothing of this was run."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {name: int(status) for name, status in (line.split() for line in lines)}


def told(statuses: dict[str, int], good: str) -> str:
    words = (f"{name} {good if status == 0 else f'exit {status}'}" for name, status in statuses.items())
    return ", ".join(words) or "not run"


def collected(results: Path) -> dict[str, Any]:
    return {
        "schema": 1,
        "commit": (results / "commit").read_text(encoding="utf-8").strip(),
        "device": (results / "device").read_text(encoding="utf-8").strip(),
        "verdicts": verdicts(results / "first"),
        "cells_that_differ_in_a_second_run": cells_that_differ(results / "first", results / "second"),
        "sanitizer": statuses(results / "sanitizer"),
        "torch": statuses(results / "torch"),
        "bandwidths": bandwidths(results / "bench.json"),
    }


def page(record: dict[str, Any]) -> str:
    lines = [
        "# Kernels on a GPU",
        "",
        f"{record['device']}, commit {record['commit']}. "
        "Written by `ci/gpu.sh`; the numbers are in gpu.json.",
        "",
        "| loss | dtype | implementation | cases | " + " | ".join(VERDICTS) + " | worst ratio |",
        "|---|---|---|---|" + "---|" * (len(VERDICTS) + 1),
    ]
    for row in record["verdicts"]:
        counts = " | ".join(str(row[v]) for v in VERDICTS)
        lines.append(
            f"| {row['loss']} | {row['dtype']} | {row['implementation']} | {row['cases']} | {counts} | {row['worst_ratio']:.3g} |"
        )
    differ = record["cells_that_differ_in_a_second_run"]
    lines += [
        "",
        f"A second run with the same cases: {differ} cells differ. "
        f"compute-sanitizer: {told(record['sanitizer'], 'silent')}. "
        f"Operators in torch: {told(record['torch'], 'passed')}.",
        "",
        "| benchmark | GB/s | share of the copy |",
        "|---|---|---|",
    ]
    lines += [
        f"| {b['name']} | {b['bytes_per_second'] / 1e9:.1f} | {b['share_of_copy']:.1%} |" for b in record["bandwidths"]
    ]
    return "\n".join(lines) + "\n"


def main(results: str, folder: str) -> int:
    record = collected(Path(results))
    out = Path(folder)
    (out / "gpu.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (out / "GPU.md").write_text(page(record), encoding="utf-8")
    red = sum(row["violated"] for row in record["verdicts"]) + record["cells_that_differ_in_a_second_run"]
    red += sum(status != 0 for part in ("sanitizer", "torch") for status in record[part].values())
    print(f"gpu: {out}/GPU.md, {red} red")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
