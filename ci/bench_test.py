# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of several programs are joined, and two runs compared by ratio."""

import json
import math
import tempfile
import unittest
from pathlib import Path

import bench


def part(name: str, time: float, unit: str) -> str:
    row = {"run_name": name, "cpu_time": time, "time_unit": unit, "items_per_second": 5.0}
    context = {"host_name": "here", "num_cpus": 2, "mhz_per_cpu": 2000}
    rows = [row | {"aggregate_name": "median"}, row | {"aggregate_name": "mean", "cpu_time": 1e9}]
    return json.dumps({"context": context, "benchmarks": rows})


class Bench(unittest.TestCase):
    def test_joins_the_medians_in_one_unit(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "a.json").write_text(part("a", 2.0, "us"), encoding="utf-8")
            Path(folder, "b.json").write_text(part("b", 3.0, "ns"), encoding="utf-8")
            record = bench.joined(Path(folder))
        self.assertEqual({n: r["nanoseconds"] for n, r in record["benchmarks"].items()}, {"a": 2000.0, "b": 3.0})

    def test_fits_the_exponent_of_each_size_that_takes_three_values(self) -> None:
        times = {f"a/tokens:{t}/{v}/real_time": 7.0 * t * v**2 for t in (4, 16, 64) for v in (10, 1000)}
        record = {"benchmarks": {n: {"nanoseconds": t} for n, t in (times | {"gate/4x32": 1.0, "b/8": 1.0}).items()}}
        fitted = bench.exponents(record)
        self.assertEqual(set(fitted), {"a/tokens:*/10/real_time", "a/tokens:*/1000/real_time"})
        for exponent in fitted.values():
            self.assertAlmostEqual(exponent, 1.0)
        cubes = [(math.log(x), math.log(5.0 * x**3)) for x in (2, 3, 10, 50)]
        self.assertAlmostEqual(bench.slope(cubes), 3.0)

    def test_compares_what_both_have_the_slowest_first(self) -> None:
        before = {"benchmarks": {"a": {"nanoseconds": 2.0}, "b": {"nanoseconds": 2.0}}}
        after = {"benchmarks": {n: {"nanoseconds": t} for n, t in (("a", 1.0), ("b", 5.0), ("new", 1.0))}}
        self.assertEqual(bench.compared(before, after), [("b", 2.5), ("a", 0.5)])


if __name__ == "__main__":
    unittest.main()
