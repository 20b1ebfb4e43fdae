# SPDX-License-Identifier: Apache-2.0
"""The page of a GPU run, from records made here."""

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

import gpu_page


def cell(prop: str, violated: int = 0, ratio: float = 0.5) -> dict[str, Any]:
    verdicts = {"held": 90 - violated, "violated": violated, "vacuous": 10, "skipped": 0, "note": 0}
    return {
        "loss": "jsd",
        "dtype": "bf16",
        "implementation": "kernel_gpu",
        "property": prop,
        "cases": 100,
        "verdicts": verdicts,
        "worst_ratio": ratio,
    }


class Results(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.results = Path(self.folder.name) / "results"
        self.out = Path(self.folder.name) / "out"
        self.out.mkdir()
        self.results.mkdir()
        (self.results / "device").write_text("Some GPU, 1.2, 900 MHz\n", encoding="utf-8")
        (self.results / "commit").write_text("abc123\n", encoding="utf-8")
        (self.results / "sanitizer").write_text("memcheck 0\nracecheck 0\n", encoding="utf-8")
        median = {"aggregate_name": "median"}
        benchmarks = [
            {"run_name": "copy/kernel_gpu/8/16/real_time", "bytes_per_second": 4e12} | median,
            {"run_name": "jsd/bf16/kernel_gpu/8/16/real_time", "bytes_per_second": 3e12} | median,
            {"run_name": "jsd/bf16/kernel_gpu/8/16/real_time", "bytes_per_second": 9e12, "aggregate_name": "mean"},
        ]
        (self.results / "bench.json").write_text(json.dumps({"benchmarks": benchmarks}), encoding="utf-8")
        for name in ("first", "second"):
            self.write(name, [cell("finite_forward"), cell("reference_agreement", ratio=0.9)])

    def write(self, name: str, cells: list[dict[str, Any]]) -> None:
        folder = self.results / name / "jsd-bf16"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run.json").write_text(json.dumps({"cells": cells}), encoding="utf-8")

    def record(self) -> dict[str, Any]:
        return json.loads((self.out / "gpu.json").read_text(encoding="utf-8"))

    def run_page(self) -> int:
        return gpu_page.main(str(self.results), str(self.out))

    def test_adds_the_verdicts_of_all_properties(self) -> None:
        self.assertEqual(self.run_page(), 0)
        (row,) = self.record()["verdicts"]
        self.assertEqual((row["cases"], row["held"], row["vacuous"], row["worst_ratio"]), (100, 180, 20, 0.9))

    def test_shows_benchmarks_as_shares_of_the_copy(self) -> None:
        self.run_page()
        page = (self.out / "GPU.md").read_text(encoding="utf-8")
        self.assertIn("| jsd/bf16/kernel_gpu/8/16 | 3000.0 | 75.0% |", page)
        self.assertIn("Some GPU", page)

    def test_is_red_for_a_violation(self) -> None:
        for name in ("first", "second"):
            self.write(name, [cell("finite_forward", violated=1)])
        self.assertEqual(self.run_page(), 1)

    def test_is_red_where_a_second_run_differs(self) -> None:
        self.write("second", [cell("finite_forward"), cell("reference_agreement", ratio=0.91)])
        self.assertEqual(self.run_page(), 1)

    def test_is_red_where_a_sanitizer_speaks(self) -> None:
        (self.results / "sanitizer").write_text("memcheck 0\nracecheck 9\n", encoding="utf-8")
        self.assertEqual(self.run_page(), 1)
        self.assertIn("racecheck exit 9", (self.out / "GPU.md").read_text(encoding="utf-8"))

    def test_says_whether_the_operators_passed_in_torch(self) -> None:
        self.run_page()
        self.assertIn("Operators in torch: not run.", (self.out / "GPU.md").read_text(encoding="utf-8"))
        (self.results / "torch").write_text("operators_fused 0\nbad_input 1\n", encoding="utf-8")
        self.assertEqual(self.run_page(), 1)
        self.assertIn("operators_fused passed, bad_input exit 1.", (self.out / "GPU.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
