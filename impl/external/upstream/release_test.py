# SPDX-License-Identifier: Apache-2.0
"""python release_test.py: loading single files of a package, and picking the subjects of a release."""
from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

import torch
from flips import table
from judged import Judged
from release import Release, StandIn, file_of, hashes, told
from select_release import selected, without_limits

FILES = {
    "toy/__init__.py": "raise RuntimeError('the package itself was executed')\n",
    "toy/deep/__init__.py": "raise RuntimeError('a package on the way was executed')\n",
    "toy/deep/loss.py": """
import json, cluster_runtime
import toy.deep.numbers as numbers
from torch import nn
from cluster_runtime.config import Config, register
from .. import other
from .numbers import half
if cluster_runtime.is_available(): raise RuntimeError("a stand-in is true")
@register("name", config=Config)
def mean(x, beta: Config | None = None, *, count=None): return half(x).sum() / numbers.TWO / (count or 1)
class Trainer(other.Base, nn.Module):
    @torch_free
    def loss(self, x): return mean(x)
    def late(self):
        from cluster_runtime import missing
""".replace("@torch_free", "@other.decorator"),
    "toy/deep/trainers.py": "class Base:\n    def loss(self): return 'base'\n",
    "toy/deep/other.py": """
from toy.deep.trainers import Base
class Silent(Base): pass
class Own(Base):
    def loss(self): return "own"
""",
    "toy/deep/broken.py": "from ..utils import is_torch_available\nif is_torch_available(): raise KeyError('broken')\n",
    "toy/deep/numbers.py": "import torch\nTWO = 2\n@torch.compile\ndef half(x): return x / 2\n",
}


class ReleaseTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in FILES.items():
            path = Path(folder.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        sys.path.insert(0, folder.name)
        self.addCleanup(sys.path.remove, folder.name)
        self.release = Release("toy", ("toy.deep.loss", "toy.deep.numbers"))
        self.loss = self.release.load("toy.deep.loss")

    def test_executes_the_named_files_alone(self):
        x = torch.ones(4, requires_grad=True)
        self.loss.mean(x).backward()
        self.assertEqual(x.grad.tolist(), [0.25] * 4)
        self.assertIs(self.loss.numbers, self.release.load("toy.deep.numbers"))
        self.assertIsInstance(self.loss.other, StandIn)
        self.assertNotIn("cluster_runtime", sys.modules)

    def test_methods_of_a_class_below_a_stand_in_are_its_own(self):
        self.assertEqual(object.__new__(self.loss.Trainer).loss(torch.ones(4)).item(), 1.0)

    def test_a_file_may_take_away_what_a_stand_in_never_had(self):
        taken = StandIn("other.Base")
        del taken.loss
        self.assertIsInstance(taken.loss, StandIn)

    def test_an_import_of_a_running_loss_meets_no_stand_in(self):
        with self.assertRaisesRegex(ImportError, "cluster_runtime is left out"):
            object.__new__(self.loss.Trainer).late()

    def test_a_file_that_fails_is_not_kept_and_torch_is_there_when_asked(self):
        broken = Release("toy", ("toy.deep.broken",))
        for _ in range(2):
            with self.assertRaisesRegex(KeyError, "broken"):
                broken.load("toy.deep.broken")
        self.assertNotIn("toy.deep.broken", sys.modules)

    def test_leaves_the_compiler_as_it_was(self):
        self.assertEqual(torch.compile.__module__, "torch")

    def test_hashes_what_is_executed(self):
        self.assertEqual([path for path, _ in hashes(self.release)], ["toy/deep/loss.py", "toy/deep/numbers.py"])

    def test_says_what_the_release_lacks(self):
        self.assertIsNone(file_of("toy.deep.absent"))
        with self.assertRaisesRegex(ModuleNotFoundError, "toy.deep.absent is not in this release of toy"):
            self.release.load("toy.deep.absent")

    def test_finds_the_class_that_has_a_method_of_its_own(self):
        release = Release("toy", ("toy.deep.trainers", "toy.deep.other"))
        found = lambda *modules: release.class_with("loss", modules)().loss()
        for _ in range(2):
            self.assertEqual(found("toy.deep.absent", "toy.deep.trainers"), "base")
            self.assertEqual(found("toy.deep.other"), "own", "another class, although it imports that one")
            self.assertEqual(found("toy.deep.trainers", "toy.deep.other"), "base")
        with self.assertRaisesRegex(NotImplementedError, "this release has no late"):
            release.class_with("late", ("toy.deep.other",))

    def test_tells_what_can_be_told(self):
        self.assertEqual(told(self.loss.mean, count=3, world=2), {"count": 3})


SUBJECTS = '# head\n\n[[subject]]\n# releases < 0.10.3\nname = "old"\n\n[[subject]]\n# releases >= 0.10.3, < 1\nname = "new"\n'


class SelectionTest(unittest.TestCase):
    def names(self, version: str) -> list:
        return [line.split('"')[1] for line in selected(SUBJECTS, version).splitlines() if line.startswith("name")]

    def test_compares_numbers_and_not_text(self):
        self.assertEqual(self.names("0.9.1"), ["old"])
        self.assertEqual(self.names("0.10.2"), ["old"])
        self.assertEqual(self.names("0.10.3"), ["new"])
        self.assertEqual(self.names("1.0"), [])

    def test_adds_lines_to_each_subject(self):
        self.assertIn('[[subject]]\nfolder = "x"\n# releases', selected(SUBJECTS, "0.9", '\nfolder = "x"'))

    def test_a_limit_of_cases_goes_with_its_line_alone(self):
        text = '[[subject]]\nname = "a"\nmost_cases = 30\nloss = "grpo"\n'
        self.assertEqual(without_limits(text), '[[subject]]\nname = "a"\nloss = "grpo"\n')
        self.assertEqual(without_limits(SUBJECTS), SUBJECTS)


def run(held: int, **findings: int) -> dict:
    cell = {"implementation": "a", "property": "p", "verdicts": {"held": held, "violated": sum(findings.values())}}
    return {"cells": [cell], "findings": [{"fingerprint": f"toy|sum|a|p|{cause}|loss", "count": count}
                                          for cause, count in findings.items()]}


JUDGED = """Some text.

| subject | property | cause | seen in | judgement | why |
|---|---|---|---|---|---|
| a, b | p, q | empty, scope | toy 1.0 | genuine | 0 / 0 |
| c | p | overflow | toy 2.0 | contract | exp |
"""


class JudgedTest(unittest.TestCase):
    def test_a_row_stands_for_each_of_its_names(self):
        judged = Judged(JUDGED)
        self.assertEqual(judged.judgement("b", "q", "scope"), "genuine")
        self.assertEqual(judged.judgement("c", "p", "overflow"), "contract")

    def test_what_no_row_has_is_new(self):
        judged = Judged(JUDGED)
        for row in (("d", "q", "scope"), ("c", "p", "empty"), ("a", "p", "overflow")):
            self.assertEqual(judged.judgement(*row), "**new**")

    def test_a_page_without_the_table_is_refused(self):
        with self.assertRaisesRegex(ValueError, "no table with the columns subject, property"):
            Judged("| a | b |\n|---|---|\n")

    def test_the_list_that_is_kept_can_be_read(self):
        kept = Path(__file__).parents[3] / "regressions" / "upstream" / "JUDGED.md"
        judgements = {row.judgement for row in Judged.read(kept).rows}
        self.assertLessEqual(judgements, {"genuine", "genuine, small", "genuine, far", "contract"})
        self.assertTrue(judgements)


class FlipsTest(unittest.TestCase):
    def test_a_cause_flips_although_another_stays(self):
        runs = [run(1, empty=2, overflow=3), run(4, empty=2), run(4, empty=2)]
        rows = table(["1", "2", "3"], runs, Judged(JUDGED))
        self.assertIn("| a | p | overflow | **violated** (3) | no | no | goes with 2 | **new** |", rows)
        self.assertIn("| a | p | empty | **violated** (2) | **violated** (2) | **violated** (2) |  | genuine |", rows)
        self.assertIn("2 faults, 1 of them new: nobody has judged them yet.", rows)

    def test_a_subject_that_a_release_lacks_does_not_flip(self):
        rows = table(["1", "2"], [{"cells": [], "findings": []}, run(1, empty=1)], Judged(JUDGED))
        self.assertIn("| a | p | empty | - | **violated** (1) |  | genuine |", rows)


if __name__ == "__main__":
    unittest.main()
