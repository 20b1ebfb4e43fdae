# SPDX-License-Identifier: Apache-2.0
"""Sound implementations that were accused are counted by loss and dtype, and each is named."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import alarms


def run(seed: int, cases: int, *accused: str, commit: str = "abc1234") -> dict:
    """Of two parts of one class, and one of another."""
    def unit(loss: str, count: int, found: tuple = ()) -> dict:
        return {"loss": loss, "dtype": "f32", "cases": count, "asked": {"eager": count}, "verdicts": {"held": 9 * count},
                "alarms": list(found), "nearest": min(0.5 + count / 1000, 1.5), "nearest_of": f"eager, case {count}"}
    units = [unit("grpo", cases // 2, accused), unit("grpo", cases - cases // 2), unit("jsd", cases)]
    return {"seed": seed, "commit": commit, "seconds": 2.0, **alarms.counted(units)}


class Alarms(unittest.TestCase):
    def test_a_run_is_counted_by_loss_and_dtype(self) -> None:
        counted = run(3, 100, "eager: finite_forward, case 7")
        self.assertEqual(counted["cases"], {"grpo/f32": 100, "jsd/f32": 100})
        self.assertEqual(counted["asked"], {"grpo.eager": 100, "jsd.eager": 100})
        self.assertEqual(counted["verdicts"], {"held": 1800})
        self.assertEqual(counted["alarms"], ["grpo/f32 eager: finite_forward, case 7"])

    def test_runs_of_other_seeds_count_together(self) -> None:
        figures, body = alarms.section([run(2, 300, commit="def5678"), run(5, 100)])
        self.assertEqual(figures[2].measured, "400")
        self.assertTrue(any("| 2 | def5678 | 2 | 300 |" in line for line in body))

    def test_a_run_may_ask_one_loss_more_often_than_another(self) -> None:
        uneven = run(2, 300)
        uneven["cases"]["jsd/f32"] = 1200
        self.assertTrue(any("| 2 | abc1234 | 2 | 300 to 1,200 |" in line for line in alarms.section([uneven])[1]))

    def test_the_largest_error_of_all_runs_is_shown_with_its_case(self) -> None:
        old = {key: value for key, value in run(1, 500).items() if key != "nearest"}
        figures, body = alarms.section([old, run(2, 300), run(5, 100)])
        self.assertEqual((figures[1].measured, figures[1].met), ("0.8", True))
        self.assertTrue(any("| jsd/f32 | 900 |" in line and "| 0.8 | eager, case 300 of seed 2 |" in line for line in body))
        figures, body = alarms.section([old])
        self.assertNotIn("largest error of a sound implementation", " ".join(figure.name for figure in figures))
        self.assertTrue(any(line.endswith("|  |  |") for line in body))

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


if __name__ == "__main__":
    unittest.main()
