# SPDX-License-Identifier: Apache-2.0
"""Where the elements of fields lie in memory."""

from __future__ import annotations

import unittest

import torch

from lossgate.worker.layout import laid_out, place_of


class Layouts(unittest.TestCase):
    def test_that_every_layout_holds_the_same_numbers(self) -> None:
        for shape in ((3,), (2, 3), (2, 3, 5)):
            numbers = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
            for layout in ("contiguous", "offset", "padded_rows", "transposed", "sliced"):
                with self.subTest(layout, shape=shape):
                    self.assertTrue(torch.equal(laid_out(numbers, place_of(shape, layout)), numbers))

    def test_that_transposing_one_axis_leaves_every_other_element(self) -> None:
        placed = laid_out(torch.arange(3.0), place_of((3,), "transposed"))
        self.assertEqual(placed.stride(), (2,))
        self.assertEqual(placed.untyped_storage().nbytes(), 6 * 4)
        self.assertEqual(place_of((3,), "transposed", by_sequence=False).strides, (1,), "that of a bias, is dense")


if __name__ == "__main__":
    unittest.main()
