# SPDX-License-Identifier: Apache-2.0
"""`returns = "outputs"`: helpers that give log-probs and entropies, of which the worker makes the loss that they weigh in."""

from __future__ import annotations

import types
import unittest
from typing import Any

import torch

import given_conversation as talk
from given_worker import asked
from lossgate.worker.conversation import Worker


def selective_log_softmax(logits, index):
    """As in trl.trainer.utils, of f32."""
    selected = torch.gather(logits, dim=-1, index=index.unsqueeze(-1)).squeeze(-1)
    return selected - torch.stack([torch.logsumexp(row, dim=-1) for row in logits])


def with_entropy(logits, index):
    scores = logits.log_softmax(-1)
    return scores.gather(-1, index.unsqueeze(-1)).squeeze(-1), -(scores.exp() * scores).sum(-1)


INDEX = {"index": "field:label as ids"}


def tensors(dtype: torch.dtype = torch.float32) -> dict:
    torch.manual_seed(3)
    return {"label": torch.tensor([[1, 2, -100], [0, -100, 3]]), "logits": torch.randn(2, 3, 5).to(dtype),
            "log_prob_weight": torch.randn(2, 3).to(dtype), "entropy_weight": torch.randn(2, 3).to(dtype)}


def outputs(*names: str) -> str:
    return "[" + ", ".join(f'{{"name": "{name}", "axes": ["sequences", "tokens"]}}' for name in names) + "]"


def stepped(subject: Any, *names: str, given: Any = None, **more: Any) -> tuple[dict, dict]:
    answering = Worker(subject, contained=True)
    hello = talk.hello("log_prob", arguments=INDEX, returns="outputs", outputs=outputs(*names))
    said = talk.read_document(answering.answer(talk.write_frame(hello)[8:])[8:])[0]
    if said["op"] != "hello":
        raise AssertionError(said)
    frame = talk.write_frame(talk.step("log_prob", **more), tensors() if given is None else given)
    return talk.read_document(answering.answer(frame[8:])[8:])


def expected(given: dict, entropy: bool) -> tuple[Any, Any]:
    """The loss and its gradient, written apart."""
    logits = given["logits"].double().requires_grad_()
    valid, scores = given["label"] != -100, logits.log_softmax(-1)
    taken = scores.gather(-1, given["label"].clamp(min=0).unsqueeze(-1)).squeeze(-1)
    loss = (given["log_prob_weight"].double() * taken)[valid].sum()
    if entropy:
        loss = loss - (given["entropy_weight"].double() * (scores.exp() * scores).sum(-1))[valid].sum()
    return loss.detach(), torch.autograd.grad(loss, logits)[0]


class Outputs(unittest.TestCase):
    def check(self, reply: dict, entropy: bool, given: Any = None, digits: float = 1e-5) -> None:
        loss, gradient = expected(tensors() if given is None else given, entropy)
        torch.testing.assert_close(reply["loss"].double(), loss, rtol=digits, atol=digits)
        torch.testing.assert_close(reply["gradient.logits"].double(), gradient, rtol=digits, atol=digits)

    def test_a_tensor_alone_is_the_one_output_that_is_asked_for(self) -> None:
        for layout in ("contiguous", "padded_rows", "transposed"):
            metadata, reply = stepped(selective_log_softmax, "log_prob", layout=layout)
            self.assertEqual(metadata["op"], "result", metadata)
            self.check(reply, entropy=False)
            self.assertNotIn("entropy", reply)
            valid = tensors()["label"] != -100
            self.assertTrue((reply["log_prob"][~valid] == 0).all() and (reply["log_prob"][valid] < 0).all())

    def test_what_weighs_nothing_adds_nothing_however_far_it_is_from_zero(self) -> None:
        given = tensors()
        given["logits"][0, 0, 1], given["log_prob_weight"][0, 0] = float("-inf"), 0.0  # the token that is taken
        reply = stepped(lambda logits, index: logits.log_softmax(-1).gather(-1, index.unsqueeze(-1)).squeeze(-1),
                        "log_prob", given=given)[1]
        self.assertEqual(reply["log_prob"][0, 0].item(), float("-inf"))
        self.assertTrue(reply["loss"].isfinite().all() and reply["gradient.logits"].isfinite().all(), reply)

    def test_several_come_in_the_order_of_the_declaration_or_by_name(self) -> None:
        self.check(stepped(with_entropy, "log_prob", "entropy")[1], entropy=True)
        def reversed_order(logits, index):
            return with_entropy(logits, index)[::-1]
        self.check(stepped(reversed_order, "entropy", "log_prob")[1], entropy=True)
        def named(logits, index):
            return dict(zip(("logps", "entropies"), with_entropy(logits, index)))
        self.check(stepped(named, "log_prob", "entropy")[1], entropy=True)
        self.check(stepped(with_entropy, "log_prob")[1], entropy=False)

    def test_weights_and_outputs_of_sixteen_bits_are_widened_before_they_meet(self) -> None:
        given = tensors(torch.bfloat16)
        reply = stepped(selective_log_softmax, "log_prob", given=given)[1]
        self.assertEqual((reply["loss"].dtype, reply["log_prob"].dtype), (torch.float32, torch.bfloat16))
        self.check(reply, entropy=False, given=given, digits=0.1)

    def test_what_stands_at_masked_positions_comes_from_nobody(self) -> None:
        given, nan = tensors(), float("nan")
        masked = given["label"] == -100
        given["log_prob_weight"][masked] = nan
        self.check(stepped(selective_log_softmax, "log_prob", given=given)[1], entropy=False, given=tensors())
        def sentinel(logits, index):
            return torch.where(torch.tensor([[1, 1, 0], [1, 0, 1]]).bool(), selective_log_softmax(logits, index), nan)
        self.check(stepped(sentinel, "log_prob")[1], entropy=False)

    def test_the_gradient_comes_into_the_output_as_the_case_lies(self) -> None:
        caught = []
        def watched(logits, index):
            taken = selective_log_softmax(logits, index)
            taken.register_hook(lambda gradient: caught.append(gradient.stride()))
            return taken * 1.0
        for layout in ("contiguous", "transposed"):
            stepped(watched, "log_prob", layout=layout)
        self.assertEqual(caught, [(3, 1), (1, 2)])

    def test_what_is_no_output_says_what_to_return(self) -> None:
        for subject, words in {
            lambda logits, index: logits: "returned 'log_prob' of shape [2, 3, 5], where `returns = \"outputs\"` has one number",
            lambda logits, index: None: "returned nothing; return the tensors log_prob, in this order or as a dict",
            lambda logits, index: {"scores": logits}: "without 'log_prob' (keys: scores)",
            lambda logits, index: types.SimpleNamespace(): "returned no tensors; return log_prob",
            lambda logits, index: selective_log_softmax(logits, index).detach(): "without a graph",
        }.items():
            metadata, _ = stepped(subject, "log_prob")
            self.assertEqual(metadata["type"], "BadResult", metadata)
            self.assertIn(words, metadata["message"])

    def test_is_of_a_loss_whose_outputs_are_weighed(self) -> None:
        said = asked(lambda log_prob, mask: 0, returns="outputs", outputs=outputs("per_token"))[1]
        self.assertIn("grpo has no per_token_weight", said["message"])


if __name__ == "__main__":
    unittest.main()
