# SPDX-License-Identifier: Apache-2.0
"""The line in which a non-finite number begins."""

from __future__ import annotations

import json
import math
import sys
import types
import unittest
import warnings
from unittest import mock

import torch

import given_faulty_losses as faulty
from given_worker import stepped, sum_loss


class GuiltyLine(unittest.TestCase):
    def test_every_faulty_loss(self) -> None:
        self.assertGreaterEqual(len(faulty.FAULTY), 20)
        for given in faulty.FAULTY:
            with self.subTest(given.function.__name__), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                metadata, tensors = stepped(given.function, given.tensors, given.loss, explain=1)
                self.assertEqual(metadata["op"], "result", metadata)
                guilty = json.loads(metadata["guilty"])
                self.assertIn("# guilty", guilty["code"])
                self.assertEqual(guilty["pass"], given.stage)
                self.assertIn(given.text, guilty["text"])
                self.assertIn(f"given_faulty_losses.py:{guilty['line']}: ", guilty["text"])
                with open(faulty.__file__, encoding="utf-8") as file:
                    self.assertEqual(file.read().splitlines()[guilty["line"] - 1].strip(), guilty["code"])
                finite = bool(torch.isfinite(tensors["loss"]))
                self.assertEqual(finite, given.stage == "backward")

    def test_the_place_of_the_number(self) -> None:
        given = next(given for given in faulty.FAULTY if given.function.__name__ == "clamped_after_exp")
        guilty = json.loads(stepped(given.function, given.tensors, explain=1)[0]["guilty"])
        self.assertEqual(guilty["element"], [0, 1])
        given = next(given for given in faulty.FAULTY if given.function.__name__ == "masked_after_exp")
        guilty = json.loads(stepped(given.function, given.tensors, explain=1)[0]["guilty"])
        self.assertEqual(guilty["element"], [1, 2])

    def test_other_layouts_dtypes_and_upstream(self) -> None:
        given = faulty.FAULTY[0]
        for layout in ("offset", "padded_rows", "transposed"):
            guilty = json.loads(stepped(given.function, given.tensors, explain=1, layout=layout)[0]["guilty"])
            self.assertIn("# guilty", guilty["code"])
        tensors = {name: tensor.double() * (10 if "log" in name else 1) if tensor.dtype.is_floating_point else tensor
                   for name, tensor in given.tensors.items()}
        guilty = json.loads(stepped(given.function, tensors, explain=1, upstream=-0.5)[0]["guilty"])
        self.assertIn("0 (upstream) x inf (exp) = nan", guilty["text"])

    def test_silence_where_all_is_finite_or_nobody_asks(self) -> None:
        self.assertNotIn("guilty", stepped(sum_loss, explain=1)[0])
        given = faulty.FAULTY[0]
        self.assertNotIn("guilty", stepped(given.function, given.tensors)[0])

    def test_a_compiler_is_not_imported_for_it_and_kept_out_where_it_is(self) -> None:
        given = faulty.FAULTY[0]
        self.assertIn("guilty", stepped(given.function, given.tensors, explain=1)[0])
        self.assertNotIn("torch._dynamo", sys.modules)  # which takes seconds
        left_alone = []
        compiler = types.SimpleNamespace(disable=lambda function, *_, **__: left_alone.append(function) or function)
        with mock.patch.dict(sys.modules, {"torch._dynamo": compiler}), mock.patch.dict(vars(torch), _dynamo=compiler):
            self.assertIn("guilty", stepped(given.function, given.tensors, explain=1)[0])
        self.assertEqual(len(left_alone), 1)

    def test_an_infinity_that_was_put_in_is_passed_on(self) -> None:
        tensors = faulty.policy(advantage={(0, 0): math.inf})
        metadata, _ = stepped(sum_loss, tensors, explain=1)
        guilty = json.loads(metadata["guilty"])
        self.assertEqual(guilty["code"], "return (log_prob * advantage * mask).sum()")
        self.assertIn("-1 (log_prob) x inf (advantage) = -inf", guilty["text"])

    def test_the_backward_is_guilty_where_an_infinity_that_was_put_in_makes_the_loss(self) -> None:
        def subject(log_prob, mask):
            taken = log_prob[0, :1]
            return -torch.logsumexp(taken, dim=-1)  # its backward is inf - inf

        tensors = faulty.policy(log_prob={(0, 0): -math.inf})
        metadata, results = stepped(subject, tensors, explain=1)
        self.assertEqual(results["loss"].item(), math.inf)
        guilty = json.loads(metadata["guilty"])
        self.assertEqual((guilty["pass"], "# its backward" in guilty["code"]), ("backward", True), guilty)

    def test_a_long_chain_of_operations(self) -> None:
        def subject(log_prob, mask):
            x = log_prob.sum() * 0 + 100
            y = x.exp()  # born here
            for _ in range(3000):
                y = y + 1
            return y
        self.assertIn("# born here", json.loads(stepped(subject, explain=1)[0]["guilty"])["code"])
        def behind(log_prob, mask):
            y = log_prob.sum() * 0 + 100
            z = torch.where(y > 0, torch.zeros_like(y), y.exp())  # born here
            for _ in range(3000):
                z = z * 1.0
            return z
        self.assertIn("# born here", json.loads(stepped(behind, explain=1)[0]["guilty"])["code"])

    def test_a_non_finite_output_beside_a_finite_loss(self) -> None:
        def subject(log_prob, mask):
            per_token = (log_prob * mask) / mask  # born here
            return {"loss": log_prob.sum(), "per_token": per_token}
        guilty = json.loads(stepped(subject, explain=1)[0]["guilty"])
        self.assertIn("# born here", guilty["code"])
        self.assertIn("0 (mul) / 0 (mask) = nan", guilty["text"])

    def test_a_replay_that_fails_does_not_spoil_the_answer(self) -> None:
        calls = []
        def subject(log_prob, mask):
            calls.append(1)
            if len(calls) > 1:
                raise RuntimeError("only once")
            return log_prob.sum() / 0
        with mock.patch("sys.stderr"):
            metadata, tensors = stepped(subject, explain=1)
        self.assertEqual(metadata["op"], "result")
        self.assertFalse(torch.is_anomaly_enabled())


if __name__ == "__main__":
    unittest.main()
