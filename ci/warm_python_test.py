# SPDX-License-Identifier: Apache-2.0
"""A warm interpreter is one to whoever starts it, torch aside."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

WARM = Path(__file__).with_name("warm_python.py")


class Served(unittest.TestCase):
    """With a torch that says how often it was imported."""

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name).resolve()
        imports = str(cls.folder / "imports")
        (cls.folder / "torch.py").write_text(f"open({imports!r}, 'a').write('one ')\n", encoding="utf-8")
        name = str(os.getpid())
        cls.server = subprocess.Popen([sys.executable, WARM, "serve", name], stdin=subprocess.PIPE,
                                      env={**os.environ, "PYTHONPATH": str(cls.folder)})
        cls.addClassCleanup(cls.server.communicate)
        cls.program = cls.folder / "python"
        cls.program.write_bytes(subprocess.check_output([sys.executable, "-IS", WARM, "program", name]))
        cls.program.chmod(0o700)

    def run_text(self, text: str, **how) -> subprocess.CompletedProcess:
        return subprocess.run([self.program, "-c", text], capture_output=True, text=True, timeout=60, **how)

    def test_a_start_has_the_folder_environment_and_descriptors_of_its_caller(self) -> None:
        text = "import os, sys; print(os.getcwd(), os.environ['COLOUR'], 'HOME' in os.environ, sys.argv)\n" \
               "print(sys.stdin.read(), file=sys.stderr)"
        done = self.run_text(text, cwd=self.folder, input="read", env={"COLOUR": "red"})
        self.assertEqual((done.stdout, done.stderr), (f"{self.folder} red False ['-c']\n", "read\n"))

    def test_it_ends_as_it_ended(self) -> None:
        for text, status in (("import sys; sys.exit(7)", 7), ("import os; os._exit(9)", 9),
                             ("import os; os.kill(os.getpid(), 11)", -11), ("1/0", 1)):
            self.assertEqual(self.run_text(text).returncode, status, text)

    def test_each_start_is_a_new_one_of_what_was_imported_once(self) -> None:
        for _ in range(2):
            done = self.run_text("import torch; print(getattr(torch, 'kept', 'new')); torch.kept = 'old'")
            self.assertEqual(done.stdout, "new\n", done.stderr)
        self.assertEqual((self.folder / "imports").read_text(encoding="utf-8"), "one ")

    def test_who_is_killed_leaves_nobody_who_reads(self) -> None:
        process = subprocess.Popen([self.program, "-c", "import sys; print('there', flush=True); sys.stdin.read()"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "there\n")
        process.kill()
        process.stdin.close()
        self.assertEqual(process.stdout.read(), "")  # which waits for all that have it open
        process.stdout.close()
        process.wait()


if __name__ == "__main__":
    unittest.main()
