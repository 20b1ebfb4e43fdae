# SPDX-License-Identifier: Apache-2.0
"""The losses of impl/external/python/given_faulty_losses.py as they should be written: each under the name of the
faulty one, with its parameters. Valid positions are selected before the first operation, exponents are bounded,
divisors have a floor of 1, and no row is another because of its place."""

from __future__ import annotations

import torch
import torch.nn.functional as F

Tensor = torch.Tensor


def kept(x: Tensor, mask: Tensor) -> Tensor:
    """0 where the mask is 0, whatever stands there."""
    return torch.where(mask.bool(), x, torch.zeros_like(x))


def mean(per_token: Tensor, mask: Tensor) -> Tensor:
    return kept(per_token, mask).sum() / mask.sum().clamp(min=1)


def ratio_of(log_prob: Tensor, old_log_prob: Tensor, mask: Tensor) -> Tensor:
    return (kept(log_prob, mask) - kept(old_log_prob, mask)).clamp(-20, 20).exp()


def k3(log_prob: Tensor, ref_log_prob: Tensor, mask: Tensor) -> Tensor:
    x = (kept(ref_log_prob, mask) - kept(log_prob, mask)).clamp(-20, 20)
    return torch.expm1(x) - x


def clipped_ratio_overflows(log_prob, old_log_prob, advantage, mask):
    ratio, gain = ratio_of(log_prob, old_log_prob, mask), kept(advantage, mask)
    return mean(-torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain), mask)


def masked_after_exp(log_prob, old_log_prob, advantage, mask):
    return mean(-ratio_of(log_prob, old_log_prob, mask) * kept(advantage, mask), mask)


where_after_exp = masked_after_exp


def clamped_after_exp(log_prob, ref_log_prob, mask):
    return mean(k3(log_prob, ref_log_prob, mask).clamp(max=10.0), mask)


clamped_after_expm1 = clamped_after_exp


def sentinel_times_mask(log_prob, ref_log_prob, mask):
    return mean(k3(log_prob, ref_log_prob, mask), mask)


infinity_minus_infinity = masked_after_exp


def nan_goes_around_the_mask(log_prob, old_log_prob, advantage, mask):
    return mean(ratio_of(log_prob, old_log_prob, mask) * kept(advantage, mask), mask)


def mean_of_nothing(log_prob, advantage, mask):
    return mean(-kept(log_prob, mask) * kept(advantage, mask), mask)


def mean_of_an_empty_selection(log_prob, mask):
    return mean(log_prob, mask)


def row_without_a_token(log_prob, advantage, mask):
    lengths = mask.sum(dim=-1)
    rows = (kept(log_prob, mask) * kept(advantage, mask)).sum(dim=-1) / lengths.clamp(min=1)
    return rows.sum() / (lengths > 0).sum().clamp(min=1)


def row_without_a_token_twice(log_prob, old_log_prob, advantage, mask):
    lengths = mask.sum(dim=-1)
    weight = (kept(log_prob, mask) - kept(old_log_prob, mask)).sum(dim=-1) / lengths.clamp(min=1)
    per_token = weight.clamp(-20, 20).exp().unsqueeze(-1) * kept(advantage, mask)
    rows = kept(per_token, mask).sum(dim=-1) / lengths.clamp(min=1)
    return rows.sum() / (lengths > 0).sum().clamp(min=1)


def own_function_differentiates_ahead(log_prob, old_log_prob, mask):
    return -kept(ratio_of(log_prob, old_log_prob, mask).clamp(max=2.0), mask).sum()


def log_of_an_underflow(log_prob, mask):
    return mean(-kept(log_prob, mask), mask)


def log_of_an_underflow_behind_a_clamp(log_prob, mask):
    return mean(-kept(log_prob, mask).clamp(min=-50), mask)


def square_root_at_zero(log_prob, old_log_prob, mask):
    return kept((kept(log_prob, mask) - kept(old_log_prob, mask)).abs(), mask).sum()


def standard_deviation_of_one(log_prob, advantage, mask):
    gain = kept(advantage, mask)
    count = mask.sum().clamp(min=1)
    away = kept(gain - gain.sum() / count, mask)
    return -(kept(log_prob, mask) * away / ((away / count).square().sum() + 1.0).sqrt()).sum()


def nan_to_num_hides_the_forward(log_prob, old_log_prob, mask):
    return mean(ratio_of(log_prob, old_log_prob, mask), mask)


def infinite_advantage_behind_where(log_prob, advantage, mask):
    return mean(-kept(log_prob, mask) * kept(advantage, mask), mask)


def complement_of_certainty(log_prob, mask):
    rest = torch.log(-torch.expm1(torch.where(mask.bool(), log_prob, -1.0).clamp(max=-1e-5)))
    return mean(-rest.clamp(min=-30), mask)


def divergence(weights: Tensor, log_p: Tensor, log_q: Tensor) -> Tensor:
    """Sums w (log p - log q) where w counts; 0 times infinity does not arise."""
    counts = weights != 0  # a NaN counts
    return torch.where(counts, weights * (torch.where(counts, log_p, 0.0) - torch.where(counts, log_q, 0.0)), 0.0)


def valid_logits(logits: Tensor, label: Tensor) -> Tensor:
    return torch.where((label != -100).unsqueeze(-1), logits, torch.zeros_like(logits))


def log_softmaxes(student_logits: Tensor, teacher_logits: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    return tuple(F.log_softmax(valid_logits(logits, label), dim=-1) for logits in (student_logits, teacher_logits))


def softmax_of_nothing(student_logits, teacher_logits, label):
    student, teacher = log_softmaxes(student_logits, teacher_logits, label)
    return mean(divergence(teacher.exp(), teacher, student).sum(-1), label != -100)


def fully_masked_softmax(student_logits, teacher_logits, label):
    p = torch.softmax(valid_logits(student_logits, label), dim=-1)
    return kept((p * valid_logits(teacher_logits, label).clamp(min=-1e4)).sum(-1), label != -100).sum()


def reverse_kl_of_a_forbidden_token(student_logits, teacher_logits, label):
    student, teacher = log_softmaxes(student_logits, teacher_logits.clamp(min=-1e4), label)
    return mean(divergence(student.exp(), student, teacher).sum(-1), label != -100)


def forward_kl_of_a_forbidden_token(student_logits, teacher_logits, label):
    student, teacher = log_softmaxes(student_logits, teacher_logits, label)
    return kept(divergence(teacher.exp(), teacher, student).sum(-1), label != -100).sum()


def normalised_by_its_maximum(student_logits, teacher_logits, label):
    student = valid_logits(student_logits, label)
    return kept(torch.logsumexp(student - student.amax(-1, keepdim=True), dim=-1), label != -100).sum()


def logsumexp_of_nothing(student_logits, teacher_logits, label):
    return kept(torch.logsumexp(valid_logits(student_logits, label), dim=-1), label != -100).sum()


def mixture_underflows(student_logits, teacher_logits, label):
    student, teacher = log_softmaxes(student_logits, teacher_logits, label)
    mixture = torch.logaddexp(student.clamp(min=-1e4), teacher.clamp(min=-1e4)) - 0.6931471805599453
    return kept(divergence(student.exp(), student, mixture).sum(-1), label != -100).sum()


def entropy_with_a_forbidden_token(student_logits, teacher_logits, label):
    log_p = valid_logits(student_logits, label).log_softmax(-1)
    return kept(-divergence(log_p.exp(), log_p, torch.zeros_like(log_p)).sum(-1), label != -100).sum()


def square_overflows(value, old_value, returns, mask):
    value, old_value, returns = kept(value, mask), kept(old_value, mask), kept(returns, mask)
    error = value - returns
    clipped = old_value + (value - old_value).clamp(-0.2, 0.2) - returns
    worst = torch.where(error.abs() > clipped.abs(), error, clipped)
    return mean(F.huber_loss(worst, torch.zeros_like(worst), reduction="none", delta=1e3), mask)


def inverse_root_at_zero(value, old_value, returns, mask):
    return kept(1.0 / kept(value, mask).abs().clamp(min=0.1), mask).sum()


def power_at_zero(value, old_value, returns, mask):
    return kept(kept(value, mask).abs().clamp(min=1e-4) ** 0.5, mask).sum()


def divided_by_its_distance(value, old_value, returns, mask):
    return kept(torch.sign(kept(value, mask) - kept(returns, mask)) + 0.0 * kept(value, mask), mask).sum()


own_function_backward = masked_after_exp


def own_function_forward(log_prob, mask):
    lengths = mask.sum(-1)
    return (kept(log_prob, mask).sum(-1) / lengths.clamp(min=1)).sum() / (lengths > 0).sum().clamp(min=1)


def written_in_place(log_prob, old_log_prob, mask):
    return kept(ratio_of(log_prob, old_log_prob, mask), mask).sum()


def sequence_ratio_overflows(log_prob, old_log_prob, advantage, mask):
    total = (kept(log_prob, mask) - kept(old_log_prob, mask)).sum(-1, keepdim=True)
    return -kept(total.clamp(-20, 20).exp() * kept(advantage, mask), mask).sum()


def minimum_keeps_the_infinity(log_prob, mask):
    return kept((-kept(log_prob, mask)).clamp(max=5.0), mask).sum()


def scripted_where_after_exp(log_prob, old_log_prob, mask):
    return kept(ratio_of(log_prob, old_log_prob, mask), mask).sum()


def beside_an_infinity_that_is_dropped(log_prob, old_log_prob, advantage, mask):
    return kept(ratio_of(log_prob, old_log_prob, mask) * kept(advantage, mask), mask).sum()


def beside_a_gradient_that_is_dropped(log_prob, mask):
    x = kept(log_prob, mask).clamp(-20, 20)
    return kept(torch.sqrt(torch.expm1(x.clamp(min=0.1))).clamp(min=0.5, max=10.0), mask).sum()
