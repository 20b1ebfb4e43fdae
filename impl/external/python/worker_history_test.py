# SPDX-License-Identifier: Apache-2.0
"""What a worker does around the forward and the backward of a step, and which state between calls that shows."""

from __future__ import annotations

import json
import unittest
from typing import Any, Callable

import torch
from torch.utils.checkpoint import checkpoint

import given_conversation as talk
from given_worker import asked, batch, stepped

# Those of any function; one that returns its terms has a further one.
HISTORIES = ("alone", "evaluation", "two_forwards", "summed_losses", "backward_twice")


class Weighted(torch.autograd.Function):
    """The sum of x times a factor, whose backward is `make(factor as kept, gradient)`."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: torch.Tensor, keep: Callable, make: Callable) -> torch.Tensor:
        ctx.kept, ctx.make = keep(factor), make
        return (x * factor).sum()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple:
        return ctx.make(ctx.kept, gradient), None, None, None


class Terms(torch.autograd.Function):
    """x times a factor, term by term."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: torch.Tensor, make: Callable) -> torch.Tensor:
        ctx.factor, ctx.make = factor, make
        return x * factor

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple:
        return ctx.make(ctx.factor, gradient), None, None


def scaled(kept: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    return kept * gradient


def weighted(keep: Callable = torch.clone, make: Callable = scaled) -> Callable:
    return lambda log_prob, advantage, mask: Weighted.apply(log_prob, advantage, keep, make)


def of_other_data() -> torch.Tensor:
    """The advantage of the last of the sequences in which most counts, everywhere."""
    advantage, tokens = batch()["advantage"], batch()["mask"].sum(1).tolist()
    return advantage[max(range(len(tokens)), key=lambda at: (tokens[at], at))].expand_as(advantage)


class Histories(unittest.TestCase):
    def answers(self, make_subject: Callable, **more: Any) -> dict:
        """The gradient in each history; every answer has the loss that the step alone has."""
        found = {}
        for history in HISTORIES:
            metadata, tensors = stepped(make_subject(), upstream="2", history=history, **more)
            self.assertEqual(metadata["op"], "result", metadata)
            found[history] = tensors["gradient.log_prob"].tolist()
            self.assertAlmostEqual(tensors["loss"].item(), (batch()["log_prob"] * batch()["advantage"]).sum().item(), 5)
        return found

    def expect_other(self, make_subject: Callable, wrong: dict) -> None:
        sound = (2 * batch()["advantage"]).tolist()
        self.assertEqual(self.answers(make_subject), {**dict.fromkeys(HISTORIES, sound),
                                                      **{history: value.tolist() for history, value in wrong.items()}})

    def test_a_reentrant_checkpoint_goes_back_as_trainers_do_it(self) -> None:
        def checkpointed(log_prob, advantage, mask):
            return checkpoint(lambda x: (x * advantage).sum(), log_prob, use_reentrant=True)
        self.expect_other(lambda: checkpointed, {})
        def dead(log_prob, mask):
            return checkpoint(lambda x: torch.log(x.sum() * 0), log_prob, use_reentrant=True)
        guilty = json.loads(stepped(dead, explain="1")[0]["guilty"])
        self.assertEqual(guilty["operation"], "log")

    def test_the_function_is_called_on_other_data_as_the_history_says(self) -> None:
        own, other = batch()["advantage"].tolist(), of_other_data().tolist()
        self.assertNotEqual(own, other)
        calls = {"alone": [(True, own)], "evaluation": [(True, own), (False, other)],
                 "two_forwards": [(True, own), (True, other), (True, other)],
                 "summed_losses": [(True, other), (True, own)], "backward_twice": [(True, own)]}
        for history, wanted in calls.items():
            seen: list = []
            def subject(log_prob, advantage, mask):
                self.assertEqual(log_prob.requires_grad, torch.is_grad_enabled())
                seen.append((torch.is_grad_enabled(), advantage.tolist()))
                return (log_prob * advantage).sum()
            stepped(subject, history=history)
            self.assertEqual(seen, wanted, history)

    def test_other_data_has_as_many_sequences_whichever_field_comes_first(self) -> None:
        fields = [{"name": "weight", "role": "differentiable", "axes": ["vocab", "hidden"], "quantity": "weight"},
                  {"name": "hidden", "role": "differentiable", "axes": ["sequences", "tokens", "hidden"],
                   "quantity": "hidden_state"}]
        seen: list = []
        def subject(weight, hidden):
            seen.append(len(hidden))
            return (hidden @ weight.T).sum()
        answering, said = asked(subject, fields=json.dumps(fields))
        self.assertEqual(said["op"], "hello", said)
        frame = talk.write_frame(talk.step("grpo", history="summed_losses"),
                                 {"weight": torch.ones(7, 2), "hidden": torch.ones(3, 4, 2)})
        self.assertEqual(talk.read_document(answering.answer(frame[8:])[8:])[0]["op"], "result")
        self.assertEqual(seen, [3, 3])

    def test_what_is_kept_of_a_parameter_that_then_changes_in_place(self) -> None:
        fields = [{"name": "hidden", "role": "differentiable", "axes": ["sequences", "tokens", "hidden"],
                   "quantity": "hidden_state"},
                  {"name": "weight", "role": "differentiable", "axes": ["vocab", "hidden"], "quantity": "weight"}]
        hidden, weight = torch.arange(24.0).reshape(3, 4, 2), torch.arange(6.0).reshape(3, 2)
        seen: list = []
        def kept_with_the_weight(hidden, weight):
            seen.append((weight.tolist(), hidden[0].tolist()))
            if not hasattr(weight, "transposed"):
                weight.transposed = weight.detach().T.clone()
            return (hidden @ weight.transposed)[..., 0].sum() + 0 * weight.sum()
        def sound(hidden, weight):
            return (hidden @ weight.T)[..., 0].sum()
        def answered(subject: Callable, history: str) -> dict:
            answering, said = asked(subject, fields=json.dumps(fields))
            self.assertEqual(said["op"], "hello", said)
            frame = talk.write_frame(talk.step("grpo", history=history), {"hidden": hidden, "weight": weight})
            metadata, tensors = talk.read_document(answering.answer(frame[8:])[8:])
            self.assertEqual((metadata["op"], metadata["mutated"]), ("result", "[]"), metadata)
            return {name: tensor.tolist() for name, tensor in tensors.items()}
        self.assertEqual(answered(sound, "updated"), answered(sound, "alone"))
        right = answered(kept_with_the_weight, "alone")
        seen.clear()
        self.assertNotEqual(answered(kept_with_the_weight, "updated")["loss"], right["loss"])
        self.assertEqual(seen, [(weight.flip(0).tolist(), hidden[2].tolist()), (weight.tolist(), hidden[0].tolist())])

    def test_what_keeps_nothing_answers_alike_in_all_of_them(self) -> None:
        self.expect_other(weighted, {})

    def test_a_place_that_every_forward_writes(self) -> None:
        def one_place() -> Callable:
            place = torch.zeros(2, 3)
            return weighted(place.copy_)
        self.expect_other(one_place, {"evaluation": 2 * of_other_data(), "two_forwards": 2 * of_other_data()})

    def test_two_places_that_are_used_in_turn(self) -> None:
        def two_places() -> Callable:
            places, calls = [torch.zeros(2, 3), torch.zeros(2, 3)], []
            def keep(factor):
                calls.append(1)
                return places[len(calls) % 2].copy_(factor)
            return weighted(keep)
        self.expect_other(two_places, {"two_forwards": 2 * of_other_data()})

    def test_a_place_that_only_an_evaluation_writes(self) -> None:
        def evaluated_where_it_is_kept() -> Callable:
            latest: list = []
            def keep(factor):
                latest[:] = [factor.clone()]
                return latest[0]
            trained = weighted(keep)
            def subject(log_prob, advantage, mask):
                if torch.is_grad_enabled():
                    return trained(log_prob, advantage, mask)
                return (log_prob * latest[0].copy_(advantage)).sum()
            return subject
        self.expect_other(evaluated_where_it_is_kept, {"evaluation": 2 * of_other_data()})

    def test_one_buffer_for_what_backwards_return(self) -> None:
        def one_buffer() -> Callable:
            buffer = torch.zeros(2, 3)
            return weighted(make=lambda kept, gradient: torch.mul(kept, gradient, out=buffer))
        self.expect_other(one_buffer, {"summed_losses": 2 * of_other_data()})

    def test_a_backward_that_scales_what_it_kept(self) -> None:
        self.expect_other(lambda: weighted(make=lambda kept, gradient: kept.mul_(gradient)),
                          {"backward_twice": 4 * batch()["advantage"]})

    def test_to_refuse_a_second_backward_is_sound(self) -> None:
        def once() -> Callable:
            def make(kept, gradient):
                self.assertFalse(getattr(kept, "spent", False), "Trying to backward through the graph a second time")
                kept.spent = True
                return kept * gradient
            return weighted(make=make)
        self.expect_other(once, {})

    def test_terms_go_back_for_every_second_sequence_and_for_the_others(self) -> None:
        incoming: list = []
        def terms(make: Callable) -> Callable:
            def keep(kept, gradient):
                incoming.append(gradient.tolist())
                return make(kept, gradient)
            return lambda log_prob, advantage, mask: Terms.apply(log_prob, advantage, keep)
        def answered(make: Callable, history: str) -> list:
            answering, said = asked(terms(make), returns="per_token")
            self.assertEqual(said["op"], "hello", said)
            frame = talk.write_frame(talk.step("grpo", upstream="2", history=history, reduction="sum"), batch())
            return talk.read_document(answering.answer(frame[8:])[8:])[1]["gradient.log_prob"].tolist()
        sound = answered(scaled, "alone")
        self.assertEqual(answered(scaled, "backward_by_rows"), sound)
        mask = batch()["mask"].float()
        rows = torch.tensor([[1.0], [0.0]])
        self.assertEqual(incoming[1:], [(2 * mask * rows).tolist(), (2 * mask * (1 - rows)).tolist(), (2 * mask).tolist()])
        def once(kept, gradient):
            self.assertFalse(hasattr(kept, "spent"))
            kept.spent = True
            return kept * gradient
        self.assertEqual(answered(once, "backward_by_rows"), sound, "to refuse is sound")
        for one in (lambda gradient: gradient[0, 0], lambda gradient: gradient.sum() / mask.sum()):
            of_one = lambda kept, gradient: kept * one(gradient) * mask
            self.assertEqual(answered(of_one, "alone"), sound)
            self.assertNotEqual(answered(of_one, "backward_by_rows"), sound)

    def test_a_step_in_another_layout_has_histories_too(self) -> None:
        answers = self.answers(weighted, layout="transposed")
        self.assertEqual(answers, dict.fromkeys(HISTORIES, (2 * batch()["advantage"]).tolist()))

    def test_the_forward_alone_runs_inside_autocast(self) -> None:
        product = lambda: (torch.ones(1, 1) @ torch.ones(1, 1)).dtype
        def watching(kept: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
            seen.append(product())
            return kept * gradient
        def subject(log_prob: torch.Tensor, advantage: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            seen.append(product())
            return weighted(make=watching)(log_prob, advantage, mask)
        for history, wanted in (("alone", torch.float32), ("autocast", torch.bfloat16)):
            seen: list = []
            metadata, _ = stepped(subject, history=history)
            self.assertEqual((metadata["op"], metadata.get("changed_settings")), ("result", None), metadata)
            self.assertEqual(seen, [wanted, torch.float32], history)
        def raises(log_prob: torch.Tensor) -> torch.Tensor:
            raise RuntimeError(f"no kernel for {product()}")
        self.assertEqual(stepped(raises, history="autocast")[0]["message"], "no kernel for torch.bfloat16")
        self.assertEqual(product(), torch.float32)

    def test_what_autocast_narrows_comes_back_as_it_is(self) -> None:
        def elementwise(log_prob: torch.Tensor, advantage: torch.Tensor) -> torch.Tensor:
            return (log_prob * advantage).sum()
        def product(log_prob: torch.Tensor, advantage: torch.Tensor) -> torch.Tensor:
            return torch.einsum("bt,bt->", log_prob, advantage)
        tensors = {**batch(), "log_prob": batch()["log_prob"] / 3}
        right = elementwise(tensors["log_prob"], tensors["advantage"])
        narrow = elementwise(*(tensors[name].bfloat16() for name in ("log_prob", "advantage"))).float()
        self.assertGreater(abs(narrow - right), 1e-4 * abs(right))
        for history, subject, error in (("alone", product, 1e-6), ("autocast", elementwise, 1e-6), ("autocast", product, 1e-2)):
            _, returned = stepped(subject, tensors, history=history, upstream="2")
            torch.testing.assert_close(returned["loss"].float(), right, rtol=error, atol=0)
            off = abs(returned["loss"].float() - right)
            self.assertEqual(bool(off > 1e-4 * abs(right)), (history, subject) == ("autocast", product))
            self.assertEqual(returned["gradient.log_prob"].dtype, torch.float32)

    def test_a_history_that_nobody_knows_is_trouble(self) -> None:
        metadata, _ = stepped(weighted(), history="thrice")
        self.assertEqual(metadata["op"], "trouble")
        self.assertIn("unknown history 'thrice'", metadata["message"])

    def test_a_backward_within_the_forward(self) -> None:
        def backward_within(log_prob, mask):
            loss = (log_prob * mask).sum()
            loss.backward(retain_graph=True)
            return loss
        metadata, _ = stepped(backward_within)
        self.assertIn("left a gradient in an argument's .grad", str(metadata))
        def taken_apart(log_prob, mask):
            loss = (log_prob * mask).sum()
            torch.autograd.grad(loss, log_prob, retain_graph=True)
            return loss
        self.assertNotIn(".grad", str(stepped(taken_apart)[0]))


if __name__ == "__main__":
    unittest.main()
