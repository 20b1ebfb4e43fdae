# SPDX-License-Identifier: Apache-2.0
"""A run of the gate on fakes, for the tests of what is made of it. LOSSGATE_PROGRAM names lossgate_fake."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
from typing import Any

PROGRAM = os.environ.get("LOSSGATE_PROGRAM", "")


def lossgate(*words: object, cwd: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False)


class GivenRun(unittest.TestCase):
    """Its record, in a folder that is gone afterwards."""

    folder: pathlib.Path
    real: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        (cls.folder / "empty").mkdir()
        made = lossgate("gate", "--corpus", "empty", "--loss", "grpo", "--cases", 8, "--jobs", 1, "--impl", "fake_wrong",
                        "--impl", "fake_exact", "--impl", "fake_doubled", "--out", "real", cwd=cls.folder)
        assert made.returncode == 1, made.stderr
        cls.real = json.loads((cls.folder / "real" / "run.json").read_text(encoding="utf-8"))
