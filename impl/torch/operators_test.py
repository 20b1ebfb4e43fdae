# SPDX-License-Identifier: Apache-2.0
"""Every operator as a trainer uses it: values, gradients, meta tensors, refusals.

    python operators_test.py LIBLOSSGATE_TORCH
"""

import math
import sys
import unittest

import torch

S, T, V, H, K = 2, 3, 5, 4, 2
TOTALS = {"total_tokens": 5, "total_sequences": 2}
TOKENS = {"total_tokens": 5}


def random(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


def arguments(dtype=torch.float64):
    """Of each operator: tensors (those that get a gradient first in the second), and the counts."""
    torch.manual_seed(7)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    label = torch.tensor([[1, 2, 0], [4, 3, -100]])
    tokens = torch.tensor([1, 4]).expand(S, T, K)
    log_probs = [random(S, T, dtype=dtype) - 2 for _ in range(3)]
    logits = [random(S, T, V, dtype=dtype) for _ in range(2)]
    hidden = [random(S, T, H, dtype=dtype) for _ in range(2)]
    weight = [random(V, H, dtype=dtype) for _ in range(2)]
    plain = random(S, T, dtype=dtype)
    support = logits[1].log_softmax(-1)[..., :K]
    return {
        "grpo": ([*log_probs, plain, mask], [0], TOTALS),
        "reinforce": ([log_probs[0], plain, log_probs[1].exp(), mask], [0], TOTALS),
        "cispo": ([*log_probs[:2], plain, mask], [], TOTALS),  # its gradient is no derivative
        "sapo": ([*log_probs[:2], plain, mask], [0], TOTALS),
        "vespo": ([*log_probs[:2], plain, mask], [], TOTALS),  # neither is its own
        "gmpo": ([*log_probs[:2], plain, mask], [0], {"total_sequences": 2}),
        "kl_penalty": ([*log_probs, mask], [0], TOTALS),
        "value_clip": ([*log_probs, mask], [0], TOTALS),
        "dpo": ([*log_probs[0].flatten(0, 1).split(2)[:3], log_probs[1].flatten()[:2]], [0, 1], {"total_pairs": 2}),
        "kto": ([log_probs[0].flatten()[:4], log_probs[1].flatten()[:4], mask.flatten()[2:]], [0],
                {"total_sequences": 4}),
        "orpo": ([-values.flatten()[:2].abs() for values in log_probs[:2]], [0, 1], {"total_pairs": 2}),
        "log_prob": ([logits[0], label], [0], {}),
        "cross_entropy": ([logits[0], label], [0], TOKENS),
        "entropy_bonus": ([logits[0], mask], [0], TOTALS),
        "jsd": ([*logits, label], [0], TOKENS),
        "sparse_jsd": ([logits[0], tokens, support, label], [0], TOKENS),
        "linear_grpo": ([hidden[0], weight[0], random(V, dtype=dtype), label, *log_probs[1:],
                         plain], [0, 1, 2], TOTALS),
        "linear_cross_entropy": ([hidden[0], weight[0], random(V, dtype=dtype), label], [0, 1, 2], TOKENS),
        "linear_jsd": ([hidden[0], weight[0], hidden[1], weight[1], label], [0, 1], TOKENS),
        "scale_advantages": ([plain, mask], [], TOTALS),
        "group_advantage": ([plain.flatten(), torch.tensor([3, 1, 3, 2, 1, 3])], [], {}),
        "gae": ([plain, log_probs[0], mask], [], {}),
        "whiten": ([plain, mask], [], {}),
        "rollout_correction": ([*log_probs[:2], mask], [], {}),
    }


DIVERGENCES = [{"beta": beta, "temperature": 0.7} for beta in (0.0, 0.3, 1.0)]
POLICIES = [
    {"level": "sequence", "reduction": "sequence_mean"},
    {"kl_weighted": True, "log_ratio_clamp": None, "kl_penalty": 0.5},
    {"level": "sequence", "kl_weighted": True, "dual_clip": 1.5, "kl_estimator": "k2"},
]
TARGETS = [{"label_smoothing": 0.3, "z_loss": 0.1}, {"label_smoothing": 1.0}]
VARIANTS = {
    "grpo": POLICIES,
    "linear_grpo": POLICIES,
    "cispo": [{"weight_low": 0.8, "weight_high": 1.2}],
    "sapo": [{"tau_positive": 2.0, "log_ratio_clamp": None}],
    "vespo": [{"k_positive": 1.0, "lambda_negative": 0.5, "log_ratio_clamp": None}],
    "gmpo": [{"clip_low": 2.0, "clip_high": 0.1}, {"clip_low": 0.1, "reduction": "sum"}],
    "kl_penalty": [{"kl_weighted": True}, {"kl_estimator": "k1"}, {"kl_estimator": "k2"}],
    "value_clip": [{"value_clip": None}, {"clip_form": "interval"}],
    "dpo": [{"loss_type": "hinge", "beta": 2.0}, {"loss_type": "ipo"}, {"label_smoothing": 0.2, "reduction": "sum"},
            {"beta": 2.0, "margin": 1.6}],
    "kto": [{"beta": 2.0, "kl": 0.5}, {"desirable_weight": 2.0, "undesirable_weight": 0.5, "reduction": "sum"}],
    "orpo": [{"beta": 2.0}, {"reduction": "sum"}],
    "log_prob": [{"temperature": 0.7}],
    "cross_entropy": TARGETS,
    "linear_cross_entropy": TARGETS,
    "entropy_bonus": [{"coefficient": 0.5, "reduction": "sequence_mean"}],
    "jsd": [*DIVERGENCES, {"beta": 0.0, "soft_cross_entropy": True}],
    "sparse_jsd": [*DIVERGENCES, {"tail": False}, {"tail_floor": 0.9, "beta": 1.0}],
    "linear_jsd": DIVERGENCES,
}


def call(name, tensors, counts, **options):
    result = getattr(torch.ops.lossgate, name)(*tensors, **counts, **options)
    return result if isinstance(result, tuple) else (result,)


class Operators(unittest.TestCase):
    def test_gradients_are_those_of_the_values(self):
        for name, (tensors, differentiable, counts) in arguments().items():
            if not differentiable:
                continue
            for index in differentiable:
                tensors[index].requires_grad_()

            leaves = [tensors[index] for index in differentiable]
            for options in ({}, *VARIANTS.get(name, ())):

                def values(*leaves, options=options):
                    inputs = list(tensors)
                    for index, leaf in zip(differentiable, leaves):
                        inputs[index] = leaf
                    return call(name, inputs, counts, **options)

                with self.subTest(name, **options):
                    self.assertTrue(torch.autograd.gradcheck(values, leaves))

    def test_meta_tensors_have_the_shapes_and_formats_of_real_ones(self):
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            for name, (tensors, differentiable, counts) in arguments(dtype).items():
                meta = [tensor.to("meta") for tensor in tensors]
                for index in differentiable:
                    meta[index].requires_grad_()
                for real, shape in zip(call(name, tensors, counts), call(name, meta, counts)):
                    with self.subTest(name, dtype=dtype):
                        self.assertEqual((real.shape, real.dtype), (shape.shape, shape.dtype))
                        self.assertTrue(shape.is_meta)
                        self.assertEqual(shape.requires_grad, bool(differentiable))

    def test_gradients_have_the_format_of_their_input(self):
        for name, (tensors, differentiable, counts) in arguments(torch.bfloat16).items():
            for index in differentiable:
                tensors[index].requires_grad_()
            if differentiable:
                call(name, tensors, counts)[0].sum().backward()
            for index in differentiable:
                with self.subTest(name, index=index):
                    self.assertEqual(tensors[index].grad.dtype, torch.bfloat16)

    def test_jsd_has_the_two_kl_divergences_at_its_ends(self):
        (student, teacher, label), _, counts = arguments()["jsd"]
        p, q = student.log_softmax(-1), teacher.log_softmax(-1)
        mixture = (0.3 * q.exp() + 0.7 * p.exp()).log()
        expected = {
            0.0: (q.exp() * (q - p)).sum(-1),
            1.0: (p.exp() * (p - q)).sum(-1),
            0.3: (0.3 * q.exp() * (q - mixture) + 0.7 * p.exp() * (p - mixture)).sum(-1),
        }
        for beta, terms in expected.items():
            loss, per_token = call("jsd", (student, teacher, label), counts, beta=beta)
            terms = terms.masked_fill(label == -100, 0)
            torch.testing.assert_close(per_token, terms)
            torch.testing.assert_close(loss, terms.sum() / 5)

    def test_jsd_without_the_entropy_of_its_teacher_is_a_cross_entropy(self):
        (student, teacher, label), _, counts = arguments()["jsd"]
        expected = torch.nn.functional.cross_entropy(student.flatten(0, 1), teacher.softmax(-1).flatten(0, 1), reduction="none")
        per_token = call("jsd", (student, teacher, label), counts, beta=0.0, soft_cross_entropy=True)[1]
        torch.testing.assert_close(per_token, expected.view_as(label).masked_fill(label == -100, 0))

    def test_cross_entropy_is_that_of_torch(self):
        (logits, label), _, counts = arguments()["cross_entropy"]
        for label_smoothing in (0.0, 0.3, 1.0):
            loss, per_token = call("cross_entropy", (logits, label), counts, label_smoothing=label_smoothing)
            expected = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), label.flatten(), reduction="none", label_smoothing=label_smoothing)
            torch.testing.assert_close(per_token.flatten(), expected)
            torch.testing.assert_close(loss, expected.sum() / 5)

    def test_entropy_bonus_is_that_of_torch(self):
        (logits, mask), _, counts = arguments()["entropy_bonus"]
        expected = torch.distributions.Categorical(logits=logits).entropy().masked_fill(~mask, 0) * -0.01
        loss, per_token = call("entropy_bonus", (logits, mask), counts)
        torch.testing.assert_close(per_token, expected)
        torch.testing.assert_close(loss, expected.sum() / 5)

    def test_sparse_jsd_with_one_token_and_no_tail_is_zero(self):
        (logits, tokens, support, label), _, counts = arguments()["sparse_jsd"]
        one = (logits, tokens[..., :1], support[..., :1], label)
        self.assertEqual(call("sparse_jsd", one, counts, tail=False, beta=1.0)[0].item(), 0.0)

    def test_sparse_jsd_refuses_a_missing_teacher_by_its_place(self):
        (logits, tokens, support, label), _, counts = arguments()["sparse_jsd"]
        support[1, 2] = -math.inf  # masked: nobody looks
        call("sparse_jsd", (logits, tokens, support, label), counts)
        support[1, 1, 0] = -math.inf
        with self.assertRaisesRegex(ValueError, "sequence 1, token 1"):
            call("sparse_jsd", (logits, tokens, support, label), counts)
        call("sparse_jsd", (logits, tokens, support, label), counts, beta=0.0)

    def test_linear_losses_are_those_of_the_logits(self):
        tensors, _, counts = arguments()["linear_grpo"]
        hidden, weight, bias, label, old, reference, advantage = tensors
        logits = hidden @ weight.T + bias
        log_prob, _ = torch.ops.lossgate.log_prob(logits, label, temperature=0.7)
        eager = call("grpo", (log_prob, old, reference, advantage, label != -100), counts)
        torch.testing.assert_close(call("linear_grpo", tensors, counts, temperature=0.7), eager)
        tensors, _, counts = arguments()["linear_cross_entropy"]
        eager = call("cross_entropy", (tensors[0] @ tensors[1].T + tensors[2], tensors[3]), counts, **TARGETS[0])
        torch.testing.assert_close(call("linear_cross_entropy", tensors, counts, **TARGETS[0]), eager)
        tensors, _, counts = arguments()["linear_jsd"]
        eager = call("jsd", (tensors[0] @ tensors[1].T, tensors[2] @ tensors[3].T, tensors[4]),
                     counts, temperature=0.7)
        torch.testing.assert_close(call("linear_jsd", tensors, counts, temperature=0.7), eager)

    def test_linear_losses_need_no_bias(self):
        for name in ("linear_grpo", "linear_cross_entropy"):
            tensors, _, counts = arguments()[name]
            gradients = []
            for bias in (None, torch.zeros_like(tensors[2])):
                hidden, weight = (t.detach().clone().requires_grad_() for t in tensors[:2])
                loss, _ = call(name, (hidden, weight, bias, *tensors[3:]), counts)
                loss.backward()
                gradients.append((loss.detach(), hidden.grad, weight.grad))
            torch.testing.assert_close(gradients[0], gradients[1])

    def test_without_a_penalty_no_reference_is_needed(self):
        for name, at in (("grpo", 2), ("linear_grpo", 5)):
            tensors, differentiable, counts = arguments()[name]
            for index in differentiable:
                tensors[index].requires_grad_()
            without = [*tensors[:at], None, *tensors[at + 1:]]
            expected, found = (call(name, given, counts, kl_penalty=0.0) for given in (tensors, without))
            torch.testing.assert_close(found, expected)
            leaves = [tensors[index] for index in differentiable]
            torch.testing.assert_close(*(torch.autograd.grad(out[0], leaves) for out in (found, expected)))
            with self.assertRaisesRegex(RuntimeError, "^ref_log_prob is missing"):
                call(name, without, counts)

    def test_a_reference_gets_no_gradient(self):
        for name, without in (("dpo", [False, False, True, True]), ("kto", [False, True])):
            tensors, _, counts = arguments()[name]
            leaves = [tensor.clone().requires_grad_() for tensor in tensors if tensor.is_floating_point()]
            call(name, [*leaves, *tensors[len(leaves):]], counts)[0].backward()
            self.assertEqual([leaf.grad is None for leaf in leaves], without, name)

    def test_kto_is_as_its_trainers_write_it(self):
        (log_prob, reference, desirable), _, counts = arguments()["kto"]
        loss, terms = call("kto", (log_prob, reference, desirable), counts, kl=0.5, desirable_weight=2.0)
        gain = 0.1 * (log_prob - reference - 0.5)
        expected = torch.where(desirable, 2 * (1 - gain.sigmoid()), 1 - (-gain).sigmoid())
        torch.testing.assert_close(terms, expected)
        torch.testing.assert_close(loss, expected.mean())

    def test_orpo_is_as_its_trainers_write_it_and_has_slopes_at_its_ends(self):
        pairs = [torch.tensor(given, dtype=torch.float64) for given in ((-1.0, -2.0, -2.0), (-2.0, -1.0, -2.0))]
        c, r = (log_prob - torch.log1p(-log_prob.exp()) for log_prob in pairs)
        expected = -0.1 * torch.nn.functional.logsigmoid(c - r)
        torch.testing.assert_close(call("orpo", pairs, {"total_pairs": 3}), (expected.mean(), expected))
        for given, expected in (((0.0, math.log(0.75)), (0.0, -3.0, 0.0)), ((-1.0, -math.inf), (0.0, 0.0, 0.0)),
                                ((-math.inf, math.log(0.75)), (math.inf, -1.0, 4.0))):
            leaves = [torch.tensor([number], dtype=torch.float64, requires_grad=True) for number in given]
            loss, _ = call("orpo", leaves, {"total_pairs": 1}, beta=1.0)
            found = torch.stack([loss.detach(), *(slope[0] for slope in torch.autograd.grad(loss, leaves))])
            torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), msg=str(given))

    def test_gmpo_is_as_its_trainers_write_it(self):
        (log_prob, old, advantage, mask), _, counts = arguments()["gmpo"]
        advantage = advantage[:, :1].expand_as(log_prob)
        loss, terms = call("gmpo", (log_prob, old, advantage, mask), counts, clip_low=0.3)
        log_ratio = log_prob - old
        clamped = log_ratio.clamp(-0.3, 0.4)
        bounded = torch.where(advantage > 0, log_ratio.minimum(clamped), log_ratio.maximum(clamped))
        expected = -((bounded * mask).sum(-1) / mask.sum(-1)).exp() * advantage[:, 0]
        torch.testing.assert_close(terms, expected)
        torch.testing.assert_close(loss, expected.mean())

    def test_a_frozen_output_layer_changes_no_other_gradient(self):
        for name in ("linear_grpo", "linear_cross_entropy", "linear_jsd"):
            tensors, _, counts = arguments()[name]
            hidden = tensors[0].requires_grad_()
            frozen, = torch.autograd.grad(call(name, tensors, counts)[0], hidden)
            tensors[1].requires_grad_()
            both = torch.autograd.grad(call(name, tensors, counts)[0], (hidden, tensors[1]))
            torch.testing.assert_close(frozen, both[0], rtol=0, atol=0)

    def test_autocast_forms_no_logits_in_16_bits(self):
        for name in ("linear_grpo", "linear_cross_entropy", "linear_jsd"):
            tensors, differentiable, counts = arguments(torch.float32)[name]
            for index in differentiable:
                tensors[index].requires_grad_()
            leaves = [tensors[index] for index in differentiable]
            expected = call(name, tensors, counts)
            gradients = torch.autograd.grad(expected[0], leaves)
            with self.subTest(name), torch.autocast("cpu", torch.bfloat16):
                found = call(name, tensors, counts)
                torch.testing.assert_close(found, expected, rtol=0, atol=0)
                torch.testing.assert_close(torch.autograd.grad(found[0], leaves), gradients, rtol=0, atol=0)

    def test_a_second_derivative_is_right_or_refused(self):
        right = {"dpo", "kto", "log_prob", "orpo"}
        for name, (tensors, differentiable, counts) in arguments().items():
            if not differentiable and name not in ("cispo", "vespo"):
                continue
            leaf = tensors[differentiable[0] if differentiable else 0]

            def first(x, create_graph):
                inputs = [x if tensor is leaf else tensor for tensor in tensors]
                return torch.autograd.grad(call(name, inputs, counts)[0].sum(), x, create_graph=create_graph)[0]

            x = (leaf.detach() * 0.7).requires_grad_()
            gradient = first(x, True)
            with self.subTest(name):
                torch.testing.assert_close(gradient.detach(), first(x, False))
                if name not in right:
                    with self.assertRaisesRegex(RuntimeError, "differentiated once"):
                        gradient.square().sum().backward()
                    continue
                direction = torch.randn_like(x)
                second, = torch.autograd.grad((gradient * direction).sum(), x)
                moved = [first((x.detach() + step * 1e-6 * direction).requires_grad_(), False) for step in (1, -1)]
                torch.testing.assert_close((second * direction).sum(), ((moved[0] - moved[1]) * direction).sum() / 2e-6,
                                           rtol=1e-5, atol=1e-8)

    def test_reinforce_without_a_weight_has_a_weight_of_one(self):
        (log_prob, advantage, weight, mask), _, counts = arguments()["reinforce"]
        plain = call("reinforce", (log_prob, advantage, None, mask), counts)
        ones = call("reinforce", (log_prob, advantage, torch.ones_like(weight), mask), counts)
        torch.testing.assert_close(plain, ones, rtol=0, atol=0)
        torch.testing.assert_close(plain[0], (-advantage * log_prob)[mask].mean())

    def test_value_clip_takes_the_larger_square(self):
        row = lambda *values: torch.tensor([values], dtype=torch.float64)
        mask = torch.ones(1, 3, dtype=torch.bool)
        value = row(1.0, 1.0, 0.1).requires_grad_()
        loss, terms = torch.ops.lossgate.value_clip(
            value, row(0.0, 0.0, 0.0), row(2.0, -1.0, 1.0), mask, total_tokens=3,
            total_sequences=1, reduction="sum")
        torch.testing.assert_close(terms, row(0.5 * 1.8**2, 0.5 * 2.0**2, 0.5 * 0.9**2))
        loss.backward()
        torch.testing.assert_close(value.grad, row(0.0, 2.0, -0.9))

    def test_straight_through_kl_has_the_value_of_k3_and_the_slope_of_k2(self):
        tensors, _, counts = arguments()["kl_penalty"]
        policy, reference = tensors[0].requires_grad_(), tensors[1]
        loss, terms = call("kl_penalty", tensors, counts, reduction="sum", kl_straight_through=True)
        x = (reference - policy).detach()
        k3 = (torch.expm1(x) - x).masked_fill(~tensors[3], 0)
        torch.testing.assert_close(terms.detach(), k3)
        loss.backward()
        torch.testing.assert_close(policy.grad, (-x).masked_fill(~tensors[3], 0))

    def test_scaled_advantages_make_a_sum_a_mean(self):
        (advantage, mask), _, counts = arguments()["scale_advantages"]
        scaled = torch.ops.lossgate.scale_advantages(advantage, mask, **counts)
        torch.testing.assert_close(scaled.sum(), advantage[mask].mean())

    def test_group_advantages_are_those_of_each_group(self):
        (reward, group), _, _ = arguments()["group_advantage"]
        apart = lambda scale, **options: torch.ops.lossgate.group_advantage(reward, group, scale=scale, **options)
        for number in (1, 2, 3):
            own = reward[group == number]
            distance, one = own - own.mean(), len(own) == 1
            expected = torch.zeros_like(own) if one else distance / (own.std() + 1e-6)
            torch.testing.assert_close(apart("std")[group == number], expected)
            torch.testing.assert_close(apart("unscaled")[group == number], distance)
            others = distance * len(own) / max(len(own) - 1, 1)
            torch.testing.assert_close(apart("unscaled", baseline="leave_one_out")[group == number], others)
            if one:
                torch.testing.assert_close(apart("std", singleton="reward")[group == number], own / (1 + 1e-6))

    def test_gae_carries_on_over_masked_tokens(self):
        row = lambda *values: torch.tensor([values], dtype=torch.float64)
        mask = torch.tensor([[True, False, True, False]])
        tensors = row(1.0, 9.0, 2.0, 9.0), row(0.5, 7.0, 0.25, 7.0), mask
        advantage, returns = torch.ops.lossgate.gae(*tensors, **{"gamma": 0.5, "lambda": 0.5})
        last = 2.0 - 0.25
        first = 1.0 + 0.5 * 0.25 - 0.5 + 0.25 * last
        torch.testing.assert_close(advantage, row(first, 0.0, last, 0.0))
        torch.testing.assert_close(returns, row(first + 0.5, 0.0, 2.0, 0.0))

    def test_whitened_advantages_have_mean_0_and_deviation_1(self):
        (advantage, mask), _, _ = arguments()["whiten"]
        valid = advantage[mask]
        expected = (valid - valid.mean()) / (valid.var() + 1e-8).sqrt()
        whitened = torch.ops.lossgate.whiten(advantage, mask)
        torch.testing.assert_close(whitened[mask], expected)
        self.assertEqual(whitened[~mask].abs().sum().item(), 0.0)
        again = torch.ops.lossgate.whiten(advantage, mask, shift_mean=False)
        torch.testing.assert_close(again[mask], expected + valid.mean())
        estimated = call("gae", arguments()["gae"][0], {})[0]
        torch.testing.assert_close(call("gae", arguments()["gae"][0], {}, whiten=True)[0],
                                   torch.ops.lossgate.whiten(estimated, mask))

    def test_a_weight_that_overflows_is_its_bound_or_dropped(self):
        row = lambda *values: torch.tensor([values], dtype=torch.float32)
        tensors = row(0.0, -200.0, -1.0, 0.0), row(-200.0, 0.0, -1.0, 0.0), torch.tensor([[True, True, True, False]])
        for options, expected in (({}, (2.0, 0.5, 1.0, 0.0)), ({"beyond": "drop"}, (0.0, 0.0, 1.0, 0.0)),
                                  ({"level": "sequence"}, (1.0, 1.0, 1.0, 0.0)),
                                  ({"level": "geometric", "beyond": "drop"}, (1.0, 1.0, 1.0, 0.0))):
            weights = torch.ops.lossgate.rollout_correction(*tensors, weight_low=0.5, log_ratio_clamp=None, **options)
            torch.testing.assert_close(weights, row(*expected), msg=str(options))

    def test_invalid_input_is_refused(self):
        cases = arguments()
        for name, change, message in (
            ("grpo", {"reduction": "mean"}, "reduction"),
            ("grpo", {"level": "word"}, "level"),
            ("grpo", {"total_tokens": 0}, "total_tokens"),
            ("jsd", {"beta": 1.5}, "beta"),
            ("jsd", {"temperature": 0.0}, "temperature"),
            ("log_prob", {"temperature": -1.0}, "temperature"),
            ("value_clip", {"clip_form": "round"}, "clip_form"),
            ("kl_penalty", {"kl_estimator": "k4"}, "kl_estimator"),
            ("group_advantage", {"scale": "iqr"}, "scale"),
            ("gae", {"gamma": 1.5}, "gamma"),
            ("grpo", {"log_ratio_clamp": -1.0}, "log_ratio_clamp"),
            ("grpo", {"dual_clip": 0.5}, "dual_clip"),
            ("linear_grpo", {"clip_low": math.nan}, "clip_low"),
            ("grpo", {"kl_output_clamp": math.nan}, "kl_output_clamp"),
            ("grpo", {"reduction": "sum_over_items"}, "reduction cannot be 'sum_over_items'"),
            ("cross_entropy", {"reduction": "sequence_mean"}, "reduction cannot be 'sequence_mean'"),
            ("scale_advantages", {"normalisation": "mean"}, "normalisation"),
            ("dpo", {"total_pairs": 0}, "total_pairs"),
            ("dpo", {"label_smoothing": 1.5}, "label_smoothing"),
            ("dpo", {"margin": -0.5}, "margin"),
            ("kto", {"total_sequences": 0}, "total_sequences"),
            ("kto", {"kl": -0.5}, "kl"),
            ("kto", {"undesirable_weight": -1.0}, "undesirable_weight"),
            ("orpo", {"beta": 0.0}, "beta"),
            ("gmpo", {"clip_low": -0.1}, "clip_low"),
            ("gmpo", {"reduction": "token_mean"}, "reduction cannot be 'token_mean'"),
            ("cispo", {"weight_low": 2.0, "weight_high": 1.0}, "weight_low"),
            ("rollout_correction", {"level": "word"}, "level"),
            ("rollout_correction", {"beyond": "mask"}, "beyond"),
            ("rollout_correction", {"weight_low": 3.0}, "weight_low"),
            ("sapo", {"tau_positive": -1.0}, "tau_positive"),
            ("vespo", {"k_negative": -1.0}, "k_negative"),
            ("vespo", {"lambda_positive": math.nan}, "lambda_positive"),
            ("value_clip", {"value_clip": -0.2}, "value_clip"),
            ("sparse_jsd", {"tail_floor": 0.0}, "tail_floor"),
        ):
            tensors, _, counts = cases[name]
            with self.subTest(name, **change), self.assertRaisesRegex(RuntimeError, message):
                call(name, tensors, {**counts, **change})
        for name in ("log_prob", "jsd", "linear_grpo", "linear_cross_entropy", "linear_jsd"):
            tensors, _, counts = cases[name]
            wrong = [t.masked_fill(t == 4, V) if t.dtype == torch.int64 else t for t in tensors]
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, "label"):
                call(name, wrong, counts)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.ops.load_library(sys.argv.pop())
    unittest.main()
