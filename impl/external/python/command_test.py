# SPDX-License-Identifier: Apache-2.0
"""`lossgate` as a package starts it, and `lossgate demo`. LOSSGATE_PROGRAM names the program."""

from __future__ import annotations

import glob
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest

from lossgate.live import MistakeInCall, Question, name_of, toml_value

HERE = os.path.dirname(os.path.abspath(__file__))


def command(*words: str, **variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": HERE, **variables}
    return subprocess.run([sys.executable, "-m", "lossgate.command", *words], env=environment, capture_output=True,
                          text=True, timeout=300)


class Command(unittest.TestCase):
    def test_the_program_gets_the_words_and_python3_is_this_one(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program")
            with open(program, "w", encoding="utf-8") as file:
                file.write('#!/bin/sh\necho "$@"; echo "$PATH"; exit 7\n')
            os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
            done = command("gate", "a b", LOSSGATE_PROGRAM=program, PATH="/usr/bin:/bin")
        words, path = done.stdout.splitlines()
        self.assertEqual((done.returncode, words), (7, "gate a b"))
        self.assertEqual(path.split(":")[0], os.path.dirname(sys.executable))

    def test_the_help_of_the_program_names_the_demo_as_well(self) -> None:
        done = command("--help")
        verbs = re.search(r"(?m)^Subcommands:\n((?:  .*\n)+)", done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(verbs.group(1), r"(?m)^  gate  [^\0]*^  demo  .*NaN gradient")
        self.assertIn("Exit status: 0 nothing red", done.stdout)

    def test_a_missing_program_is_said(self) -> None:
        done = command("list", LOSSGATE_PROGRAM="/nonexistent")
        self.assertEqual(done.returncode, 3)
        self.assertIn("/nonexistent is no program; install lossgate with pip", done.stderr)


class Demo(unittest.TestCase):
    def test_it_shows_a_finite_loss_a_bad_gradient_and_the_guilty_line(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            done = command("demo", "--out", folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout, r"loss \d\.\d+, gradient: 15 of 40 entries are not finite")
            guilty = re.search(r"  code      (.*) at demo_loss\.py:(\d+): (.*)", done.stdout)
            self.assertEqual(guilty.group(1), "0 (upstream) x inf (sub) = nan")
            with open(os.path.join(HERE, "lossgate", "demo_loss.py"), encoding="utf-8") as file:
                self.assertEqual(file.read().splitlines()[int(guilty.group(2)) - 1].strip(), guilty.group(3))
            self.assertIn("p.exp() * (p - q)", guilty.group(3))
            self.assertRegex(done.stdout, r"held [1-9]\d*, violated 0")
            self.assertTrue(glob.glob(os.path.join(folder, "findings", "*.case")))

    def test_without_torch_it_says_how_to_run_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "torch.py"), "w", encoding="utf-8") as file:
                file.write("raise ImportError('no torch here')\n")
            done = command("demo", PYTHONPATH=f"{folder}:{HERE}")
        self.assertEqual(done.returncode, 2)
        self.assertIn("torch cannot be imported", done.stderr)


class Loud(float):
    """As NumPy's numbers, which tell their type."""

    def __repr__(self) -> str:
        return f"Loud({float(self)})"


class Config(unittest.TestCase):
    def test_values_are_written_as_toml(self) -> None:
        for value, text in ((None, '"none"'), (True, "true"), (2, "2"), (1e-7, "1e-07"), (float("inf"), "inf"),
                            ('a"\\\n', r'"a\"\\\n"'), (["f32"], '["f32"]'), ({"a b": {"c": 0}}, '{"a b" = {"c" = 0}}')):
            self.assertEqual(toml_value(value), text)
        self.assertEqual(toml_value(Loud(0.2)), "0.2")
        with self.assertRaises(MistakeInCall):
            toml_value(object())

    def test_named_losses_fix_options_and_the_call_wins(self) -> None:
        text = Question("ppo_clip", "mine", {"dual_clip": 3}).toml("py:a.py:f")
        self.assertIn('loss = "grpo"', text)
        self.assertIn('options = {"kl_penalty" = 0, "dual_clip" = 3, "log_ratio_clamp" = "none"}', text)

    def test_names_are_words(self) -> None:
        self.assertEqual([name_of(lambda: 0), name_of(test), name_of(Config)], ["lambda", "test", "Config"])


def test() -> None:
    pass


if __name__ == "__main__":
    unittest.main()
