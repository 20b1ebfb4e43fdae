# SPDX-License-Identifier: Apache-2.0
"""The forms for machines keep to their schemas, whatever a record says; the summary keeps to its bound.

    LOSSGATE_PROGRAM=build/no-torch/bin/lossgate_fake python report/forms_test.py

Needs fastjsonschema and lxml from PyPI (ci/requirements.txt). The schemas lie in report/testdata (README.md there);
LOSSGATE_SARIF_SCHEMA names the whole one of SARIF 2.1.0, to be asked as well.
"""

from __future__ import annotations

import copy
import json
import os
import pathlib
import sys
import unittest
from typing import Any

from given_run import PROGRAM, GivenRun, lossgate

SCHEMAS = pathlib.Path(__file__).resolve().parent / "testdata"
MOST_OF_SUMMARY = 64 << 10
HOSTILE = ["<script>window.ran = 1</script>", "]]><b>", "&lt;&#60;", "\u202e reversed \u2066", "\x00\x01\x1b[31m\ufffe\uffff",
           "a\nb\tc\rd", "`'\"|# [x](javascript:1) @everyone", "../../../etc/passwd", "C:\\x y.py", "http://example.invalid/a b",
           "%00%zz", "损失 🔥", "", "x" * (1 << 20)]


def missing() -> str:
    """Why the schemas cannot be asked here; empty if they can."""
    if not PROGRAM:
        return "LOSSGATE_PROGRAM names no command"
    try:
        import fastjsonschema  # noqa: F401
        import lxml.etree  # noqa: F401
    except ImportError as error:
        return f"no {error.name} in {sys.executable}; see ci/requirements.txt"
    return ""


class FormsTest(GivenRun):
    @classmethod
    def setUpClass(cls) -> None:
        import fastjsonschema
        from lxml import etree
        super().setUpClass()
        files = [SCHEMAS / "sarif-written.schema.json"]
        files += [pathlib.Path(whole) for whole in filter(None, [os.environ.get("LOSSGATE_SARIF_SCHEMA")])]
        cls.sarif_rules = [staticmethod(fastjsonschema.compile(json.loads(file.read_text(encoding="utf-8"))))
                           for file in files]
        cls.junit_rules = etree.XMLSchema(etree.parse(SCHEMAS / "junit-10.xsd"))

    def forms_of(self, name: str, record: dict[str, Any]) -> pathlib.Path:
        file = self.folder / name / "run.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(record), encoding="utf-8")
        done = lossgate("report", file, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return file.parent

    def check(self, folder: pathlib.Path) -> dict[str, Any]:
        """The SARIF log, after all forms in the folder were held against their rules."""
        from lxml import etree
        log = json.loads((folder / "report.sarif").read_text(encoding="utf-8"))
        for keeps_to in self.sarif_rules:
            keeps_to(log)
        self.junit_rules.assertValid(etree.parse(folder / "junit.xml", etree.XMLParser(huge_tree=True)))
        self.assertLessEqual((folder / "summary.md").stat().st_size, MOST_OF_SUMMARY)
        return log

    def with_findings(self, count: int) -> dict[str, Any]:
        record = copy.deepcopy(self.real)
        kinds = record["findings"]
        record["findings"] = [dict(kinds[i % len(kinds)], ordinal=i, fingerprint=f"{kinds[i % len(kinds)]['fingerprint']}|{i}",
                                   state=("red", "known", "waived", "tolerated", "expired waiver")[i % 5])
                              for i in range(count)]
        return record

    def test_of_a_real_run(self) -> None:
        from lxml import etree
        log = self.check(self.folder / "real")
        results = log["runs"][0]["results"]
        self.assertEqual(len(results), len(self.real["findings"]))
        rules = {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]}
        self.assertEqual(rules, {each["name"] for each in self.real["properties"]})
        self.assertLessEqual({result["ruleId"] for result in results}, rules)
        tests = etree.parse(self.folder / "real" / "junit.xml").getroot()
        self.assertEqual(int(tests.get("failures")), len(tests.findall(".//failure")))
        self.assertEqual(int(tests.get("tests")), len(tests.findall(".//testcase")))

    def test_of_a_run_that_looked_for_no_causes(self) -> None:
        made = lossgate("gate", "--corpus", "empty", "--loss", "grpo", "--cases", 8, "--jobs", 1, "--impl", "fake_wrong",
                        "--no-causes", "--out", "bare", cwd=self.folder)
        self.assertEqual(made.returncode, 1, made.stderr)
        self.assertTrue(self.check(self.folder / "bare")["runs"][0]["results"])
        record = json.loads((self.folder / "bare" / "run.json").read_text(encoding="utf-8"))
        self.assertFalse(record["request"]["causes"])
        self.assertEqual({f["no_experiment"] for f in record["findings"]}, {"--no-causes"})
        for form in ("junit.xml", "summary.md", "report.html", "report.sarif"):
            text = (self.folder / "bare" / form).read_text(encoding="utf-8")
            self.assertIn("no experiment was made: --no-causes", text, form)
            self.assertNotIn("no experiment says more", text, form)

    def test_of_a_thousand_findings_in_every_state(self) -> None:
        record = self.with_findings(1000)
        folder = self.forms_of("thousand", record)
        results = self.check(folder)["runs"][0]["results"]
        placed = [r for r in results if r.get("locations", [{}])[0].get("physicalLocation", {}).get("region")]
        size = (folder / "summary.md").stat().st_size
        print(f"1,000 findings: {len(placed)} with file and line in SARIF, {size} bytes of Markdown", file=sys.stderr)
        self.assertGreaterEqual(len(placed), 950)
        self.assertEqual(len({json.dumps(r["partialFingerprints"]) for r in results}), 1000)
        self.assertEqual(sum("suppressions" in r for r in results), 400)

    def test_of_hostile_texts_in_every_field(self) -> None:
        def filled(value: Any, text: str) -> Any:
            if isinstance(value, dict):
                return {key: filled(inner, text) for key, inner in value.items()}
            if isinstance(value, list):
                return [filled(inner, text) for inner in value]
            return text if isinstance(value, str) and value not in ("inf", "-inf", "nan") else value
        for number, text in enumerate(HOSTILE):
            record = filled(self.real, text)
            record["troubles"] = [text]
            record["properties"] = record["properties"][:1]  # which is what tells rules apart
            with self.subTest(text[:40]):
                self.check(self.forms_of(f"hostile-{number}", record))

    def test_of_a_run_that_found_nothing(self) -> None:
        self.check(self.forms_of("green", dict(self.real, findings=[], kills=[], cells=[])))


if __name__ == "__main__":
    reason = missing()
    if reason:
        print(f"left out: {reason}")
    else:
        unittest.main()
