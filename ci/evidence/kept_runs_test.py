# SPDX-License-Identifier: Apache-2.0
"""What a run found goes when its cases are asked again, and in no other way."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import kept_runs
from page import page


def record(kind: str, seed: int, units: list[dict], commit: str = "abc1234", effort: str = "full") -> dict:
    return {"kind": kind, "statement": "?", "commit": commit, "command": "?", "seed": seed, "effort": effort,
            "instruction_set": "avx2", "torch": "loaded", "seconds": 2.0, "units": {str(i): u for i, u in enumerate(units)}}


def alarms(seed: int, cases: int, *accused: str, **more: str) -> dict:
    return record("alarms", seed, [{"loss": "grpo", "dtype": "f32", "cases": cases, "asked": {"eager": cases},
                                    "verdicts": {"held": 9 * cases}, "alarms": list(accused)}], **more)


def gates(seed: int, count: int, status: int = 0, **more: str) -> dict:
    unit = {"status": status, "violated": {}, "cases": {"grpo/f32": 300}, "asked": {"grpo/f32": 600}, "killed": 161, "kills": 161}
    return record("gates", seed, [unit] * count, **more)


def kept(*records: dict) -> dict[str, list[dict]]:
    return {records[0]["kind"]: [kept_runs.run_of(r) for r in records]}


class KeptRuns(unittest.TestCase):
    def test_runs_are_in_the_order_of_their_seeds_and_name_their_commits(self) -> None:
        runs = kept_runs.added(kept_runs.added([], kept_runs.run_of(gates(5, 3))), kept_runs.run_of(gates(2, 4, commit="def5678")))
        self.assertEqual([(run["seed"], run["commit"], run["gates"]) for run in runs], [(2, "def5678", 4), (5, "abc1234", 3)])

    def test_a_seed_is_replaced_by_the_same_cases_alone(self) -> None:
        for of in (lambda n, **more: alarms(1, 300 * n, **more), lambda n, **more: gates(1, n, **more)):
            runs = kept_runs.added([], kept_runs.run_of(of(10)))
            with self.assertRaisesRegex(ValueError, "seed 1 was asked 3,000 cases of grpo/f32 at abc1234, and 2,700 now"):
                kept_runs.added(runs, kept_runs.run_of(of(9, commit="def5678")))
            mended = kept_runs.added(runs, kept_runs.run_of(of(10, commit="def5678")))
            self.assertEqual([run["commit"] for run in mended], ["def5678"])

    def test_a_page_shows_what_is_kept_and_a_small_run_only_where_it_accuses(self) -> None:
        accusing = {"alarms": lambda seed, n, **more: alarms(seed, n, "eager: finite_forward, case 7", **more),
                    "gates": lambda seed, n, **more: gates(seed, n, status=1, **more)}
        for of in (alarms, gates):
            before = kept(of(1, 100, commit="kept123"))
            kind = of.__name__
            def shown(now: dict | None) -> str:
                return page(kept_runs.with_kept({} if now is None else {kind: now}, before))
            self.assertNotIn("def5678", shown(of(1, 10, commit="def5678", effort="quick")))
            self.assertIn("kept123", shown(None))
            self.assertIn("| 1 | def5678 |", shown(accusing[kind](1, 10, commit="def5678", effort="quick")))
            self.assertIn("| 2 | def5678 |", shown(of(2, 10, commit="def5678")))
        self.assertIn("Not measured here: bounds, filter, false alarms, gates", page(kept_runs.with_kept({}, {})))

    def test_the_command_keeps_a_run_and_refuses_a_smaller_one(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ledger, now = Path(folder) / "alarms.json", Path(folder) / "record.json"
            def add(of: dict) -> subprocess.CompletedProcess:
                now.write_text(json.dumps(of), encoding="utf-8")
                return subprocess.run([sys.executable, HERE / "kept_runs.py", now, ledger], capture_output=True, text=True)
            self.assertEqual(add(alarms(1, 100)).returncode, 0)
            self.assertEqual(add(alarms(2, 100)).returncode, 0)
            refused = add(alarms(2, 50))
            self.assertEqual(refused.returncode, 1)
            self.assertIn("kept_runs: not kept: seed 2", refused.stderr)
            self.assertEqual([run["seed"] for run in kept_runs.read_all(Path(folder))["alarms"]], [1, 2])
            self.assertEqual(kept_runs.read_all(Path(folder))["gates"], [])


if __name__ == "__main__":
    unittest.main()
