# SPDX-License-Identifier: Apache-2.0
"""The page is made of records alone, and says where a goal is missed."""

from __future__ import annotations

import json
import math
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))

import buckets
import gates
import mutation
import run_gates
import sections
import witnesses
from figure import table
from kept_record import Record, arguments
from page import page, read_records


def record(kind: str, *units: dict) -> dict:
    return {"kind": kind, "statement": f"What {kind} is.", "commit": "abc1234", "command": f"ci/evidence.sh {kind}",
            "seed": 1, "effort": "quick", "instruction_set": "avx2", "torch": "loaded", "seconds": 2.0,
            "units": {str(i): unit for i, unit in enumerate(units)}}


def null_unit(**changed: object) -> dict:
    return {"loss": "grpo", "dtype": "f32", "implementation": "eager", "answer": "zeros", "cases": 100,
            "accepted": False, "caught": {"case": 1}, "violated": 90, "right": 5, "refused": 0,
            "unseen": {"held": 5}, **changed}


def kill(case: int, cause: str = "mean of means") -> dict:
    return {"cases": case, "seconds": 0.1, "cause": cause}


def variant(name: str, windows: list, **changed: object) -> dict:
    return {"loss": "grpo", "variant": name, "fault": "mean of means", "windows": windows, "budget_seconds": 60.0,
            "tenfold": False, "hostile": kill(20), "benign_cases": 100, "benign": None, "twin_cases": 10, "twin_seconds": 0.01,
            "twin_violated": 0, **changed}


def figure(section: tuple, start: str) -> sections.Figure:
    return next(f for f in section[0] if f.name.startswith(start))


class Page(unittest.TestCase):
    def test_a_null_answer_that_is_accepted_is_named(self) -> None:
        self.assertTrue(sections.null_answers([null_unit()])[0][0].met)
        figures, body = sections.null_answers([null_unit(), null_unit(accepted=True, caught=None, answer="ones")])
        self.assertFalse(figures[0].met)
        self.assertIn("1 of 2", figures[0].measured)
        self.assertTrue(any("accepted: ones" in line for line in body))

    def test_an_answer_that_is_always_right_is_left_out(self) -> None:
        figures, body = sections.null_answers([null_unit(), null_unit(right=100, caught=None)])
        self.assertIn("0 of 1", figures[0].measured)
        self.assertTrue(any("Left out" in line for line in body))

    def test_recall_counts_seeds_and_names_who_was_missed(self) -> None:
        section = sections.recall([variant("seen", [kill(1), kill(2)]), variant("slow", [None, kill(8)]),
                                   variant("never", [None, None], hostile=None)])
        self.assertIn("1 of 3", figure(section, "faulty variants noticed").measured)
        self.assertIn("3 of 6", figure(section, "the same").measured)
        self.assertIn("1 of 2", figure(section, "of those not within").measured)
        self.assertFalse(figure(section, "of those not within").met)
        text = "\n".join(section[1])
        self.assertLess(text.index("`never`"), text.index("`slow`"))
        self.assertNotIn("`seen`", text)

    def test_what_only_long_cases_show_is_counted_apart(self) -> None:
        def long(*windows: dict | None, alarms: int = 0) -> dict:
            return {"loss": "grpo", "variant": "long", "fault": "wrong beyond a length", "of_length": True,
                    "windows": list(windows), "twin_cases": 2, "twin_seconds": 9.0, "twin_violated": alarms}

        section = sections.recall([variant("seen", [kill(1)]), long(kill(1), None)])
        self.assertIn("1 of 1", figure(section, "faulty variants noticed").measured)
        self.assertIn("1 of 2", figure(section, "of those that only long").measured)
        self.assertFalse(figure(section, "of those that only long").met)
        self.assertTrue(figure(sections.recall([variant("seen", [kill(1)]), long(kill(1))]), "of those that only long").met)
        self.assertIn("0 of 12", figure(section, "cases on which").measured)
        self.assertFalse(figure(sections.recall([variant("seen", [kill(1)]), long(kill(1), alarms=1)]), "cases on which").met)

    def test_a_twin_that_is_accused_misses_the_goal(self) -> None:
        self.assertTrue(figure(sections.recall([variant("a", [kill(1)])]), "cases on which").met)
        self.assertFalse(figure(sections.recall([variant("a", [kill(1)], twin_violated=1)]), "cases on which").met)

    def test_a_cause_is_right_where_it_is_the_registered_class(self) -> None:
        section = sections.cause([variant("a", [kill(1), kill(1, "dead signal"), None])])
        self.assertIn("1 of 2", section[0][0].measured)

    def test_the_median_of_steps_is_that_of_the_values(self) -> None:
        for middle in (0.0085, 0.0095, 0.0105):  # which one step holds, or its neighbour
            values = [middle * 2.0 ** (i / 400) for i in range(-1000, 1001)]
            steps = sections.Counter(math.ceil(4 * math.log2(value)) for value in values)
            self.assertAlmostEqual(sections.step_median(steps) / middle, 1.0, delta=0.01)
        self.assertEqual(sections.step_median(sections.Counter({4: 3})), 2.0 ** (3.5 / 4))
        self.assertEqual(sections.step_median(sections.Counter()), 0.0)

    def test_bounds_put_parts_of_a_run_together(self) -> None:
        part = {"loss": "grpo", "dtype": "f32", "cases": 1, "values": 10, "outside": 0, "uncertain": 0,
                "reference": 1e-9, "adversary": 0.5, "adversary_at_half_the_error": 2.5,
                "textbook": {"benign/loss": {"values": 2, "largest": 0.1, "steps": {"-40": 2}}}}
        loose = figure(sections.bounds([part, part]), "outputs whose benign median")
        self.assertEqual(loose.measured, "1 of 1")
        other = {**part, "textbook": {"benign/loss": {"values": 9, "largest": 0.5, "steps": {"-4": 9}}}}
        self.assertEqual(figure(sections.bounds([part, other]), "outputs whose benign median").measured, "0 of 1")

    def test_bounds_say_how_many_values_have_none(self) -> None:
        part = {"loss": "grpo", "dtype": "f32", "values": 10, "outside": 0, "uncertain": 0, "reference": 1e-9, "adversary": 0.5,
                "adversary_at_half_the_error": 2.5, "textbook": {}, "judged": {"benign": 99, "hostile": 3},
                "without_bound": {"benign": 1, "hostile": 1}}
        section = sections.bounds([part, part])
        self.assertEqual(figure(section, "benign values that fit").measured, "1 %")
        self.assertEqual(figure(section, "hostile values that fit").measured, "25 %")
        self.assertIn("| 1 % | 25 % |", section[1][-2])
        old = {key: value for key, value in part.items() if key not in ("judged", "without_bound")}
        self.assertFalse([f for f in sections.bounds([old])[0] if "that fit" in f.name], "a record of before says nothing of it")

    def test_the_filter_may_change_no_verdict(self) -> None:
        part = {"loss": "grpo", "dtype": "f32", "cases": 600_000, "verdicts": 10, "held": 4, "decided": 3,
                "different": 0, "by_verdict": {"held": 8, "violated": 2}}
        section = sections.filtered([part, part])
        self.assertTrue(all(f.met for f in section[0]))
        self.assertIn("16 held, 4 violated | 75", section[1][-1])
        self.assertFalse(sections.filtered([part, {**part, "different": 1}])[0][0].met)

    def test_sensitivity_holds_the_worst_loss_against_the_goal(self) -> None:
        def unit(noticed: float, tenfold: int = 1, missed: int = 0) -> dict:
            fault = {"faults": 10, "missed": missed, "without_digit": 0, "smallest_noticed": noticed,
                     "beyond": {"size": 3.0, "noticed": 10, "tenfold": tenfold},
                     "smallest_implied": 2.0**-20, "ratio": {"median": 1.0, "p95": 1.1, "largest": 1.2}}
            return {"loss": "grpo", "dtype": "f32", "implementation": "eager", "cases": 10,
                    "faults": {"the loss": fault}}
        self.assertTrue(sections.sensitivity([unit(2.0**-20)])[0][0].met)
        self.assertFalse(sections.sensitivity([unit(2.0**-20), unit(2.0**-19)])[0][0].met)
        self.assertFalse(sections.sensitivity([unit(2.0**-20, missed=1)])[0][0].met)
        tenfold = "faults of 3 x implied noticed, were every error"
        self.assertTrue(figure(sections.sensitivity([unit(2.0**-20)]), tenfold).met)
        self.assertFalse(figure(sections.sensitivity([unit(2.0**-20, 10)]), tenfold).met)

    def test_a_record_that_holds_no_fault_has_no_figure(self) -> None:
        self.assertEqual(sections.sensitivity([])[0], [])
        nothing = {"loss": "grpo", "dtype": "f32", "implementation": "eager", "cases": 1,
                   "faults": {"the loss": {"faults": 0, "missed": 0, "without_digit": 1}}}
        self.assertEqual([f.name for f in sections.sensitivity([nothing])[0]], ["smallest the loss noticed"])

    def test_a_bias_is_seen_where_it_moves_the_mean_by_six_deviations(self) -> None:
        def unit(moved: float) -> dict:
            text = {"cases": 100, "mean": 0.01, "deviation_of_mean": 0.01, "mean_of_biased": 0.01 + moved, "gain": 1e5}
            return {"loss": "grpo", "dtype": "f32", "implementation": "eager", "bias": 1e-7,
                    "outputs": {"the loss": text, "gradients": {"cases": 0}}}
        self.assertTrue(figure(sections.bias([unit(0.07)]), "implementations of which").met)
        self.assertFalse(figure(sections.bias([unit(0.07), unit(0.05)]), "implementations of which").met)

    def test_failures_of_two_faults_under_one_name_are_impure(self) -> None:
        def failing(variant: str, fault: str, **causes: int) -> dict:
            return {"loss": "grpo", "variant": variant, "fault": fault, "failures": sum(causes.values()), "fingerprints": 2,
                    "faults": [{"cause": cause, "failures": n} for cause, n in causes.items()]}

        apart = buckets.section([failing("a", "x", x=50), failing("b", "y", y=50)])
        self.assertTrue(figure(apart, "buckets by loss").met)
        self.assertEqual(figure(apart, "purity").measured, "100 %")
        mixed = buckets.section([failing("a", "x", x=50), failing("b", "y", x=50)])
        self.assertFalse(figure(mixed, "buckets by loss").met)
        self.assertFalse(figure(mixed, "purity").met)
        split = buckets.section([failing("a", "x", x=40, z=10)])
        self.assertFalse(figure(split, "buckets by loss").met)
        self.assertTrue(any("x 80" in line for line in split[1]))

    def test_a_baseline_has_recall_and_false_alarms_side_by_side(self) -> None:
        def unit(oracle: str, sound: bool, alarm: bool, seconds: float) -> dict:
            return {"oracle": oracle, "loss": "a", "sound": sound, "alarm": alarm, "cases": 100, "seconds": seconds,
                    "why": "not close" if alarm else ""}
        figures, body = sections.baselines([
            unit("Hypothesis", False, True, 1.0), unit("Hypothesis", True, True, 10.0),
            unit("lossgate", False, True, 1.0), unit("lossgate", True, False, 0.4),
            unit("lossgate, a compiled loss", True, False, 0.1)])
        self.assertTrue(figures[0].met)
        self.assertEqual([figure.measured for figure in figures[1:]], ["25.0 x", "100.0 x"])
        row = next(line for line in body if line.startswith("| Hypothesis"))
        self.assertIn("1 of 1 = 100 %", row)
        self.assertIn("1 not close", row)

    def test_a_change_that_no_test_notices_is_shown_with_its_reason(self) -> None:
        def mutant(number: int, killed_by: object) -> dict:
            return {"number": number, "file": "reference/sums.h", "line": number, "kind": "comparison",
                    "change": "< is <=", "code": f"if (n < {number}) {{", "killed_by": killed_by}

        units = [mutant(1, "reference_test: Sums.Grow"), mutant(2, "properties_test: time"), mutant(3, None), mutant(4, None)]
        reasons = mutation.reasons("# why\nreference/sums.h | < is <= | if (n < 3) { | n is never 3\n")
        with mock.patch.object(mutation, "reasons", lambda _: reasons):
            figures, body = mutation.section(units)
        self.assertEqual([figure.met for figure in figures], [False, None, False, False])
        self.assertTrue(figures[0].measured.startswith("2 of 3"), figures[0])
        self.assertTrue(figures[1].measured.startswith("2 of 4"), figures[1])
        self.assertIn("| reference/sums.h:3 | `< is <=` | `if (n < 3) {` | n is never 3 |", body)
        self.assertIn("| reference/sums.h:4 | `< is <=` | `if (n < 4) {` | **unexplained** |", body)

    def test_every_reason_is_that_of_a_line_that_stands(self) -> None:
        root = mutation.REASONS.parents[2]
        reasons = mutation.reasons(mutation.REASONS.read_text(encoding="utf-8"))
        gone = [(file, code) for file, _, code in reasons
                if code not in map(str.strip, (root / file).read_text(encoding="utf-8").splitlines())]
        self.assertEqual(gone, [])
        self.assertEqual(mutation.reasons("a.h | < is <= | x |= b | c; | y\n"), {("a.h", "< is <=", "x |= b | c;"): "y"})

    def test_a_formula_has_witnesses_where_two_projects_agree(self) -> None:
        def unit(release: str, held: int, violated: int, loss: str = "grpo") -> dict:
            return {"release": release, "subject": "f", "loss": loss, "dtype": "f32", "cases": 40, "worst_ratio": 0.5,
                    "verdicts": {"held": held, "violated": violated, "vacuous": 40 - held - violated}}
        enough = [unit("trl==1.0", 40, 0), unit("verl==0.9", 39, 0)]
        self.assertTrue(witnesses.section(enough)[0][0].met)
        for second in (unit("trl==0.9", 40, 0), unit("verl==0.9", 39, 1), unit("verl==0.9", 0, 0)):
            self.assertFalse(witnesses.section([enough[0], second])[0][0].met, second)
        # Another file of the same project is no other project.
        self.assertFalse(witnesses.section([unit("liger==1", 1, 0), unit("liger+triton==1", 1, 0)])[0][0].met)

    def test_a_gate_that_is_red_or_accuses_a_sound_implementation_misses_the_goal(self) -> None:
        def cell(implementation: str, violated: int, cases: int) -> dict:
            return {"loss": "grpo", "implementation": implementation, "dtype": "f32", "property": "finite_forward", "cases": cases,
                    "verdicts": {"held": cases - violated, "violated": violated}}

        def gate(status: int, violated: int) -> dict:
            subjects = [{"loss": "grpo", "name": name, "cause": cause}
                        for name, cause in (("eager", ""), ("kernel", ""), ("wrong", "mean of means"))]
            return run_gates.counted({"subjects": subjects, "troubles": [], "kills": [{"killed": True}, {"killed": status == 0}],
                                      "cells": [cell("eager", violated, 300), cell("kernel", 0, 310), cell("wrong", 7, 300)]},
                                     status)

        def section(of: list[dict]) -> tuple:
            return gates.section([{"seed": 1, "commit": "abc1234", "seconds": 2.0, **gates.counted(of)}])

        clean = section([gate(0, 0)] * 200)
        self.assertTrue(figure(clean, "gates with other seeds that are red").met)
        self.assertTrue(figure(clean, "gates with other seeds that accuse").met)
        self.assertEqual("122,000", figure(clean, "sound answers").measured)
        self.assertEqual("62,000", figure(clean, "cases of a loss").measured)
        self.assertFalse(figure(clean, "cases of a loss").met)
        self.assertFalse(figure(section([gate(0, 0)] * 199), "gates with other seeds that are red").met)
        red = section([gate(0, 0)] * 199 + [gate(1, 0)])
        self.assertFalse(figure(red, "gates with other seeds that are red").met)
        self.assertTrue(figure(red, "gates with other seeds that accuse").met)
        self.assertIn("399 of 400", figure(red, "kills").measured)
        accusing = section([gate(0, 0)] * 199 + [gate(1, 2)])
        self.assertFalse(figure(accusing, "gates with other seeds that accuse").met)
        self.assertIn("| grpo.eager f32: finite_forward | 1 |", accusing[1])
        self.assertIn("| grpo/f32 | 62,000 | 122,000 | 1 |", accusing[1])
        self.assertIn("| 1 | abc1234 | 200 | 2 | 1 | 1 |", accusing[1])

    def test_a_record_goes_on_where_it_was_and_only_for_the_same_commit_and_effort(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            def begun(*more: str) -> Record:
                given = arguments("A.").parse_args(["--out", folder, "--commit", "abc", "--command", "c", *more])
                return Record("some", "What?", given)
            record = begun()
            record.add({"one": {"seconds": 2.0}})
            record.add({"one": {"seconds": 3.0}, "two": {"seconds": 1.0}})
            again = begun()
            self.assertIn("one", again)
            self.assertEqual(again.content["seconds"], 4.0)
            self.assertEqual(json.loads(again.file.read_text())["units"]["two"], {"seconds": 1.0})
            for other in (["--full"], ["--seed", "2"], ["--commit", "abd"]):
                self.assertNotIn("one", begun(*other), other)

    def test_every_section_says_where_its_figures_are_from(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "null_answers.json").write_text(json.dumps(record("null_answers", null_unit())))
            text = page(read_records(Path(folder)))
        self.assertIn("`ci/evidence.sh null_answers`, commit abc1234, seed 1", text)
        self.assertIn("Not measured here: bounds, filter, false alarms, gates, recall", text)

    def test_what_is_not_measured_again_stays_as_it_was(self) -> None:
        accepted = page({"null_answers": record("null_answers", null_unit(accepted=True, caught=None)),
                         "recall": record("recall", variant("slow", [None]))})
        self.assertEqual(page({}, accepted), accepted)
        again = page({"null_answers": record("null_answers", null_unit())}, accepted)
        self.assertIn("| Null answers | null answers that a gate accepts | 0 | 0 of 1 ", again)
        self.assertNotIn("1 of 1 ", again.split("## Recall")[0].split("| Recall |")[0])
        for line in accepted.splitlines():
            if line.startswith("| Recall |") or line in accepted.split("## Recall")[1]:
                self.assertIn(line, again.splitlines())
        self.assertIn("Not measured here: bounds, filter, false alarms, gates, buckets", again)

    def test_a_cell_does_not_end_at_a_bar(self) -> None:
        self.assertEqual(table(("a",), [("x|y",)])[-1], "| x\\|y |")


if __name__ == "__main__":
    unittest.main()
