# SPDX-License-Identifier: Apache-2.0
"""Edits of one text, one within the other."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from edits import Edit, rewritten


def call(text: str, left: int, operator: int, end: int, depth: int) -> list[Edit]:
    """A binary operation as the call of a function."""
    return [Edit(left, left, depth, f"{text}<{{}}>("), Edit(operator, operator + 1, depth, ","), Edit(end, end, depth, ")")]


class Rewritten(unittest.TestCase):
    def test_one_change_alone(self) -> None:
        self.assertEqual(rewritten(b"x = a + b;", [(7, edit) for edit in call("f", 4, 6, 9, 1)]), b"x = f<7>(a , b);")

    def test_the_left_operand_is_an_operation_itself(self) -> None:
        text = b"a + b - c"
        outer = [(1, edit) for edit in call("outer", 0, 6, 9, 1)]
        inner = [(2, edit) for edit in call("inner", 0, 2, 5, 2)]
        self.assertEqual(rewritten(text, outer + inner), b"outer<1>(inner<2>(a , b) , c)")
        self.assertEqual(rewritten(text, inner + outer), b"outer<1>(inner<2>(a , b) , c)")

    def test_the_right_operand_is_an_operation_itself(self) -> None:
        text = b"a - b * c"
        edits = [(1, edit) for edit in call("outer", 0, 2, 9, 1)] + [(2, edit) for edit in call("inner", 4, 6, 9, 2)]
        self.assertEqual(rewritten(text, edits), b"outer<1>(a , inner<2>(b , c))")

    def test_an_operand_is_a_number(self) -> None:
        text = b"a - 1"
        edits = [(1, edit) for edit in call("f", 0, 2, 5, 1)] + [(2, Edit(4, 5, 2, "(lives({}) ? 2 : 1)"))]
        self.assertEqual(rewritten(text, edits), b"f<1>(a , (lives(2) ? 2 : 1))")

    def test_two_operations_side_by_side(self) -> None:
        text = b"a-b,c-d"
        edits = [(1, edit) for edit in call("f", 0, 1, 3, 1)] + [(2, edit) for edit in call("g", 4, 5, 7, 1)]
        self.assertEqual(rewritten(text, edits), b"f<1>(a,b),g<2>(c,d)")


if __name__ == "__main__":
    unittest.main()
