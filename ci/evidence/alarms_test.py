# SPDX-License-Identifier: Apache-2.0
"""An alarm goes when its case is asked again, and in no other way."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import alarms
from page import page, with_kept


def record(seed: int, cases: int, *accused: str, commit: str = "abc1234", effort: str = "full") -> dict:
    """Of two parts of one class, and one of another."""
    def unit(loss: str, count: int, found: tuple = ()) -> dict:
        return {"loss": loss, "dtype": "f32", "cases": count, "asked": {"eager": count}, "verdicts": {"held": 9 * count},
                "alarms": list(found), "nearest": min(0.5 + count / 1000, 1.5), "nearest_of": f"eager, case {count}"}
    units = [unit("grpo", cases // 2, accused), unit("grpo", cases - cases // 2), unit("jsd", cases)]
    return {"kind": "alarms", "statement": "?", "commit": commit, "command": "?", "seed": seed, "effort": effort,
            "instruction_set": "avx2", "torch": "loaded", "seconds": 2.0, "units": {str(i): u for i, u in enumerate(units)}}


def run(seed: int, cases: int, *accused: str, commit: str = "abc1234") -> dict:
    return alarms.run_of(record(seed, cases, *accused, commit=commit))


class Alarms(unittest.TestCase):
    def test_a_run_is_counted_by_loss_and_dtype(self) -> None:
        counted = run(3, 100, "eager: finite_forward, case 7")
        self.assertEqual(counted["cases"], {"grpo/f32": 100, "jsd/f32": 100})
        self.assertEqual(counted["asked"], {"grpo.eager": 100, "jsd.eager": 100})
        self.assertEqual(counted["verdicts"], {"held": 1800})
        self.assertEqual(counted["alarms"], ["grpo/f32 eager: finite_forward, case 7"])
        self.assertEqual((counted["seed"], counted["commit"]), (3, "abc1234"))

    def test_runs_of_other_seeds_count_together_in_their_order(self) -> None:
        runs = alarms.added(alarms.added([], run(5, 100)), run(2, 300, commit="def5678"))
        self.assertEqual([r["seed"] for r in runs], [2, 5])
        figures, body = alarms.section(runs)
        self.assertEqual(figures[2].measured, "400")
        self.assertTrue(any("| 2 | def5678 | 300 |" in line for line in body))

    def test_the_largest_error_of_all_runs_is_shown_with_its_case(self) -> None:
        old = {key: value for key, value in run(1, 500).items() if key != "nearest"}
        figures, body = alarms.section([old, run(2, 300), run(5, 100)])
        self.assertEqual((figures[1].measured, figures[1].met), ("0.8", True))
        self.assertTrue(any("| jsd/f32 | 900 |" in line and "| 0.8 | eager, case 300 of seed 2 |" in line for line in body))
        figures, body = alarms.section([old])
        self.assertNotIn("largest error of a sound implementation", " ".join(figure.name for figure in figures))
        self.assertTrue(any(line.endswith("|  |  |") for line in body))

    def test_a_seed_is_replaced_by_the_same_cases_alone(self) -> None:
        runs = alarms.added([], run(1, 100, "eager: finite_forward, case 7"))
        with self.assertRaisesRegex(ValueError, "seed 1 was asked 100 cases of grpo/f32 at abc1234, and 99 now"):
            alarms.added(runs, run(1, 99, commit="def5678"))
        mended = alarms.added(runs, run(1, 100, commit="def5678"))
        self.assertEqual([(r["commit"], r["alarms"]) for r in mended], [("def5678", [])])

    def test_an_alarm_misses_the_goal_and_names_its_case(self) -> None:
        clean, accusing = [run(1, 10**6)], [run(1, 10**6, "eager: finite_forward, case 7")]
        self.assertTrue(all(figure.met for figure in alarms.section(clean)[0]))
        figures, body = alarms.section(accusing)
        self.assertEqual([figure.met for figure in figures], [False, True, True, True])
        self.assertIn("* accused, seed 1: grpo/f32 eager: finite_forward, case 7", body)
        self.assertTrue(any(line.startswith("| grpo/f32 | 1,000,000 | 1 of 1,000,000") for line in body))

    def test_fewer_than_a_million_of_any_class_miss_the_goal(self) -> None:
        figures, _ = alarms.section([run(1, 10**6 - 1)])
        self.assertEqual([figure.met for figure in figures], [True, True, False, False])
        self.assertEqual(figures[3].measured, "0 of 2")

    def test_a_page_shows_what_is_kept_and_a_small_run_only_where_it_accuses(self) -> None:
        kept = [run(1, 1000, commit="kept123")]
        def shown(now: dict) -> str:
            return page(with_kept({"alarms": now}, kept))
        self.assertNotIn("def5678", shown(record(1, 10, commit="def5678", effort="quick")))
        self.assertIn("kept123", page(with_kept({}, kept)))
        accused = shown(record(1, 10, "eager: finite_forward, case 7", commit="def5678", effort="quick"))
        self.assertIn("accused, seed 1: grpo/f32 eager", accused)
        self.assertIn("| False alarms | times that a sound implementation is accused | 0 | 1 of", accused)
        self.assertIn("| 2 | def5678 |", shown(record(2, 10, commit="def5678")))
        self.assertIn("Not measured here: bounds, filter, false alarms", page(with_kept({}, [])))

    def test_the_command_keeps_a_run_and_refuses_a_smaller_one(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            kept, now = Path(folder) / "kept.json", Path(folder) / "alarms.json"
            def add(of: dict) -> subprocess.CompletedProcess:
                now.write_text(json.dumps(of), encoding="utf-8")
                return subprocess.run([sys.executable, HERE / "alarms.py", now, kept], capture_output=True, text=True)
            self.assertEqual(add(record(1, 100)).returncode, 0)
            self.assertEqual(add(record(2, 100)).returncode, 0)
            refused = add(record(2, 50))
            self.assertEqual(refused.returncode, 1)
            self.assertIn("alarms: not kept: seed 2", refused.stderr)
            self.assertEqual([r["seed"] for r in alarms.read_kept(kept)], [1, 2])


if __name__ == "__main__":
    unittest.main()
