# SPDX-License-Identifier: Apache-2.0
"""Bounds of rates against tables and against sums that are written out."""

from __future__ import annotations

import math
import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import proportion as p


def summed(count: int, trials: int, rate: float) -> float:
    return math.fsum(math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(count + 1))


class Proportion(unittest.TestCase):
    def test_the_distribution_is_the_sum_that_defines_it(self) -> None:
        for trials in (1, 5, 40):
            for count in range(trials + 1):
                for rate in (0.0, 1e-3, 0.3, 0.5, 0.9, 1.0):
                    self.assertAlmostEqual(p.at_most(count, trials, rate), summed(count, trials, rate), places=12)

    def test_bounds_are_those_of_the_tables(self) -> None:
        # One-sided 95 %: the two-sided 90 % intervals of Clopper and Pearson.
        self.assertAlmostEqual(p.upper_bound(1, 10), 0.3942, places=4)
        self.assertAlmostEqual(p.lower_bound(1, 10), 0.0051, places=4)
        self.assertAlmostEqual(p.upper_bound(5, 10), 0.7776, places=4)
        self.assertAlmostEqual(p.lower_bound(5, 10), 0.2224, places=4)

    def test_nothing_seen_is_three_by_n(self) -> None:
        self.assertEqual(p.upper_bound(0, 1000), 0.003)
        self.assertEqual(p.upper_bound(0, 2), 1.0)
        self.assertEqual(p.lower_bound(1000, 1000), 1.0 - 0.003)
        exact = 1 - p.RISK ** (1 / 1000)
        self.assertLess(exact, 0.003)
        self.assertLess(0.003, 1.01 * exact)

    def test_a_bound_is_where_the_count_becomes_improbable(self) -> None:
        for count, trials in ((3, 50), (49, 50), (120, 4000), (1, 10**6)):
            self.assertAlmostEqual(p.at_most(count, trials, p.upper_bound(count, trials)), p.RISK, places=9)

    def test_a_bound_is_seldom_wrong(self) -> None:
        rng, wrong, tries = random.Random(7), 0, 1000
        for _ in range(tries):
            count = sum(rng.random() < 0.12 for _ in range(60))
            wrong += p.upper_bound(count, 60) < 0.12
        self.assertLess(wrong / tries, p.RISK + 0.015)

    def test_no_share_is_refused(self) -> None:
        for count, trials in ((-1, 3), (4, 3)):
            with self.assertRaises(ValueError):
                p.upper_bound(count, trials)

    def test_what_is_less_than_all_is_never_shown_as_all(self) -> None:
        self.assertEqual(p.percent(1.0), "100 %")
        self.assertEqual(p.percent(0.999999), "99.9999 %")
        self.assertEqual(p.percent(0.9985), "99.85 %")
        self.assertEqual(p.percent(0.25), "25 %")
        self.assertEqual(p.few(0, 0), "none asked")
        self.assertEqual(p.few(0, 1000), "0 of 1,000 (at most 0.3 %)")
        self.assertEqual(p.most(10, 10), "10 of 10 = 100 % (at least 70 %)")


if __name__ == "__main__":
    unittest.main()
