# SPDX-License-Identifier: Apache-2.0
"""The worker against the protocol: frames to the byte, matching of arguments, refusals, containment.

    python worker_test.py
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import math
import os
import struct
import sys
import tempfile
import textwrap
import threading
import types
import unittest
import warnings
from typing import Any, Callable, Optional
from unittest import mock

import torch

import given_conversation as talk
import given_faulty_losses as faulty
import worker

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")


def batch(dtype: torch.dtype = torch.float32) -> dict:
    return {name: tensor.to(dtype) if tensor.dtype.is_floating_point else tensor
            for name, tensor in faulty.policy().items()}


def asked(subject: Any, loss: str = "grpo", arguments: Optional[dict] = None, **more: str) -> tuple:
    """A worker that has said hello for this subject, and what it said."""
    answering = worker.Worker(subject, contained=True)
    answer = answering.answer(talk.write_frame(talk.hello(loss, arguments=arguments, **more))[8:])
    return answering, talk.read_document(answer[8:])[0]


def sources(subject: Any, loss: str = "grpo", arguments: Optional[dict] = None, **more: str) -> dict:
    metadata = asked(subject, loss, arguments, **more)[1]
    if metadata["op"] != "hello":
        raise AssertionError(metadata)
    return json.loads(metadata["arguments"])


def stepped(subject: Any, tensors: Optional[dict] = None, loss: str = "grpo", arguments: Optional[dict] = None,
            **more: Any) -> tuple[dict, dict]:
    answering, said = asked(subject, loss, arguments)
    if said["op"] != "hello":
        raise AssertionError(said)
    frame = talk.write_frame(talk.step(loss, **more), batch() if tensors is None else tensors)
    return talk.read_document(answering.answer(frame[8:])[8:])


def sum_loss(log_prob: torch.Tensor, advantage: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (log_prob * advantage * mask).sum()


class Golden(unittest.TestCase):
    """Exchanges as bytes: they change only when the protocol does."""

    def test_hello(self) -> None:
        request, reply = GOLDEN["hello"]
        with mock.patch.object(worker.platform, "python_version", lambda: "3.11.2"), \
                mock.patch.object(torch, "__version__", "2.11.0"), \
                mock.patch.object(worker.Subject, "_place", lambda *_: ("", 7, "def sum_loss(...):")):
            answer = worker.Worker(sum_loss).answer(base64.b64decode(request)[8:])
        self.assertEqual(base64.b64encode(answer).decode(), reply)

    def test_step(self) -> None:
        answering, _ = asked(sum_loss)
        request, reply = GOLDEN["step"]
        answer = answering.answer(base64.b64decode(request)[8:])
        self.assertEqual(base64.b64encode(answer).decode(), reply)

    def test_the_reply_is_what_it_should_be(self) -> None:
        metadata, tensors = talk.read_document(base64.b64decode(GOLDEN["step"][1])[8:])
        self.assertEqual(metadata, {"op": "result", "id": "17", "mutated": "[]", "without_gradient": "[]"})
        self.assertEqual(tensors["loss"].item(), -1.5)
        self.assertEqual(tensors["gradient.log_prob"].tolist(), [[0.5, 0.0]])
        self.assertEqual(tensors["gradient.log_prob"].dtype, torch.bfloat16)


class Frames(unittest.TestCase):
    def answer(self, document: bytes, said: bool = True) -> dict:
        answering = asked(sum_loss)[0] if said else worker.Worker(sum_loss)
        return talk.read_document(answering.answer(document)[8:])[0]

    def refused(self, document: bytes, fragment: str, said: bool = True) -> None:
        metadata = self.answer(document, said)
        self.assertEqual(metadata["op"], "trouble")
        self.assertIn(fragment, metadata["message"])

    def with_header(self, header: Any, data: bytes = b"") -> bytes:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data

    def test_broken_documents(self) -> None:
        one = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
        self.refused(b"", "ends within")
        self.refused(struct.pack("<Q", 99) + b"{}", "ends within")
        self.refused(self.with_header(b"no json"), "no safetensors document")
        self.refused(self.with_header(b"[]"), "no safetensors document")
        self.refused(self.with_header(b'{"__metadata__":{"op":"step","op":"step"}}'), "twice")
        self.refused(self.with_header({"__metadata__": {"op": 3}}), "strings")
        self.refused(self.with_header({"__metadata__": {}}), "unknown op None")
        self.refused(self.with_header({"__metadata__": {"op": "dance", "id": "5"}}), "'dance'")
        step = talk.step("grpo")
        self.refused(self.with_header({"__metadata__": step, "log_prob": one}), "bytes of data", True)
        self.refused(self.with_header({"__metadata__": step, "log_prob": {**one, "shape": [2]}}, b"1234"), "4 bytes")
        self.refused(self.with_header({"__metadata__": step, "log_prob": {**one, "dtype": "F8"}}, b"1234"), "F8")
        self.refused(self.with_header({"__metadata__": step, "log_prob": {**one, "data_offsets": [4, 8]}}, b"12345678"), "hole")
        self.refused(self.with_header({"__metadata__": step, "log_prob": one, "mask": one}, b"1234"), "overlap")
        self.refused(self.with_header({"__metadata__": step, "other": one}, b"1234"), "no field of grpo")
        self.refused(self.with_header({"__metadata__": step, "log_prob": one}, b"1234"), "lacks the field")
        self.refused(self.with_header({"__metadata__": step}), "before a successful hello", said=False)

    def test_a_bad_request_leaves_the_worker_alive_and_is_named(self) -> None:
        answering, _ = asked(sum_loss)
        bad = talk.write_frame({"op": "dance", "id": "5"})[8:]
        self.assertEqual(talk.read_document(answering.answer(bad)[8:])[0]["id"], "5")
        metadata = talk.read_document(answering.answer(talk.write_frame(talk.step("grpo", "6"), batch())[8:])[8:])[0]
        self.assertEqual((metadata["op"], metadata["id"]), ("result", "6"))

    def test_what_breaks_the_worker_itself_is_said(self) -> None:
        self.refused(self.with_header(b'{"__metadata__":{"op":"step","id":"\xff"}}'), "the worker itself failed")

    def test_metadata_anywhere_and_braces_in_strings(self) -> None:
        frame = talk.write_frame(talk.step("grpo", '}"},{', note='a},"b{'), batch())[8:]
        metadata = self.answer(frame)
        self.assertEqual((metadata["op"], metadata["id"]), ("result", '}"},{'))
        size = struct.unpack("<Q", frame[:8])[0]
        header = json.loads(frame[8:8 + size])
        header["__metadata__"] = header.pop("__metadata__")  # now last
        metadata = self.answer(self.with_header(header, frame[8 + size:]))
        self.assertEqual(metadata["op"], "result")

    def test_bits_of_every_dtype_survive(self) -> None:
        patterns = {torch.float64: [0x7ff8dead0000beef, 1, -1 << 63], torch.float32: [0x7fc01234, 1, -1 << 31],
                    torch.float16: [0x7e01, 1, -1 << 15], torch.bfloat16: [0x7fc1, 1, -1 << 15]}
        integers = {8: torch.int64, 4: torch.int32, 2: torch.int16}
        for dtype, values in patterns.items():
            raw = torch.tensor([values], dtype=integers[dtype.itemsize])
            tensors = {name: torch.zeros(1, 3, dtype=dtype) for name in ("log_prob", "old_log_prob", "ref_log_prob")}
            tensors.update(advantage=raw.view(dtype), mask=torch.ones(1, 3, dtype=torch.uint8))
            _, reply = stepped(lambda log_prob, advantage, mask:
                               {"loss": log_prob.sum(), "per_token": advantage}, tensors)
            self.assertEqual(reply["per_token"].dtype, dtype)
            self.assertEqual(reply["per_token"].view(integers[dtype.itemsize]).tolist(), [values])
            self.assertEqual(reply["gradient.log_prob"].dtype, dtype)

    def test_empty_tensors(self) -> None:
        tensors = {name: tensor[:0] for name, tensor in batch().items()}
        metadata, reply = stepped(sum_loss, tensors)
        self.assertEqual((metadata["op"], reply["loss"].item()), ("result", 0.0))
        self.assertEqual(list(reply["gradient.log_prob"].shape), [0, 3])

    def test_equal_headers_with_other_values_and_equal_shapes_with_other_options(self) -> None:
        answering, _ = asked(lambda log_prob, mask, clip_low: log_prob.sum() * clip_low)
        for index, (clip, value) in enumerate([("0.5", 1.0), ("0.5", 2.0), ("0.25", 2.0), ("0.5", 4.0)]):
            tensors = {**batch(), "log_prob": torch.full((2, 3), value)}
            frame = talk.write_frame(talk.step("grpo", str(index), option__clip_low=clip), tensors)
            metadata, reply = talk.read_document(answering.answer(frame[8:])[8:])
            self.assertEqual(metadata["id"], str(index))
            self.assertEqual(reply["loss"].item(), 6 * value * float(clip))


def trl_style(per_token_logps, old_per_token_logps, ref_per_token_logps, advantages, completion_mask, epsilon_low=0.2,
              epsilon_high=0.2, beta=0.0, num_items_in_batch=None, importance_sampling_level="token", delta=None,
              max_completion_length=None, temperature=1.0): ...


def liger_style(per_token_logps, attention_mask, advantages, full_attention_mask, ref_per_token_logps=None,
                old_per_token_logps=None, epsilon_low=0.2, epsilon_high=0.2, beta=0.04, loss_type="dapo",
                max_completion_length=None, importance_sampling_level="token", vllm_is_ratio=None, delta=None,
                use_bias_correction_kl=False, num_items_in_batch=None): ...


def verl_policy(old_log_prob, log_prob, advantages, response_mask, cliprange=None, cliprange_low=None,
                cliprange_high=None, clip_ratio_c=3.0, loss_agg_mode="token-mean"): ...


def verl_value(vpreds, returns, values, response_mask, cliprange_value, loss_agg_mode="token-mean"): ...


def verl_kl(logprob, ref_logprob, kl_penalty): ...


def skyrl_kl(log_probs, log_probs_base, loss_mask=None, kl_estimator_type="k3"): ...


def skyrl_critic(values, old_values, returns, loss_mask=None, value_clip=0.2): ...


def areal_actor(logprobs, proximal_logprobs, old_logprobs, advantages, eps_clip, loss_mask, eps_clip_higher=None,
                c_clip=None, behav_imp_weight_cap=None): ...


def areal_critic(value, old_value, target_value, value_eps_clip, loss_mask=None, loss_fn_type="mse"): ...


def torchtune_ppo(pi_old_logprobs, pi_logprobs, advantages, padding_masks=None): ...


def unsloth_style(ref, new, old, input_ids=None, mask=None, beta=0.04, advantages=None, **kwargs): ...


def gkd_style(student_logits, teacher_logits, labels=None, beta=0.5, temperature=1.0, reduction="batchmean",
              num_items_in_batch=None): ...


def liger_linear(_input, lin_weight, selected_token_ids, bias, ref_per_token_logps, old_per_token_logps,
                 advantages): ...


def sparse_style(student_logits, teacher_topk_ids, teacher_topk_logprobs, labels, beta=0.5, loss_add_tail=True): ...


def selective(logits, index, grad_log_prob, grad_entropy): ...


def short(lp, old, adv, m, eps=0.2): ...


EXPECTED = [
    (trl_style, "grpo", "log_prob old_log_prob ref_log_prob advantage mask clip_low clip_high kl_penalty "
                        "fact:total_tokens level dual_clip max_length -"),
    (liger_style, "grpo", "log_prob mask advantage mask ref_log_prob old_log_prob clip_low clip_high kl_penalty - "
                          "max_length level - dual_clip kl_weighted fact:total_tokens"),
    (verl_policy, "grpo", "old_log_prob log_prob advantage mask - clip_low clip_high dual_clip -"),
    (verl_value, "value_clip", "value return old_value mask value_clip -"),
    (verl_kl, "kl_penalty", "log_prob ref_log_prob kl_estimator"),
    (skyrl_kl, "kl_penalty", "log_prob ref_log_prob mask kl_estimator"),
    (skyrl_critic, "value_clip", "value old_value return mask value_clip"),
    (areal_actor, "grpo", "log_prob old_log_prob old_log_prob advantage clip_low mask clip_high dual_clip -"),
    (areal_critic, "value_clip", "value old_value return value_clip mask -"),
    (torchtune_ppo, "grpo", "old_log_prob log_prob advantage mask"),
    (gkd_style, "jsd", "student_logits teacher_logits label beta temperature reduction num_items"),
    (liger_linear, "linear_grpo", "hidden weight label bias ref_log_prob old_log_prob advantage"),
    (sparse_style, "sparse_jsd", "student_logits support_token teacher_log_prob label beta tail"),
    (selective, "log_prob", "logits label log_prob_weight entropy_weight"),
    (short, "grpo", "log_prob old_log_prob advantage mask clip_low"),
]


class Matching(unittest.TestCase):
    def full(self, loss: str, name: str) -> str:
        fields = [field["name"] for field in talk.FIELDS[loss]]
        if ":" in name or name == "reduction":
            return name
        return f"field:{name}" if name in fields else f"option:{name}"

    def test_the_signatures_of_released_trainers(self) -> None:
        for function, loss, expected in EXPECTED:
            with self.subTest(function.__name__):
                names = function.__code__.co_varnames[:function.__code__.co_argcount]
                wanted = {name: self.full(loss, source) for name, source in zip(names, expected.split())
                          if source != "-"}
                self.assertEqual(len(names), len(expected.split()))
                self.assertEqual(sources(function, loss), wanted)

    def test_unsloth_takes_the_rest_by_keyword(self) -> None:
        found = sources(unsloth_style)
        self.assertEqual((found["new"], found["old"], found["ref"]),
                         ("field:log_prob", "field:old_log_prob", "field:ref_log_prob"))
        self.assertEqual(found["clip_high"], "option:clip_high")
        self.assertNotIn("input_ids", found)

    def test_every_catalogue_name_matches_itself(self) -> None:
        for loss, fields in talk.FIELDS.items():
            names = [field["name"] for field in fields] + [option["name"] for option in talk.OPTIONS[loss]]
            names = [name for name in names if name != "return"]
            function = eval(f"lambda {', '.join(name.upper() for name in names)}: 0")
            self.assertEqual([source.split(":")[1] for source in sources(function, loss).values()], names)

    def test_overrides_and_json(self) -> None:
        def loss(a, b, config, agg="token-mean"): ...
        found = sources(loss, arguments={"a": "field:log_prob", "b": "field:mask as float", "config": 'json:{"x": [1]}',
                                         "agg": "reduction"})
        self.assertEqual(found["b"], "field:mask as float")
        self.assertEqual(found["config"], 'json:{"x": [1]}')

    def test_default_leaves_a_parameter_alone(self) -> None:
        def loss(log_prob, mask, clip_low=0.7): return log_prob.sum() * clip_low
        self.assertNotIn("clip_low", sources(loss, arguments={"clip_low": "default"}))
        _, tensors = stepped(loss, arguments={"clip_low": "default"})
        self.assertAlmostEqual(tensors["gradient.log_prob"][0, 0].item(), 0.7, places=6)

    def test_a_reduction_in_another_language_keeps_its_default(self) -> None:
        reductions = {"reductions": '["token_mean", "sum"]'}
        self.assertNotIn("reduction", sources(gkd_style, "jsd", **reductions))
        def loss(student_logits, teacher_logits, label, reduction="sum"): ...
        self.assertEqual(sources(loss, "jsd", **reductions)["reduction"], "reduction")

    def test_partial_keeps_what_was_given(self) -> None:
        def loss(log_prob, mask, clip_low): return log_prob.sum() * clip_low
        given = functools.partial(loss, clip_low=0.5)
        self.assertEqual(list(sources(given)), ["log_prob", "mask"])
        self.assertEqual(stepped(given)[1]["gradient.log_prob"][0, 0].item(), 0.5)

    def test_positional_only(self) -> None:
        def loss(advantage, log_prob, clip_low=0.25, /, scale=2.0, *, mask): return log_prob.sum() * scale * clip_low
        metadata, tensors = stepped(loss, option__clip_low="0.5")
        self.assertEqual(tensors["gradient.log_prob"][0, 0].item(), 1.0)
        _, tensors = stepped(loss, arguments={"clip_low": "default"})
        self.assertEqual(tensors["gradient.log_prob"][0, 0].item(), 0.5)

    def test_keywords_get_everything_but_facts(self) -> None:
        def loss(**everything):
            assert "world" not in everything and everything["reduction"] == "token_mean"
            return everything["log_prob"].sum() * everything["clip_low"]
        self.assertEqual(stepped(loss)[0]["op"], "result")
        found = sources(loss, arguments={"n": "fact:total_tokens"})
        self.assertEqual(found["n"], "fact:total_tokens")
        def strict(log_prob, mask, **others):
            assert not others
            return log_prob.sum()
        self.assertEqual(stepped(strict, arguments={"others": "default"})[0]["op"], "result")

    def test_modules_classes_instances_and_static_methods(self) -> None:
        class Module(torch.nn.Module):
            def __init__(self, clip_eps_low, clip_eps_high=0.2, log_prob=None):
                super().__init__()
                self.factor = clip_eps_low + clip_eps_high

            def forward(self, log_probs, old_log_probs, action_mask):
                return log_probs.sum() * self.factor
        found = sources(Module)
        self.assertEqual(list(found), ["clip_eps_low", "clip_eps_high", "log_probs", "old_log_probs", "action_mask"])
        answering, _ = asked(Module)
        for low in (0.25, 0.5):  # another instance for other options
            frame = talk.write_frame(talk.step("grpo", option__clip_low=low, option__clip_high=0.5), batch())
            self.assertEqual(talk.read_document(answering.answer(frame[8:])[8:])[1]["gradient.log_prob"][0, 0], low + 0.5)
        self.assertEqual(stepped(Module(1.0, 1.0))[1]["gradient.log_prob"][0, 0], 2.0)

        class Callable:
            def __call__(self, log_prob, mask): return log_prob.sum()

            @staticmethod
            def static(log_prob, mask): return log_prob.sum()

            def method(self, log_prob, mask): return log_prob.sum()
        for subject in (Callable, Callable(), Callable.static, Callable().method):
            self.assertEqual(stepped(subject)[0]["op"], "result")
        self.assertIn("'self'", asked(Callable.method)[1]["message"])

        class Bad(torch.nn.Module):
            def __init__(self): raise RuntimeError("no such luck")
            def forward(self, log_prob, mask): ...
        metadata, _ = stepped(Bad)
        self.assertEqual((metadata["op"], metadata["message"]), ("raised", "no such luck"))

    def test_autograd_functions(self) -> None:
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, log_prob, mask): return log_prob.sum() * 2

            @staticmethod
            def backward(ctx, gradient): return gradient * 2 * torch.ones(2, 3), None

        class SetUp(torch.autograd.Function):
            @staticmethod
            def forward(log_prob, mask): return log_prob.sum() * 2

            @staticmethod
            def setup_context(ctx, inputs, output): pass

            @staticmethod
            def backward(ctx, gradient): return gradient * 2 * torch.ones(2, 3), None
        for subject in (Double, Double.apply, SetUp):
            metadata, tensors = stepped(subject)
            self.assertEqual(tensors["gradient.log_prob"].tolist(), [[2.0] * 3] * 2)

    def test_what_reaches_the_function(self) -> None:
        def loss(log_prob, mask, cliprange, reduction, total_tokens, world_size): ...
        metadata = asked(loss)[1]
        self.assertEqual(metadata["options"], '["clip_low"]')
        self.assertEqual(metadata["tied"], '{"clip_high": "clip_low"}')
        self.assertEqual(metadata["reduction"], "1")
        self.assertEqual(metadata["facts"], '["total_tokens", "world"]')
        metadata = asked(sum_loss)[1]
        self.assertEqual((metadata["options"], metadata["reduction"], metadata["facts"]), ("[]", "0", "[]"))
        self.assertNotIn("tied", metadata)
        self.assertTrue(metadata["code"].startswith("def sum_loss("))
        self.assertTrue(metadata["file"].endswith("worker_test.py"))

    def test_refusals_say_what_to_write(self) -> None:
        def config(log_prob, mask, config): ...
        def nothing(x1, x2): ...
        class Holder: ...
        cases = [(config, {}, "arguments.config = "), (config, {"config": "field:lp"}, "no field 'lp'"),
                 (config, {"config": "option:nope"}, "no option 'nope'"), (config, {"config": "fact:no"}, "no fact"),
                 (config, {"config": "json:token-mean"}, 'json:"token-mean"'), (config, {"config": "x"}, "no source"),
                 (config, {"config": "field:mask as words"}, "unknown conversion"), (config, {"config": 3}, "write a source"),
                 (sum_loss, {"maks": "field:mask"}, "has no parameter 'maks'"), (nothing, {}, "x1"),
                 (Holder, {}, "without __call__"), (lambda: 0, {}, "no parameter of"), (3, {}, "not a function"), (max, {}, "does not tell")]
        for subject, arguments, fragment in cases:
            metadata = asked(subject, arguments=arguments)[1]
            self.assertEqual(metadata["op"], "trouble", fragment)
            self.assertIn(fragment, metadata["message"])
            self.assertNotIn("\n", metadata["message"])


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
        self.assertEqual(self.seen("fact:total_tokens"), 5)

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
                    "padded_rows": ((6, 1), 0, (6, 1), torch.bool), "transposed": ((1, 2), 0, (1, 2), torch.bool)}
        replies = []
        for layout, wanted in expected.items():
            shapes: list = []
            metadata, tensors = stepped(subject, layout=layout)
            self.assertEqual(shapes, [wanted])
            self.assertEqual(metadata["mutated"], "[]")
            replies.append(tensors["gradient.log_prob"].tolist())
        self.assertEqual(replies, [replies[0]] * 4)

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
            (lambda log_prob, mask: log_prob, "shape [2, 3]"),
            (lambda log_prob, mask: log_prob.sum().reshape(1), "squeeze"),
            (lambda log_prob, mask: log_prob.sum(1), "reduce it"),
            (lambda log_prob, mask: mask.sum(), "floating-point"),
            (lambda log_prob, mask: log_prob.sum() * 1j, "complex64"),
            (lambda log_prob, mask: (), "empty tuple"),
            (lambda log_prob, mask: (log_prob, {}), "a tuple that begins with a tensor of shape [2, 3]"),
            (lambda log_prob, mask: {"total": log_prob.sum()}, "without the key 'loss' (keys: total)"),
            (lambda log_prob, mask: {"loss": None}, "None"),
            (lambda log_prob, mask: "loss", "a str"),
            (lambda log_prob, mask: types.SimpleNamespace(loss=1.5), "whose 'loss' is a float"),
        ]
        for function, fragment in cases:
            self.raised(function, fragment)

    def test_numpy(self) -> None:
        try:
            import numpy
        except ImportError:
            self.skipTest("no numpy here")
        self.raised(lambda log_prob, mask: log_prob.detach().numpy(), "without .numpy()")
        self.raised(lambda log_prob, mask: numpy.float32(1), "without .numpy()")

    def test_forms_that_hold_a_loss_and_outputs(self) -> None:
        @dataclasses.dataclass
        class Output:
            loss: torch.Tensor
            per_token: torch.Tensor
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

    def test_a_field_without_gradient(self) -> None:
        tensors = {"hidden": torch.ones(1, 2, 4), "weight": torch.ones(3, 4), "bias": torch.zeros(3),
                   "label": torch.zeros(1, 2, dtype=torch.int64), "old_log_prob": torch.zeros(1, 2),
                   "ref_log_prob": torch.zeros(1, 2), "advantage": torch.zeros(1, 2)}
        metadata, reply = stepped(lambda hidden, weight, bias: (hidden @ weight.detach().t()).sum(), tensors,
                                  "linear_grpo")
        self.assertEqual(json.loads(metadata["without_gradient"]), ["weight", "bias"])
        self.assertEqual(list(reply), ["loss", "gradient.hidden"])

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

    def test_an_infinity_that_was_put_in_is_passed_on(self) -> None:
        tensors = faulty.policy(advantage={(0, 0): math.inf})
        metadata, _ = stepped(sum_loss, tensors, explain=1)
        guilty = json.loads(metadata["guilty"])
        self.assertEqual(guilty["code"], "return (log_prob * advantage * mask).sum()")
        self.assertIn("-1 (log_prob) x inf (advantage) = -inf", guilty["text"])

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


class Contained(unittest.TestCase):
    """The worker as a process of its own."""

    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name: str, text: str) -> str:
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return path

    def start(self, **options: Any) -> talk.Process:
        process = talk.Process(WORKER, folder=self.folder.name, **options)
        self.addCleanup(process.stop)
        return process

    def test_a_conversation(self) -> None:
        self.write("mine.py", '''
            import sys
            from beside import factor
            print("printed while importing")
            def loss(log_prob, mask):
                print("printed while called")
                assert sys.stdin.read() == ""
                if log_prob[0, 0] > 5: sys.exit(3)
                if log_prob[0, 0] > 4: raise KeyboardInterrupt
                return (log_prob * mask).sum() * factor
            ''')
        self.write("beside.py", "factor = 3.0\n")
        self.write("random.py", "raise RuntimeError('not the one of the standard library')\n")
        process = self.start()
        metadata, _ = process.ask(talk.hello("grpo", "py:mine.py:loss", ["."]))
        self.assertEqual((metadata["op"], metadata["file"], metadata["line"], metadata["code"]),
                         ("hello", "mine.py", "5", "def loss(log_prob, mask):"))
        self.assertEqual(json.loads(metadata["versions"])["torch"], torch.__version__)
        for value, kind in ((1.0, "result"), (6.0, "SystemExit"), (4.5, "KeyboardInterrupt"), (2.0, "result")):
            tensors = {**batch(), "log_prob": torch.full((2, 3), value)}
            metadata, reply = process.ask(talk.step("grpo"), tensors)
            self.assertEqual(metadata.get("type", metadata["op"]), kind)
            if kind == "result":
                self.assertEqual(reply["loss"].item(), 15.0 * value)
            else:
                self.assertEqual(metadata["file"], "mine.py")
        status, printed = process.close()
        self.assertEqual(status, 0)
        self.assertIn("printed while importing", printed)
        self.assertIn("printed while called", printed)

    def test_subjects_that_cannot_be_had(self) -> None:
        self.write("fine.py", "def loss(log_prob, mask): return log_prob.sum()\nnumber = 3\n")
        self.write("broken.py", "def loss(:\n")
        self.write("quits.py", "import sys\nsys.exit(1)\n")
        self.write("lacks.py", "import no_such_module_anywhere\n")
        self.write("package/__init__.py", "")
        self.write("package/part.py", "from . import other\ndef loss(log_prob, mask): return log_prob.sum()\n")
        self.write("package/other.py", "")
        process = self.start()
        cases = [("py:none.py:loss", "no file none.py"), ("py:fine.py:los", "no 'los'; it has loss"),
                 ("py:fine.py:number", "not a function"), ("fine.py:loss", "write py:"), ("py:fine.py", "write py:"),
                 ("py:broken.py:loss", "SyntaxError"), ("py:quits.py:loss", "SystemExit"),
                 ("py:lacks.py:loss", "install it"), ("py:no_such_package.x:loss", "no_such_package"),
                 ("py:package/part.py:loss", "py:PACKAGE.MODULE:NAME")]
        for entry, fragment in cases:
            metadata, _ = process.ask(talk.hello("grpo", entry, ["."]))
            self.assertEqual(metadata["op"], "trouble", entry)
            self.assertIn(fragment, metadata["message"])
            self.assertNotIn("\n", metadata["message"])
        metadata, _ = process.ask(talk.hello("grpo", "py:package.part:loss", ["."]))
        self.assertEqual((metadata["op"], metadata["file"]), ("hello", os.path.join("package", "part.py")))
        metadata, _ = process.ask(talk.hello("grpo", "py:fine.py:loss", ["."], device="quantum"))
        self.assertIn('write device = "cpu"', metadata["message"])
        metadata, _ = process.ask({**talk.hello("grpo", "py:fine.py:loss", ["."]), "protocol": "2"})
        self.assertIn("speaks 1", metadata["message"])
        self.assertEqual(process.close()[0], 0)

    def test_names_that_are_no_text_or_belong_to_others(self) -> None:
        self.write("code.py", "def loss(log_prob, mask): return log_prob.sum() / 0\n")
        self.write(os.fsdecode(b"na\xffme.py"), "def loss(log_prob, mask): raise ValueError('x')\n")
        process = self.start()
        self.assertEqual(process.ask(talk.hello("grpo", "py:code.py:loss", ["."]))[0]["file"], "code.py")
        metadata, _ = process.ask(talk.step("grpo", explain="1"), batch())
        self.assertEqual(json.loads(metadata["guilty"])["file"], "code.py")
        names = [name for name in os.listdir(self.folder.name) if name.startswith("na")]
        metadata, _ = process.ask(talk.hello("grpo", f"py:{names[0]}:loss", ["."]))
        self.assertEqual((metadata["op"], metadata["file"]), ("hello", "na?me.py"))
        self.assertEqual(process.ask(talk.step("grpo"), batch())[0]["file"], "na?me.py")

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_forked_child_does_not_answer(self) -> None:
        self.write("mine.py", '''
            import os
            def loss(log_prob, mask):
                os.fork()
                return log_prob.sum()
            ''')
        process = self.start()
        process.ask(talk.hello("grpo", "py:mine.py:loss", ["."]))
        for index in range(5):
            metadata, _ = process.ask(talk.step("grpo", str(index)), batch())
            self.assertEqual((metadata["op"], metadata["id"]), ("result", str(index)))
        self.assertEqual(process.close()[0], 0)

    def test_a_cut_frame_ends_the_worker(self) -> None:
        process = self.start()
        process.process.stdin.write(struct.pack("<Q", 100) + b"{}")
        self.assertEqual(process.close()[0], 0)

    def test_an_absurd_length_is_trouble(self) -> None:
        process = self.start()
        metadata, _ = talk.read_document(process.send(struct.pack("<Q", 1 << 60))[8:])
        self.assertIn("too long", metadata["message"])

    def test_torch_absent_and_too_old(self) -> None:
        process = self.start(flags=("-S", "-E"))
        self.assertIn("install torch", process.ask(talk.hello("grpo", "py:mine.py:loss"))[0]["message"])
        self.assertEqual(process.close()[0], 0)
        names = "float64 float32 float16 bfloat16 int64 int32 uint8 bool".split()
        self.write("old/torch/__init__.py", "__version__ = '1.13.1'\n" + "".join(f"{name} = '{name}'\n" for name in names))
        process = self.start(environment={"PYTHONPATH": os.path.join(self.folder.name, "old")})
        self.assertIn("1.13.1 is too old; 2.1", process.ask(talk.hello("grpo", "py:mine.py:loss"))[0]["message"])


class InsideATestProcess(unittest.TestCase):
    def test_serve_leaves_the_descriptors_alone(self) -> None:
        request, to_worker = os.pipe()
        from_worker, reply = os.pipe()
        before = [os.fstat(0).st_ino, os.fstat(1).st_ino, torch.get_num_threads(), list(sys.path)]
        serving = threading.Thread(target=worker.serve, args=(sum_loss, request, reply))
        serving.start()
        answers = []
        for frame in (talk.write_frame(talk.hello("grpo", paths=["/nowhere"], threads="1")),
                      talk.write_frame(talk.step("grpo"), batch())):
            os.write(to_worker, frame)
            size = struct.unpack("<Q", os.read(from_worker, 8))[0]
            answers.append(talk.read_document(os.read(from_worker, size))[0]["op"])
        os.close(to_worker)
        serving.join(30)
        self.assertEqual(answers, ["hello", "result"])
        self.assertEqual([os.fstat(0).st_ino, os.fstat(1).st_ino, torch.get_num_threads(), list(sys.path)], before)
        for descriptor in (request, from_worker, reply):
            os.close(descriptor)  # still open: they belong to the caller

    def test_an_interrupt_is_the_users(self) -> None:
        def subject(log_prob, mask): raise KeyboardInterrupt
        answering = worker.Worker(subject)
        answering.answer(talk.write_frame(talk.hello("grpo"))[8:])
        with self.assertRaises(KeyboardInterrupt):
            answering.answer(talk.write_frame(talk.step("grpo"), batch())[8:])


def golden_requests() -> dict:
    tensors = {"log_prob": torch.tensor([[-3.0, -0.5]]), "old_log_prob": torch.zeros(1, 2),
               "ref_log_prob": torch.zeros(1, 2), "advantage": torch.tensor([[0.5, 2.0]])}
    tensors = {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}
    tensors["mask"] = torch.tensor([[1, 0]], dtype=torch.uint8)
    return {"hello": talk.write_frame(talk.hello("grpo")), "step": talk.write_frame(talk.step("grpo", "17"), tensors)}


GOLDEN = {
    "hello": ((
        "OAYAAAAAAAAwBgAAAAAAAHsiX19tZXRhZGF0YV9fIjp7Im9wIjoiaGVsbG8iLCJwcm90b2NvbCI6IjEiLCJlbnRyeSI6IiIsInBhdGgi"
        "OiJbXSIsImRldmljZSI6ImNwdSIsInRocmVhZHMiOiIxIiwibG9zcyI6ImdycG8iLCJmaWVsZHMiOiJbe1wibmFtZVwiOiBcImxvZ19w"
        "cm9iXCIsIFwicm9sZVwiOiBcImRpZmZlcmVudGlhYmxlXCIsIFwicXVhbnRpdHlcIjogXCJsb2dfcHJvYlwiLCBcImF4ZXNcIjogW1wi"
        "c2VxdWVuY2VzXCIsIFwidG9rZW5zXCJdfSwge1wibmFtZVwiOiBcIm9sZF9sb2dfcHJvYlwiLCBcInJvbGVcIjogXCJjb25zdGFudFwi"
        "LCBcInF1YW50aXR5XCI6IFwibG9nX3Byb2JcIiwgXCJheGVzXCI6IFtcInNlcXVlbmNlc1wiLCBcInRva2Vuc1wiXX0sIHtcIm5hbWVc"
        "IjogXCJyZWZfbG9nX3Byb2JcIiwgXCJyb2xlXCI6IFwiY29uc3RhbnRcIiwgXCJxdWFudGl0eVwiOiBcImxvZ19wcm9iXCIsIFwiYXhl"
        "c1wiOiBbXCJzZXF1ZW5jZXNcIiwgXCJ0b2tlbnNcIl19LCB7XCJuYW1lXCI6IFwiYWR2YW50YWdlXCIsIFwicm9sZVwiOiBcImNvbnN0"
        "YW50XCIsIFwicXVhbnRpdHlcIjogXCJhZHZhbnRhZ2VcIiwgXCJheGVzXCI6IFtcInNlcXVlbmNlc1wiLCBcInRva2Vuc1wiXX0sIHtc"
        "Im5hbWVcIjogXCJtYXNrXCIsIFwicm9sZVwiOiBcIm1hc2tcIiwgXCJxdWFudGl0eVwiOiBcIm1hc2tcIiwgXCJheGVzXCI6IFtcInNl"
        "cXVlbmNlc1wiLCBcInRva2Vuc1wiXX1dIiwib3V0cHV0cyI6Ilt7XCJuYW1lXCI6IFwicGVyX3Rva2VuXCIsIFwiYXhlc1wiOiBbXCJz"
        "ZXF1ZW5jZXNcIiwgXCJ0b2tlbnNcIl19XSIsIm9wdGlvbnMiOiJbe1wibmFtZVwiOiBcImNsaXBfbG93XCIsIFwia2luZFwiOiBcInJl"
        "YWxcIiwgXCJzdGFuZGFyZFwiOiAwLjJ9LCB7XCJuYW1lXCI6IFwiY2xpcF9oaWdoXCIsIFwia2luZFwiOiBcInJlYWxcIiwgXCJzdGFu"
        "ZGFyZFwiOiAwLjJ9LCB7XCJuYW1lXCI6IFwiZHVhbF9jbGlwXCIsIFwia2luZFwiOiBcInJlYWxcIiwgXCJzdGFuZGFyZFwiOiBudWxs"
        "fSwge1wibmFtZVwiOiBcImxvZ19yYXRpb19jbGFtcFwiLCBcImtpbmRcIjogXCJyZWFsXCIsIFwic3RhbmRhcmRcIjogMjB9LCB7XCJu"
        "YW1lXCI6IFwibGV2ZWxcIiwgXCJraW5kXCI6IFwiY2hvaWNlXCIsIFwic3RhbmRhcmRcIjogXCJ0b2tlblwifSwge1wibmFtZVwiOiBc"
        "ImtsX3BlbmFsdHlcIiwgXCJraW5kXCI6IFwicmVhbFwiLCBcInN0YW5kYXJkXCI6IDAuMDR9LCB7XCJuYW1lXCI6IFwia2xfZXN0aW1h"
        "dG9yXCIsIFwia2luZFwiOiBcImNob2ljZVwiLCBcInN0YW5kYXJkXCI6IFwiazNcIn0sIHtcIm5hbWVcIjogXCJrbF9pbnB1dF9jbGFt"
        "cFwiLCBcImtpbmRcIjogXCJyZWFsXCIsIFwic3RhbmRhcmRcIjogMjB9LCB7XCJuYW1lXCI6IFwia2xfb3V0cHV0X2NsYW1wXCIsIFwi"
        "a2luZFwiOiBcInJlYWxcIiwgXCJzdGFuZGFyZFwiOiAxMH0sIHtcIm5hbWVcIjogXCJrbF93ZWlnaHRlZFwiLCBcImtpbmRcIjogXCJm"
        "bGFnXCIsIFwic3RhbmRhcmRcIjogMH0sIHtcIm5hbWVcIjogXCJtYXhfbGVuZ3RoXCIsIFwia2luZFwiOiBcImludGVnZXJcIiwgXCJz"
        "dGFuZGFyZFwiOiAxNn1dIiwiYXJndW1lbnRzIjoie30ifX0gICAgIA=="),
     (
        "QAEAAAAAAAA4AQAAAAAAAHsiX19tZXRhZGF0YV9fIjp7Im9wIjoiaGVsbG8iLCJwcm90b2NvbCI6IjEiLCJ2ZXJzaW9ucyI6IntcInB5"
        "dGhvblwiOiBcIjMuMTEuMlwiLCBcInRvcmNoXCI6IFwiMi4xMS4wXCJ9IiwiZmlsZSI6IiIsImxpbmUiOiI3IiwiY29kZSI6ImRlZiBz"
        "dW1fbG9zcyguLi4pOiIsImFyZ3VtZW50cyI6IntcImxvZ19wcm9iXCI6IFwiZmllbGQ6bG9nX3Byb2JcIiwgXCJhZHZhbnRhZ2VcIjog"
        "XCJmaWVsZDphZHZhbnRhZ2VcIiwgXCJtYXNrXCI6IFwiZmllbGQ6bWFza1wifSIsIm9wdGlvbnMiOiJbXSIsInJlZHVjdGlvbiI6IjAi"
        "LCJmYWN0cyI6IltdIn19IA==")),
    "step": ((
        "cgMAAAAAAABYAwAAAAAAAHsiX19tZXRhZGF0YV9fIjp7Im9wIjoic3RlcCIsImlkIjoiMTciLCJyZWR1Y3Rpb24iOiJ0b2tlbl9tZWFu"
        "Iiwib3B0aW9uLmNsaXBfbG93IjoiMC4yIiwib3B0aW9uLmNsaXBfaGlnaCI6IjAuMiIsIm9wdGlvbi5kdWFsX2NsaXAiOiJub25lIiwi"
        "b3B0aW9uLmxvZ19yYXRpb19jbGFtcCI6IjIwIiwib3B0aW9uLmxldmVsIjoidG9rZW4iLCJvcHRpb24ua2xfcGVuYWx0eSI6IjAuMDQi"
        "LCJvcHRpb24ua2xfZXN0aW1hdG9yIjoiazMiLCJvcHRpb24ua2xfaW5wdXRfY2xhbXAiOiIyMCIsIm9wdGlvbi5rbF9vdXRwdXRfY2xh"
        "bXAiOiIxMCIsIm9wdGlvbi5rbF93ZWlnaHRlZCI6IjAiLCJvcHRpb24ubWF4X2xlbmd0aCI6IjE2IiwidG90YWxfdG9rZW5zIjoiNSIs"
        "InRvdGFsX3NlcXVlbmNlcyI6IjIiLCJyYW5rX3Rva2VucyI6IjUiLCJyYW5rX3NlcXVlbmNlcyI6IjIiLCJyYW5rIjoiMCIsIndvcmxk"
        "IjoiMSIsIm1pY3JvX2JhdGNoIjoiMCIsIm1pY3JvX2JhdGNoZXMiOiIxIiwidXBzdHJlYW0iOiIxIiwiZXhwbGFpbiI6IjAifSwibG9n"
        "X3Byb2IiOnsiZHR5cGUiOiJCRjE2Iiwic2hhcGUiOlsxLDJdLCJkYXRhX29mZnNldHMiOlswLDRdfSwib2xkX2xvZ19wcm9iIjp7ImR0"
        "eXBlIjoiQkYxNiIsInNoYXBlIjpbMSwyXSwiZGF0YV9vZmZzZXRzIjpbNCw4XX0sInJlZl9sb2dfcHJvYiI6eyJkdHlwZSI6IkJGMTYi"
        "LCJzaGFwZSI6WzEsMl0sImRhdGFfb2Zmc2V0cyI6WzgsMTJdfSwiYWR2YW50YWdlIjp7ImR0eXBlIjoiQkYxNiIsInNoYXBlIjpbMSwy"
        "XSwiZGF0YV9vZmZzZXRzIjpbMTIsMTZdfSwibWFzayI6eyJkdHlwZSI6IlU4Iiwic2hhcGUiOlsxLDJdLCJkYXRhX29mZnNldHMiOlsx"
        "NiwxOF19fSAgICAgICBAwAC/AAAAAAAAAAAAPwBAAQA="),
     (
        "5gAAAAAAAADYAAAAAAAAAHsiX19tZXRhZGF0YV9fIjp7Im9wIjoicmVzdWx0IiwiaWQiOiIxNyIsIm11dGF0ZWQiOiJbXSIsIndpdGhv"
        "dXRfZ3JhZGllbnQiOiJbXSJ9LCJsb3NzIjp7ImR0eXBlIjoiQkYxNiIsInNoYXBlIjpbXSwiZGF0YV9vZmZzZXRzIjpbMCwyXX0sImdy"
        "YWRpZW50LmxvZ19wcm9iIjp7ImR0eXBlIjoiQkYxNiIsInNoYXBlIjpbMSwyXSwiZGF0YV9vZmZzZXRzIjpbMiw2XX19ICAgICAgIMC/"
        "AD8AAA==")),
}

if __name__ == "__main__":
    unittest.main()
