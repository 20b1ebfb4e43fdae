# SPDX-License-Identifier: Apache-2.0
"""Parts have nothing in common, are alike in size, and last."""

from __future__ import annotations

import sys
import unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from tenths import PARTS, tenths

PLACES = [(f"reference/{i % 7}.h", "0 is 1", f"x = {i // 2};") for i in range(4000)]


class Tenths(unittest.TestCase):
    def test_every_place_is_in_one_part_and_parts_are_alike_in_size(self) -> None:
        parts = Counter(tenths(PLACES))
        self.assertEqual(list(range(1, PARTS + 1)), sorted(parts))
        self.assertTrue(all(300 < size < 500 for size in parts.values()), parts)

    def test_places_that_look_alike_are_not_one(self) -> None:
        self.assertGreater(len(set(tenths([("a.h", "0 is 1", "f(0, 0, 0, 0);")] * 40))), 1)

    def test_a_place_stays_where_it_is_when_others_come_and_go(self) -> None:
        before = dict(zip(PLACES, tenths(PLACES)))
        after = dict(zip(PLACES[1000:], tenths([("new.h", "+ is -", "a + b"), *PLACES[1000:]])[1:]))
        self.assertEqual({place: before[place] for place in after}, after)


if __name__ == "__main__":
    unittest.main()
