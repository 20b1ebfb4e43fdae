# SPDX-License-Identifier: Apache-2.0
"""What ptxas prints is read, and a spill is seen."""

import unittest

import ptxas

LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN8lossgate4impl12count_kernelEi' for 'sm_90'
ptxas info    : Function properties for _ZN8lossgate4impl12count_kernelEi
    0 bytes stack frame, {stores} bytes spill stores, 0 bytes spill loads
ptxas info    : Used 22 registers, used 1 barriers
ptxas info    : Compiling entry function '_ZN8lossgate4impl12count_kernelEi' for 'sm_100'
ptxas info    : Function properties for _ZN8lossgate4impl12count_kernelEi
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers
"""


class Ptxas(unittest.TestCase):
    def test_reads_one_row_for_each_kernel_and_architecture(self) -> None:
        rows = ptxas.kernels(LOG.format(stores=0))
        self.assertEqual(
            rows,
            [ptxas.Kernel("sm_90", "count_kernel", 22, 0, 0), ptxas.Kernel("sm_100", "count_kernel", 32, 8, 0)],
        )

    def test_counts_what_is_spilled(self) -> None:
        self.assertEqual(ptxas.kernels(LOG.format(stores=16))[0].spills, 16)


if __name__ == "__main__":
    unittest.main()
