# SPDX-License-Identifier: Apache-2.0
"""Values on their way in, and results on their way out."""

from __future__ import annotations

import collections
import dataclasses
import json
import math
import types
import unittest
from typing import Any, Callable, NamedTuple, Optional
from unittest import mock

import torch

import given_conversation as talk
import given_faulty_losses as faulty
from given_worker import asked, batch, stepped, sum_loss
from lossgate.worker.layout import expanded


class Arguments(unittest.TestCase):
    def seen(self, source: str, tensors: Optional[dict] = None, loss: str = "grpo", **more: Any) -> Any:
        """What a parameter with this source receives."""
        caught = []
        first = talk.FIELDS[loss][0]["name"]
        def subject(x, y):
            caught.append(y)
            return x.sum()
        metadata, _ = stepped(subject, tensors, loss, {"x": f"field:{first}", "y": source}, **more)
        self.assertEqual(metadata["op"], "result", metadata)
        return caught[0]

    def test_values_of_options_and_facts(self) -> None:
        self.assertIsNone(self.seen("option:dual_clip"))
        self.assertIs(self.seen("option:kl_weighted", option__kl_weighted="1"), True)
        for text in ("16", "1.6e1", "16.0"):
            value = self.seen("option:max_length", option__max_length=text)
            self.assertTrue(type(value) is int and value == 16)
        self.assertTrue(type(self.seen("option:log_ratio_clamp")) is float)
        self.assertEqual(self.seen("option:level"), "token")
        self.assertEqual(self.seen("reduction", reduction="sequence_mean"), "sequence_mean")
        for fact, value in {"total_tokens": 5, "total_sequences": 2, "total_rows": 3, "rank_rows": 3}.items():
            self.assertEqual(self.seen(f"fact:{fact}"), value)

    def test_masks(self) -> None:
        self.assertEqual(self.seen("field:mask").dtype, torch.bool)  # u8 is bool to torch
        for dtype in (torch.bool, torch.int64, torch.float32):
            self.assertEqual(self.seen("field:mask", {**batch(), "mask": batch()["mask"].to(dtype)}).dtype, dtype)
        self.assertEqual(self.seen("field:mask", {**batch(), "mask": batch()["mask"] * 2}).dtype, torch.uint8)
        self.assertEqual(self.seen("field:mask as float", batch(torch.bfloat16)).dtype, torch.bfloat16)
        self.assertEqual(self.seen("field:mask as int64").dtype, torch.int64)
        padding = self.seen("field:mask as padding")
        self.assertEqual(padding.tolist(), [[False] * 3, [False, False, True]])

    def test_labels_rows_and_tensors(self) -> None:
        label = faulty.logits()
        self.assertEqual(self.seen("field:label as valid as float", label, "jsd").tolist(), [[1, 1], [1, 0]])
        self.assertEqual(self.seen("field:label as ids", label, "jsd").tolist(), [[1, 2], [3, 0]])
        tensors = batch()
        tensors["mask"] = torch.tensor([[0, 1, 1], [0, 0, 0]], dtype=torch.uint8)
        self.assertEqual(self.seen("field:advantage as rows", tensors).tolist(), [-0.5, -1.0])
        count = self.seen("fact:total_tokens as tensor")
        self.assertTrue(isinstance(count, torch.Tensor) and count.dim() == 0 and int(count) == 5)

    def test_layouts(self) -> None:
        def subject(log_prob, advantage, mask):
            shapes.append((log_prob.stride(), advantage.storage_offset(), advantage.stride(), mask.dtype))
            return (log_prob * advantage * mask).sum()
        expected = {"contiguous": ((3, 1), 0, (3, 1), torch.bool), "offset": ((3, 1), 1, (3, 1), torch.bool),
                    "padded_rows": ((6, 1), 0, (6, 1), torch.bool), "transposed": ((1, 2), 0, (1, 2), torch.bool), "sliced": ((4, 1), 1, (4, 1), torch.bool)}
        replies = []
        for layout, wanted in expected.items():
            shapes: list = []
            metadata, tensors = stepped(subject, layout=layout)
            self.assertEqual(shapes, [wanted])
            self.assertEqual(metadata["mutated"], "[]")
            replies.append(tensors["gradient.log_prob"].tolist())
        self.assertEqual(replies, [replies[0]] * 5)

    def test_a_layout_of_each_field(self) -> None:
        strides: list = []
        def subject(log_prob, old_log_prob, ref_log_prob, advantage, mask):
            strides.extend(tensor.stride() for tensor in (log_prob, old_log_prob, ref_log_prob, advantage, mask))
            return (log_prob * advantage * mask).sum()
        _, tensors = stepped(subject, layout="transposed,contiguous,padded_rows,transposed,contiguous")
        self.assertEqual(strides, [(1, 2), (3, 1), (6, 1), (1, 2), (3, 1)])
        self.assertEqual(tensors["gradient.log_prob"].tolist(), stepped(sum_loss)[1]["gradient.log_prob"].tolist())

    def test_in_a_mixed_layout_equal_fields_share_memory_and_rows_of_one_number_are_expanded(self) -> None:
        seen: list = []
        def subject(log_prob, old_log_prob, advantage, mask):
            seen.append((old_log_prob.data_ptr() == log_prob.data_ptr(), old_log_prob.requires_grad, advantage.stride()))
            return (log_prob * advantage * mask).sum()
        tensors = batch()
        tensors["old_log_prob"] = tensors["log_prob"].clone()
        tensors["advantage"] = torch.tensor([[-2.0] * 3, [0.0] * 3])
        for layout, wanted in [("contiguous", (False, False, (3, 1))),
                               ("transposed", (False, False, (1, 2))),
                               ("transposed,contiguous,padded_rows,transposed,contiguous", (True, False, (1, 0)))]:
            metadata, reply = stepped(subject, tensors, layout=layout)
            self.assertEqual(seen.pop(), wanted)
            self.assertEqual(metadata["mutated"], "[]")
            self.assertEqual(reply["gradient.log_prob"].tolist(), (tensors["advantage"] * tensors["mask"]).tolist())
        tensors["advantage"][1, 2] = -0.0  # equal, and another number
        stepped(subject, tensors, layout="transposed,contiguous,padded_rows,transposed,contiguous")
        self.assertEqual(seen.pop()[2], (1, 2))

    def test_a_row_of_logits_is_never_expanded(self) -> None:
        self.assertIsNone(expanded(torch.zeros(2, 3, 4)))
        self.assertEqual(expanded(torch.zeros(2, 3)).stride(), (1, 0))

    def test_the_gradient_of_the_terms_lies_as_a_trainer_hands_it_on(self) -> None:
        seen: list = []
        class Doubled(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return 2 * x
            @staticmethod
            def backward(context, gradient):
                seen.append(gradient.stride())
                return 2 * gradient
        def terms(log_prob):
            return Doubled.apply(log_prob)
        masked, whole = batch(), {**batch(), "mask": torch.ones(2, 3, dtype=torch.uint8)}
        answering, _ = asked(terms, returns="per_token")
        for layout, tensors, wanted in [("contiguous", whole, (0, 0)), ("contiguous", masked, (3, 1)),
                                        ("transposed", whole, (1, 2)), ("padded_rows", masked, (6, 1)),
                                        ("transposed," * 4 + "padded_rows", whole, (6, 1))]:
            frame = talk.write_frame(talk.step("grpo", layout=layout), tensors)
            _, reply = talk.read_document(answering.answer(frame[8:])[8:])
            self.assertEqual(seen.pop(), wanted)
            self.assertTrue(torch.equal(reply["gradient.log_prob"], tensors["mask"] / 2.5))

    def test_upstream(self) -> None:
        for text in ("-0.5", "0x1p-1", "inf"):
            _, tensors = stepped(sum_loss, upstream=text)
            value = float.fromhex(text) if "x" in text else float(text)
            self.assertEqual(tensors["gradient.log_prob"][0, 0].item(), value)


class Results(unittest.TestCase):
    def raised(self, function: Callable, fragment: str, kind: str = "BadResult") -> dict:
        metadata, _ = stepped(function)
        self.assertEqual((metadata["op"], metadata.get("type"), metadata["id"]), ("raised", kind, "1"), metadata)
        self.assertIn(fragment, metadata["message"])
        return metadata

    def test_what_is_no_loss(self) -> None:
        cases = [
            (lambda log_prob, mask: None, "return loss"),
            (lambda log_prob, mask: log_prob.sum().item(), ".item()"),
            (lambda log_prob, mask: 3, "Python number"),
            (lambda log_prob, mask: log_prob.sum().detach(), "without a graph"),
            (lambda log_prob, mask: torch.tensor(1.0), "without a graph"),
            (lambda log_prob, mask: mask.sum(), "floating-point"),
            (lambda log_prob, mask: log_prob.sum() * 1j, "complex64"),
            (lambda log_prob, mask: (), "empty tuple"),
            (lambda log_prob, mask: {"total": log_prob.sum()}, "without the key 'loss' (keys: total)"),
            (lambda log_prob, mask: {"loss": None}, "None"),
            (lambda log_prob, mask: "loss", "a str"),
            (lambda log_prob, mask: types.SimpleNamespace(loss=1.5), "whose 'loss' is a float"),
        ]
        for function, fragment in cases:
            self.raised(function, fragment)
        self.raised(lambda log_prob, mask: log_prob, "shape [2, 3]", "NotReduced")
        self.raised(lambda log_prob, mask: log_prob.sum().reshape(1), "squeeze", "NotReduced")
        self.raised(lambda log_prob, mask: log_prob.sum(1), "reduce it", "NotReduced")
        self.raised(lambda log_prob, mask: (log_prob, {}), "a tuple that begins with a tensor of shape [2, 3]", "NotReduced")

    def test_a_named_tuple_is_read_by_its_names(self) -> None:
        out = NamedTuple("Out", [("clip_fraction", torch.Tensor), ("loss", torch.Tensor)])
        self.assertEqual(stepped(lambda log_prob, mask: out(mask.sum(), log_prob.sum()))[0]["op"], "result")

    def test_a_backward_that_changes_what_it_is_handed(self) -> None:
        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, log_prob):
                return log_prob.sum()

            @staticmethod
            def backward(ctx, gradient):
                return gradient.mul_(2.0).expand(2, 3)

        self.raised(lambda log_prob, mask: Scaled.apply(log_prob), "handed, in place")

    def test_numpy(self) -> None:
        try:
            import numpy
        except ImportError:
            self.skipTest("no numpy here")
        self.raised(lambda log_prob, mask: log_prob.detach().numpy(), "without .numpy()")
        self.raised(lambda log_prob, mask: numpy.float32(1), "without .numpy()")

    def test_forms_that_hold_a_loss_and_outputs(self) -> None:
        Output = dataclasses.make_dataclass("Output", ["loss", "per_token"])
        forms = [lambda l, p: {"loss": l, "per_token": p}, lambda l, p: (l, {"per_token": p}), lambda l, p: Output(l, p),
                 lambda l, p: [l, Output(l, p)]]
        for form in forms:
            def subject(log_prob, mask):
                return form((log_prob * mask).sum(), (log_prob * mask).t().contiguous().t())
            metadata, tensors = stepped(subject)
            self.assertEqual(metadata["op"], "result")
            self.assertEqual(tensors["per_token"].tolist(), (batch()["log_prob"] * batch()["mask"]).tolist())
            self.assertEqual(list(tensors), ["loss", "per_token", "gradient.log_prob"])

    def test_an_operation_returns_its_output(self) -> None:
        tensors = {name: batch()[name] for name in ("advantage", "mask")}
        metadata, reply = stepped(lambda advantage, mask: advantage * mask, tensors, "advantage_scaling")
        self.assertEqual((metadata["op"], list(reply)), ("result", ["scaled_advantage"]))

    def test_an_operation_returns_its_outputs_in_their_order_or_by_name(self) -> None:
        def rewards(reward, value, mask):
            return reward * mask, (reward + value) * mask
        tensors = {"reward": batch()["advantage"], "value": batch()["log_prob"], "mask": batch()["mask"]}
        for form in (tuple, list, lambda pair: {"return": pair[1], "advantage": pair[0]},
                     lambda pair: {"returns": pair[1], "advantages": pair[0]},
                     lambda pair: collections.namedtuple("Named", "returns advantages")(pair[1], pair[0]),
                     lambda pair: dataclasses.make_dataclass("Made", ["returns", "advantages"])(pair[1], pair[0])):
            metadata, reply = stepped(lambda reward, value, mask: form(rewards(reward, value, mask)), tensors, "gae")
            self.assertEqual((metadata["op"], list(reply)), ("result", ["advantage", "return"]))
            self.assertEqual(reply["advantage"].tolist(), rewards(**tensors)[0].tolist())
            self.assertEqual(reply["return"].tolist(), rewards(**tensors)[1].tolist())
        for alone in (lambda reward, value, mask: reward, lambda reward, value, mask: (reward, 1.0)):
            metadata, _ = stepped(alone, tensors, "gae")
            self.assertIn("return the tensors advantage, return, in this order or as a dict", str(metadata))
        metadata, _ = stepped(lambda reward, value, mask: {"advantage": reward, "score": value}, tensors, "gae")
        self.assertIn("without 'return' (keys: advantage, score)", str(metadata))

    def test_mutations(self) -> None:
        def in_place(log_prob, old_log_prob, advantage, mask):
            advantage.mul_(2)
            log_prob.data[0, 0] = 7
            return (log_prob - old_log_prob).mul_(mask).sum()
        metadata, _ = stepped(in_place)
        self.assertEqual(json.loads(metadata["mutated"]), ["log_prob", "advantage"])
        def in_graph(log_prob, mask):
            log_prob.div_(2.0)
            mask.logical_not_()
            return log_prob.sum()
        for layout in ("contiguous", "padded_rows"):
            metadata, tensors = stepped(in_graph, layout=layout)
            self.assertEqual(json.loads(metadata["mutated"]), ["log_prob", "mask"])
            self.assertEqual(tensors["gradient.log_prob"].tolist(), [[0.5] * 3] * 2)
        def same_value_other_bits(log_prob, old_log_prob, mask):
            old_log_prob.zero_().neg_()
            return log_prob.sum()
        zeros = {**batch(), "old_log_prob": torch.zeros(2, 3)}
        self.assertEqual(json.loads(stepped(same_value_other_bits, zeros)[0]["mutated"]), ["old_log_prob"])
        self.assertEqual(stepped(sum_loss)[0]["mutated"], "[]")

    def test_settings_that_are_left_changed(self) -> None:
        def careless(log_prob):
            torch.set_default_dtype(torch.float64)
            torch.manual_seed(0)
            torch.set_grad_enabled(False)
            with torch.enable_grad():
                return log_prob.sum()
        def raising(log_prob):
            torch.use_deterministic_algorithms(True)
            raise ValueError("no")
        def careful(log_prob):
            torch.rand(())
            with torch.no_grad(), torch.random.fork_rng():
                torch.manual_seed(0)
            return log_prob.sum()
        for _ in range(2):  # they are restored
            changed = json.loads(stepped(careless)[0]["changed_settings"])
            self.assertEqual(changed, ["torch.get_default_dtype() is torch.float64", "torch.is_grad_enabled() is False",
                                       "torch.initial_seed() is 0"])
            self.assertEqual(stepped(raising)[0]["op"], "raised")
            self.assertNotIn("changed_settings", stepped(careful)[0])

    def test_what_looks_for_a_guilty_line_leaves_no_setting_changed(self) -> None:
        def careless(log_prob):
            torch.set_default_dtype(torch.float64)
            return (log_prob * float("nan")).sum()
        metadata, _ = stepped(careless, explain="1")
        self.assertIn("guilty", metadata)
        self.assertEqual(torch.get_default_dtype(), torch.float32)

    def test_a_field_without_gradient(self) -> None:
        tensors = {"hidden": torch.ones(1, 2, 4), "weight": torch.ones(3, 4), "bias": torch.zeros(3),
                   "label": torch.zeros(1, 2, dtype=torch.int64), "old_log_prob": torch.zeros(1, 2),
                   "ref_log_prob": torch.zeros(1, 2), "advantage": torch.zeros(1, 2)}
        metadata, reply = stepped(lambda hidden, weight, bias: (hidden @ weight.detach().t()).sum(), tensors,
                                  "linear_grpo")
        self.assertEqual(json.loads(metadata["without_gradient"]), ["weight", "bias"])
        self.assertEqual(list(reply), ["loss", "gradient.hidden"])

    def terms_of(self, subject: Callable, tensors: Optional[dict] = None, loss: str = "grpo", **more: Any) -> tuple:
        answering, said = asked(subject, loss, returns="per_token")
        self.assertEqual((said["op"], said["reduction"]), ("hello", "1"), said)
        frame = talk.write_frame(talk.step(loss, **more), batch() if tensors is None else tensors)
        return talk.read_document(answering.answer(frame[8:])[8:])

    def test_terms_are_reduced_as_a_trainer_does(self) -> None:
        tensors = batch()
        mask, log_prob = tensors["mask"].bool(), tensors["log_prob"]
        rows, counts = torch.where(mask, log_prob, 0.0).sum(1), mask.sum(1)
        for reduction, loss in (("sum", rows.sum()), ("token_mean", rows.sum() / 5),
                                ("sequence_mean", (rows / counts).sum() / 2),
                                ("seq_mean_token_sum_norm", rows.sum() / 2 / 16)):
            for returned in (lambda x: x, lambda x: (x, 7), lambda x: {"loss": x},
                             lambda x: collections.namedtuple("Named", "ratio loss")(x.exp(), x)):
                subject = lambda log_prob, mask: returned(log_prob.masked_fill(~mask, math.nan))
                metadata, reply = self.terms_of(subject, tensors, reduction=reduction)
                self.assertEqual(metadata["op"], "result", metadata)
                self.assertAlmostEqual(reply["loss"].item(), loss.item(), 6, reduction)
                self.assertEqual(reply["per_token"].tolist(), torch.where(mask, log_prob, 0.0).tolist())
                self.assertEqual((reply["gradient.log_prob"] != 0).tolist(), mask.tolist())
        self.assertEqual(self.terms_of(lambda log_prob, mask: log_prob, reduction="none")[0]["op"], "trouble")

    def test_terms_in_16_bits_are_added_up_in_32(self) -> None:
        tensors = {name: tensor.new_full((1, 600), 1) for name, tensor in batch(torch.bfloat16).items()}
        _, reply = self.terms_of(lambda log_prob, mask: log_prob, tensors, reduction="sum")
        self.assertEqual((reply["loss"].item(), reply["loss"].dtype), (600.0, torch.float32))

    def test_pairs_have_no_mask(self) -> None:
        tensors = {field["name"]: torch.tensor([1.0, 2.0]) for field in talk.FIELDS["dpo"]}
        subject = lambda chosen_logps, rejected_logps: chosen_logps * rejected_logps
        metadata, reply = self.terms_of(subject, tensors, "dpo", reduction="sequence_mean")
        self.assertEqual((reply["loss"].item(), metadata["op"]), (2.5, "result"))

    def test_what_are_no_terms(self) -> None:
        for subject, fragment in ((lambda log_prob, mask: log_prob.sum(), "shape []"),
                                  (lambda log_prob, mask: log_prob.flatten(), "shape [6], where"),
                                  (lambda log_prob, mask: mask, "no tensor of numbers"),
                                  (lambda log_prob, mask: {"terms": log_prob}, "no tensor of numbers")):
            metadata, _ = self.terms_of(subject)
            self.assertEqual((metadata["op"], metadata["type"]), ("raised", "BadResult"))
            self.assertIn(fragment, metadata["message"])
        self.assertIn("not 'terms'", asked(lambda log_prob, mask: log_prob, returns="terms")[1]["message"])

    def test_gradients_that_nobody_asks_for(self) -> None:
        seen = []
        def subject(hidden, weight, bias):
            seen.append((torch.is_grad_enabled(), hidden.requires_grad, weight.requires_grad, bias.requires_grad))
            return (hidden @ weight.t() + bias).sum()
        tensors = {"hidden": torch.ones(1, 2, 4), "weight": torch.ones(3, 4), "bias": torch.zeros(3),
                   "label": torch.zeros(1, 2, dtype=torch.int64), "old_log_prob": torch.zeros(1, 2),
                   "ref_log_prob": torch.zeros(1, 2), "advantage": torch.zeros(1, 2)}
        for asked_for, state in (([], (False, False, False, False)), (["hidden"], (True, True, False, False)),
                                 (["hidden", "weight", "bias"], (True, True, True, True))):
            metadata, reply = stepped(subject, tensors, "linear_grpo", gradients=json.dumps(asked_for))
            self.assertEqual(seen.pop(), state)
            self.assertEqual(list(reply), ["loss", *(f"gradient.{name}" for name in asked_for)])
            self.assertEqual((metadata["without_gradient"], reply["loss"].item()), ("[]", 24.0))
        metadata, _ = stepped(subject, tensors, "linear_grpo", gradients='["label"]')
        self.assertEqual(metadata["op"], "trouble")
        self.assertIn("'label', which is no differentiable field", metadata["message"])

    def test_a_step_without_gradients_leaves_the_next_one_its_graph(self) -> None:
        answering, _ = asked(sum_loss)
        for listed, results in (("[]", ["loss"]), ('["log_prob"]', ["loss", "gradient.log_prob"])):
            frame = talk.write_frame(talk.step("grpo", gradients=listed), batch())
            self.assertEqual(list(talk.read_document(answering.answer(frame[8:])[8:])[1]), results)

    def test_exceptions_of_any_class_are_answers(self) -> None:
        class Rude(BaseException):
            def __str__(self): raise ValueError("no words")
        def thrown(error):
            def subject(log_prob, mask):
                raise error
            return subject
        cases = [(ValueError("a\nb"), "a b"), (SystemExit(3), "3"), (KeyboardInterrupt(), ""), (MemoryError(), ""),
                 (GeneratorExit(), ""), (Rude(), "could not be read"), (ValueError("\ud800"), "?"),
                 (ValueError("x" * 10**6), "x ...")]
        for error, fragment in cases:
            metadata = self.raised(thrown(error), fragment, type(error).__name__)
            self.assertEqual(metadata["code"], "raise error")
            self.assertLess(len(metadata["message"]), 3000)
        def deep(log_prob, mask): return deep(log_prob, mask)
        self.raised(deep, "recursion", "RecursionError")

    def test_the_line_that_raised_is_the_subjects_own(self) -> None:
        def subject(log_prob, mask):
            return torch.nn.functional.kl_div(log_prob,
                                              torch.zeros(7), reduction="sum")
        metadata = self.raised(subject, "size", "RuntimeError")
        self.assertEqual(metadata["code"], "return torch.nn.functional.kl_div(log_prob,")
        class Backward(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x.sum()

            @staticmethod
            def backward(ctx, gradient):
                raise ArithmeticError("in the backward")
        metadata = self.raised(lambda log_prob, mask: Backward.apply(log_prob), "in the backward", "ArithmeticError")
        self.assertEqual(metadata["code"], 'raise ArithmeticError("in the backward")')

    def test_an_exception_that_takes_the_device_with_it_says_so(self) -> None:
        def subject(log_prob, mask): raise RuntimeError("device-side assert triggered")
        frame = talk.write_frame(talk.step("grpo"), batch())[8:]
        for device, runs, wanted in (("cpu", False, None), ("named", True, None), ("named", False, "1")):
            with mock.patch("lossgate.worker.conversation.usable_device", lambda _: torch.device("cpu")), \
                    mock.patch("lossgate.worker.conversation.works", lambda _: runs):
                answering, _ = asked(subject, device=device)
                metadata, _ = talk.read_document(answering.answer(frame)[8:])
            self.assertEqual((metadata["op"], metadata.get("device_lost")), ("raised", wanted))

    def test_a_switched_off_graph_does_not_outlive_its_step(self) -> None:
        calls = []
        def subject(log_prob, mask):
            calls.append(torch.is_grad_enabled())
            torch.set_grad_enabled(False)
            return log_prob.sum()
        answering, _ = asked(subject)
        frame = talk.write_frame(talk.step("grpo"), batch())[8:]
        try:
            for _ in range(2):
                answering.answer(frame)
        finally:
            torch.set_grad_enabled(True)
        self.assertEqual(calls, [True, True])


if __name__ == "__main__":
    unittest.main()
