# SPDX-License-Identifier: Apache-2.0
"""Annotations, from a record."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import tempfile
import unittest

from lossgate import annotate

FINDING = {
    "fingerprint": "grpo|sum|mine|finite_backward|cause|gradient.log_prob@masked", "loss": "grpo", "implementation": "mine",
    "property": "finite_backward", "dtype": "f32", "grade": "rare", "cause": "non-finite value behind a mask",
    "reach": "", "detail": "100 % of it", "source_file": "losses/a,b.py", "source_line": 7,
    "source_text": "exp(89) = inf at a,b.py:7: r = exp(d)", "source_flags": "--config ci/lossgate.toml",
    "place": "gradient.log_prob[0, 0]", "inputs": ["mask 0"], "options": ["clip_low 0.2", "level token"],
    "actual": "nan", "expected": "0", "allowed": 0.0, "half_width": 0.0, "error_ratio": "inf", "ordinal": 3, "count": 2,
    "case": "00", "case_file": "findings/00.case",
    "repro": "lossgate replay findings/00.case", "state": "red", "state_reason": "", "case_text": "",
}
RECORD = {
    "schema": 1, "version": "0.1.0", "cases_planned": 9, "cases_run": 9, "interrupted": False, "troubles": [],
    "request": {"profile": "hostile", "seed": 1},
    "properties": [{"name": "finite_backward", "tier": "core", "statement": "Every gradient is finite."}],
    "subjects": [{"name": "mine", "twin": "", "relaxed_by_contract": 0, "never_asked": []}],
    "cells": [{"loss": "grpo", "implementation": "mine", "dtype": "f32", "property": name,
               "verdicts": {"held": 5, "violated": 2, "vacuous": 1, "skipped": 1, "note": 0}} for name in ("a", "b")],
    "findings": [FINDING],
}


def record(**changes: object) -> dict:
    return {**copy.deepcopy(RECORD), **changes}


class Annotations(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        before = os.getcwd()
        os.chdir(scratch.name)
        self.addCleanup(os.chdir, before)

    def write(self, path: str) -> None:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        open(path, "w").close()

    def test_a_red_finding_is_an_error_at_its_line_which_is_found_beside_the_config(self) -> None:
        self.write("ci/losses/a,b.py")
        [command] = annotate.annotations(record())
        head, _, message = command[2:].partition("::")
        self.assertEqual(head, "error title=finite_backward violated by mine,file=ci/losses/a%2Cb.py,line=7")
        self.assertIn("Every gradient is finite.%0Acode      exp(89) = inf at a,b.py:7", message)
        self.assertIn("100 %25 of it", message)
        self.assertIn("%0Aoptions   clip_low 0.2, level token%0A", message)
        self.assertNotIn("\n", command)

    def test_a_config_is_found_in_a_folder_with_a_blank(self) -> None:
        self.write("my code/losses/a,b.py")
        finding = {**FINDING, "source_flags": "--config 'my code/lossgate.toml'"}
        self.assertIn("file=my code/losses/a%2Cb.py", annotate.annotations(record(findings=[finding]))[0])

    def test_the_replay_of_a_brought_loss_is_one_from_here(self) -> None:
        command = "lossgate replay findings/00.case --config ci/lossgate.toml --impl mine"
        finding = {**FINDING, "repro": command}
        [shown] = annotate.annotations(record(findings=[finding]), "out of here")
        self.assertIn("lossgate replay 'out of here/findings/00.case' --config ci/lossgate.toml --impl mine", shown)
        [own] = annotate.annotations(record(findings=[{**finding, "source_flags": ""}]), "out of here")
        self.assertIn(command, own)

    def test_a_file_outside_of_the_workspace_is_not_named(self) -> None:
        self.assertNotIn("file=", annotate.annotations(record())[0])

    def test_states_decide_the_level_and_accepted_findings_are_silent(self) -> None:
        findings = [{**FINDING, "state": state} for state in ("known", "waived", "tolerated", "expired waiver")]
        levels = [command.split()[0] for command in annotate.annotations(record(findings=findings))]
        self.assertEqual(levels, ["::error", "::notice"])

    def test_a_step_has_ten_annotations_of_a_level(self) -> None:
        findings = [{**FINDING, "state": state} for state in ("tolerated", "red") for _ in range(12)]
        levels = [command.split()[0] for command in annotate.annotations(record(findings=findings))]
        self.assertEqual(levels, ["::error"] * 10 + ["::notice"] * 10)

    def test_a_trouble_is_an_error(self) -> None:
        self.assertIn("::error title=lossgate could not do its work::disk%0Afull",
                      annotate.annotations(record(findings=[], troubles=["disk\nfull"])))

    def test_nothing_but_annotations_is_printed(self) -> None:
        with open("run.json", "w", encoding="utf-8") as file:
            json.dump(RECORD, file)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertEqual(annotate.main(["run.json"]), 0)
        self.assertEqual(printed.getvalue().splitlines(), annotate.annotations(record()))

    def test_what_is_no_record_is_said(self) -> None:
        for text in ("{", "[]", '{"schema": 2}', None):
            if text is not None:
                with open("run.json", "w", encoding="utf-8") as file:
                    file.write(text)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                self.assertEqual(annotate.main(["run.json" if text is not None else "none.json"]), 2)
            self.assertTrue(printed.getvalue().startswith("::error title=lossgate::"), printed.getvalue())


if __name__ == "__main__":
    unittest.main()
