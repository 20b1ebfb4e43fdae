# SPDX-License-Identifier: Apache-2.0
"""Each operator beside torch's own functions, its trainers' lines, and values worked by hand.

    python operator_values_test.py LIBLOSSGATE_TORCH
"""

import math
import sys
import unittest

import torch
from operator_calls import TARGETS, TOTALS, arguments, call


class OperatorValues(unittest.TestCase):
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

    def test_dft_is_as_its_trainers_write_it_but_for_an_impossible_label(self):
        (logits, label), _, counts = arguments()["dft"]
        logits[0, 0, 1], logits[0, 1, 2] = -math.inf, -900.0  # 0 times infinity, and an underflow times 900
        logits.requires_grad_()
        loss, terms = call("dft", (logits, label), counts)
        cost = torch.nn.functional.cross_entropy(logits.flatten(0, 1), label.flatten(), reduction="none").view_as(label)
        expected = (cost * (-cost).exp().detach()).nan_to_num(0.0)
        torch.testing.assert_close(terms, expected)
        torch.testing.assert_close(loss, expected.sum() / 5)
        slopes = [torch.autograd.grad(value, logits)[0] for value in (loss, expected.sum() / 5)]
        torch.testing.assert_close(*slopes)

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

    def test_vespo_is_as_its_trainers_write_it(self):
        (log_prob, old, advantage, mask), _, counts = arguments()["vespo"]
        loss, terms = call("vespo", (log_prob, old, advantage, mask), counts, k_negative=1.0, log_ratio_clamp=0.5)
        rewarded = advantage >= 0
        self.assertEqual(rewarded[mask].unique().numel(), 2)
        k, decay = torch.where(rewarded, 2.0, 1.0), torch.where(rewarded, 3.0, 2.0)
        log_weight = ((log_prob - old).clamp(-0.5, 0.5) * mask).sum(-1, keepdim=True)
        expected = -(decay + k * log_weight - decay * log_weight.exp()).exp() * advantage * log_prob * mask
        torch.testing.assert_close(terms, expected)
        torch.testing.assert_close(loss, expected.sum() / 5)

    def test_dppo_is_as_its_trainers_write_it(self):
        (log_prob, old, advantage, mask), _, counts = arguments()["dppo"]
        p, q = log_prob.exp(), old.exp()
        kl = q * (old - log_prob) + (1 - q) * ((1 - q + 1e-8) / (1 - p + 1e-8)).log()
        for divergence, distance in (("tv", (p - q).abs()), ("kl", kl)):
            beyond = (advantage > 0) & (p > q) & (distance > 0.2) | (advantage < 0) & (p < q) & (distance > 0.05)
            self.assertEqual(beyond[mask].unique().numel(), 2, divergence)
            gain = (p / q).clamp(max=2.0) * advantage * ~beyond * mask
            for surrogate, expected in (("log_prob", -gain * log_prob), ("weight", -gain)):
                loss, terms = call("dppo", (log_prob, old, advantage, mask), counts, divergence=divergence,
                                   divergence_low=0.05, surrogate=surrogate, weight_high=2.0)
                torch.testing.assert_close(terms, expected)
                torch.testing.assert_close(loss, expected.sum() / 5)

    def test_dppo_drops_a_token_whatever_it_weighs(self):
        given = ((math.log(0.5), -math.inf, 1.0), (-math.inf, math.log(0.5), -1.0), (-1.0, -math.inf, 0.0))
        log_prob, old, advantage = torch.tensor(given, dtype=torch.float64).T[:, None]
        log_prob.requires_grad_()
        for surrogate in ("log_prob", "weight"):
            loss, terms = call("dppo", (log_prob, old, advantage, torch.ones(1, 3, dtype=torch.bool)), TOTALS,
                               surrogate=surrogate, weight_high=None, log_ratio_clamp=None)
            slope, = torch.autograd.grad(loss, log_prob)
            for found in (terms.detach(), slope):
                torch.testing.assert_close(found, torch.zeros_like(found), rtol=0, atol=0)

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

    def test_reinforce_without_a_weight_has_a_weight_of_one(self):
        (log_prob, advantage, weight, mask), _, counts = arguments()["reinforce"]
        plain = call("reinforce", (log_prob, advantage, None, mask), counts)
        ones = call("reinforce", (log_prob, advantage, torch.ones_like(weight), mask), counts)
        torch.testing.assert_close(plain, ones, rtol=0, atol=0)
        torch.testing.assert_close(plain[0], (-advantage * log_prob)[mask].mean())

    def test_dro_is_as_verl_writes_it(self):
        (log_prob, old, advantage, weight, mask), _, counts = arguments()["dro"]
        expected = -(log_prob * advantage - 0.5 * 2.0 * (log_prob - old).square())
        for given, factor in ((None, 1.0), (weight, weight)):
            loss, terms = call("dro", (log_prob, old, advantage, given, mask), counts, beta=2.0)
            torch.testing.assert_close(terms, expected * factor * mask)
            torch.testing.assert_close(loss, (expected * factor)[mask].mean())

    def test_dro_squares_what_half_of_beta_has_made_small(self):
        row = lambda *values: torch.tensor([values], dtype=torch.float32)
        mask = torch.ones(1, 3, dtype=torch.bool)
        log_prob = row(-6e19, -3e25, -math.inf).requires_grad_()
        loss, terms = torch.ops.lossgate.dro(
            log_prob, row(0.0, 0.0, 0.0), row(1.0, 1.0, 1.0), row(1.0, 0.0, 0.0), mask, total_tokens=3,
            total_sequences=1, reduction="sum")
        torch.testing.assert_close(terms, row(9e37, 0.0, 0.0))
        loss.backward()
        torch.testing.assert_close(log_prob.grad, row(-3e18, 0.0, 0.0))

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


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.ops.load_library(sys.argv.pop())
    unittest.main()
