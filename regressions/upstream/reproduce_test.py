# SPDX-License-Identifier: Apache-2.0
"""Judgements and their reproductions belong together. No release is executed."""
from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from reproduce import FAULTS  # with all that register theirs

HERE = Path(__file__).parent
JUDGED = (HERE / "JUDGED.md").read_text(encoding="utf-8")


def named(row: str) -> list:
    """Faults that a row refers to, by the shape of their names."""
    return [name for name in re.findall(r"`([a-z]+\.[A-Za-z_.]+)`", row) if name in FAULTS or name.count(".") > 1]


class Reproductions(unittest.TestCase):
    def test_each_genuine_row_names_a_fault_that_is_reproduced(self) -> None:
        rows = [row for row in JUDGED.splitlines() if re.search(r"\| genuine[^|]*\|", row)]
        self.assertGreater(len(rows), 20)
        for row in rows:
            with self.subTest(row[:80]):
                self.assertTrue(named(row))
                self.assertLessEqual(set(named(row)), set(FAULTS))

    def test_each_fault_is_judged(self) -> None:
        self.assertEqual(set(FAULTS) - {name for row in JUDGED.splitlines() for name in named(row)}, set())

    def test_the_table_counts_the_faults_of_each_release(self) -> None:
        rows = re.findall(r"(?m)^\| ([a-z-]+==[0-9.]+) \| (\d+) \| (\d+) \|$", JUDGED)
        self.assertGreater(len(rows), 5)
        for release, near, far in rows:
            shown = [found.far for found in FAULTS.values() if release in found.shown_by]
            self.assertEqual((int(near), int(far)), (shown.count(False), shown.count(True)), release)

    def asked(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, HERE / "reproduce.py", *arguments], capture_output=True, text=True)

    def test_a_missing_release_is_said_to_be_missing(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            answer = self.asked(empty, "areal.ppo.padding")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertRegex(answer.stdout, r"areal==1\.0\.4 +missing")

    def test_an_unknown_fault_or_folder_is_refused_with_what_there_is(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            unknown = self.asked(empty, "areal.ppo.paddings")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("areal.ppo.padding", unknown.stderr)
        missing = self.asked("no-such-folder")
        self.assertEqual(missing.returncode, 2)
        self.assertIn("PROJECT-VERSION", missing.stderr)


if __name__ == "__main__":
    unittest.main()
