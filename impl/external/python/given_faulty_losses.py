# SPDX-License-Identifier: Apache-2.0
"""Losses that are wrong on purpose, the line in which their non-finite number begins, and an input that shows it.

The guilty line of each carries the comment `# guilty`.
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple

import torch
import torch.nn.functional as F

INF = math.inf


def rows(*values: list) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)


def policy(**changed: Any) -> dict:
    """A benign GRPO batch of two sequences, the last token of the second is padding."""
    base = {"log_prob": rows([-1.0, -0.5, -2.0], [-1.5, -0.25, -1.0]),
            "old_log_prob": rows([-1.1, -0.5, -1.9], [-1.4, -0.5, -1.0]),
            "ref_log_prob": rows([-1.2, -0.6, -1.8], [-1.3, -0.5, -1.0]),
            "advantage": rows([1.0, -0.5, 0.5], [-1.0, 0.25, 1.0]),
            "mask": torch.tensor([[1, 1, 1], [1, 1, 0]], dtype=torch.uint8)}
    for name, changes in changed.items():
        if isinstance(changes, torch.Tensor):
            base[name] = changes
        else:
            for (sequence, token), value in changes.items():
                base[name][sequence, token] = value
    return base


def logits(**changed: Any) -> dict:
    torch.manual_seed(3)
    base = {"student_logits": torch.randn(2, 2, 4), "teacher_logits": torch.randn(2, 2, 4),
            "label": torch.tensor([[1, 2], [3, -100]])}
    for name, changes in changed.items():
        for at, value in changes.items():
            base[name][at] = value
    return base


def critic(**changed: Any) -> dict:
    base = {name: rows([0.5, 1.0], [2.0, -1.0]) for name in ("value", "old_value", "return")}
    base["mask"] = torch.ones(2, 2, dtype=torch.uint8)
    for name, changes in changed.items():
        for at, value in changes.items():
            base[name][at] = value
    return base


class Given(NamedTuple):
    function: Callable
    loss: str
    tensors: dict
    stage: str
    text: str  # of the explanation, the operands


FAULTY: list[Given] = []


def given(loss: str, tensors: dict, stage: str, text: str) -> Callable:
    def add(function: Callable) -> Callable:
        FAULTY.append(Given(function, loss, tensors, stage, text))
        return function
    return add


@given("grpo", policy(log_prob={(0, 0): 100.0}, old_log_prob={(0, 0): 0.0}), "backward", "0 (upstream) x inf (exp) = nan")
def clipped_ratio_overflows(log_prob, old_log_prob, advantage, mask):
    d = log_prob - old_log_prob
    ratio = torch.exp(d)  # guilty
    clipped = torch.clamp(ratio, 0.8, 1.2)
    per_token = -torch.min(ratio * advantage, clipped * advantage)
    return (per_token * mask).sum() / mask.sum()


@given("grpo", policy(log_prob={(1, 2): 100.0}, old_log_prob={(1, 2): 0.0}), "forward", "exp(100 (sub)) = inf")
def masked_after_exp(log_prob, old_log_prob, advantage, mask):
    ratio = (log_prob - old_log_prob).exp()  # guilty
    per_token = -ratio * advantage
    return (per_token * mask).sum() / mask.sum()


@given("grpo", policy(log_prob={(1, 2): 100.0}, old_log_prob={(1, 2): 0.0}), "backward", "0 (upstream) x inf (exp) = nan")
def where_after_exp(log_prob, old_log_prob, advantage, mask):
    d = log_prob - old_log_prob
    ratio = torch.exp(d)  # guilty
    per_token = torch.where(mask, -ratio * advantage, torch.zeros_like(ratio))
    return per_token.sum() / mask.sum()


@given("grpo", policy(log_prob={(0, 1): -90.0}, ref_log_prob={(0, 1): 10.0}), "backward", "0 (upstream) x inf (exp) = nan")
def clamped_after_exp(log_prob, ref_log_prob, mask):
    x = ref_log_prob - log_prob
    kl = (torch.exp(x) - x - 1).clamp(max=10.0)  # guilty
    return (kl * mask).sum() / mask.sum()


@given("grpo", policy(log_prob={(0, 1): -90.0}, ref_log_prob={(0, 1): 10.0}), "backward", "0 (upstream) x inf (expm1) = nan")
def clamped_after_expm1(log_prob, ref_log_prob, mask):
    x = ref_log_prob - log_prob
    u = torch.expm1(x)  # guilty
    kl = (u - x).clamp(max=10.0)
    return (kl * mask).sum() / mask.sum()


@given("grpo", policy(ref_log_prob={(1, 2): -INF}), "forward", "inf (sub) x 0 (mask) = nan")
def sentinel_times_mask(log_prob, ref_log_prob, mask):
    x = ref_log_prob - log_prob
    kl = torch.exp(x) - x - 1
    kl = kl * mask  # guilty
    return kl.sum() / mask.sum()


@given("grpo", policy(log_prob={(1, 2): -INF}, old_log_prob={(1, 2): -INF}), "forward",
       "-inf (log_prob) - -inf (old_log_prob) = nan")
def infinity_minus_infinity(log_prob, old_log_prob, advantage, mask):
    d = log_prob - old_log_prob  # guilty
    ratio = d.clamp(-20, 20).exp()
    return (-ratio * advantage * mask).sum() / mask.sum()


@given("grpo", policy(log_prob={(1, 2): -INF}, old_log_prob={(1, 2): -INF}), "forward",
       "-inf (log_prob) - -inf (old_log_prob) = nan")
def nan_goes_around_the_mask(log_prob, old_log_prob, advantage, mask):
    keep = mask.float()
    total = keep.sum()
    d = (log_prob -  # guilty
         old_log_prob)
    weight = d.exp().masked_fill(~mask, 0.0)
    centred = d - (d * 1.0).mean()
    return ((weight * advantage + 0 * centred) * keep).sum() / total


@given("grpo", policy(mask=torch.zeros(2, 3, dtype=torch.uint8)), "forward", "0 (neg) / 0 (sum) = nan")
def mean_of_nothing(log_prob, advantage, mask):
    weighted = (log_prob * advantage * mask).sum()
    return -weighted / mask.sum()  # guilty


@given("grpo", policy(mask=torch.zeros(2, 3, dtype=torch.uint8)), "forward", "mean(no element (index)) = nan")
def mean_of_an_empty_selection(log_prob, mask):
    chosen = log_prob[mask]
    return chosen.mean()  # guilty


@given("grpo", policy(mask=torch.tensor([[1, 1, 1], [0, 0, 0]], dtype=torch.uint8)), "forward",
       "0 (sum) / 0 (sum) = nan")
def row_without_a_token(log_prob, advantage, mask):
    lengths = mask.sum(dim=-1)
    rows_ = (log_prob * advantage * mask).sum(dim=-1) / lengths  # guilty
    return rows_.mean()


@given("grpo", policy(mask=torch.tensor([[1, 1, 1], [0, 0, 0]], dtype=torch.uint8)), "forward",
       "0 (sum) / 0 (sum) = nan")
def row_without_a_token_twice(log_prob, old_log_prob, advantage, mask):
    lengths = mask.sum(dim=-1)
    weight = ((log_prob - old_log_prob) * mask).sum(dim=-1) / lengths  # guilty
    per_token = weight.exp().unsqueeze(-1) * mask * advantage
    return ((per_token * mask).sum(dim=-1) / lengths).mean()


@given("grpo", policy(log_prob={(0, 2): -200.0}), "forward", "log(0 (exp)) = -inf")
def log_of_an_underflow(log_prob, mask):
    p = torch.exp(log_prob)
    surprise = -torch.log(p)  # guilty
    return (surprise * mask).sum() / mask.sum()


@given("grpo", policy(log_prob={(0, 2): -200.0}), "backward", "0 (upstream) / 0 (exp) = nan")
def log_of_an_underflow_behind_a_clamp(log_prob, mask):
    p = log_prob.exp()
    surprise = -p.log().clamp(min=-50)  # guilty
    return (surprise * mask).sum() / mask.sum()


@given("grpo", policy(log_prob={(0, 0): -1.1}, old_log_prob={(0, 0): -1.1}), "backward", "/ 2 x 0 (sqrt) = inf")
def square_root_at_zero(log_prob, old_log_prob, mask):
    distance = ((log_prob - old_log_prob) ** 2).sqrt()  # guilty
    return (distance * mask)[:1].sum()


@given("grpo", policy(), "forward", "std(1 (advantage)) = nan")
def standard_deviation_of_one(log_prob, advantage, mask):
    group = advantage[:1, :1]
    scale = group.std()  # guilty
    return -(log_prob * (advantage - group) / (scale + 1e-6) * mask).sum()


@given("grpo", policy(log_prob={(0, 1): 100.0}, old_log_prob={(0, 1): 0.0}), "backward", "0 (upstream) x inf (exp) = nan")
def nan_to_num_hides_the_forward(log_prob, old_log_prob, mask):
    ratio = torch.exp(log_prob - old_log_prob)  # guilty
    ratio = torch.nan_to_num(ratio, posinf=0.0)
    return (ratio * mask).sum() / mask.sum()


@given("grpo", policy(advantage={(1, 2): INF}), "backward", "0 (upstream) x inf (advantage) = nan")
def infinite_advantage_behind_where(log_prob, advantage, mask):
    gain = log_prob * advantage  # guilty
    gain = torch.where(mask, gain, 0.0)
    return -gain.sum() / mask.sum()


@given("grpo", policy(log_prob={(0, 0): 0.0}), "backward", "0 (upstream) / 1 + -1 (neg) = nan")
def complement_of_certainty(log_prob, mask):
    rest = torch.log1p(-torch.exp(log_prob))  # guilty
    rest = rest.clamp(min=-30)
    return -(rest * mask).sum() / mask.sum()


@given("jsd", logits(student_logits={(0, 1): -INF}), "forward", "log_softmax(4 values of -inf (student_logits)) = nan")
def softmax_of_nothing(student_logits, teacher_logits, label):
    student = F.log_softmax(student_logits, dim=-1)  # guilty
    teacher = F.log_softmax(teacher_logits, dim=-1)
    keep = label != -100
    return ((teacher.exp() * (teacher - student)).sum(-1) * keep).sum() / keep.sum()


@given("jsd", logits(), "forward", "softmax(4 values of -inf (masked_fill)) = nan")
def fully_masked_softmax(student_logits, teacher_logits, label):
    masked = student_logits.masked_fill(torch.ones_like(student_logits, dtype=torch.bool), -INF)
    p = torch.softmax(masked, dim=-1)  # guilty
    return (p * teacher_logits).sum()


@given("jsd", logits(teacher_logits={(1, 1, 0): -INF}), "backward", "0 (upstream) x inf (sub) = nan")
def reverse_kl_of_a_forbidden_token(student_logits, teacher_logits, label):
    student = torch.log_softmax(student_logits, dim=-1)
    teacher = torch.log_softmax(teacher_logits, dim=-1)
    kl = student.exp() * (student - teacher)  # guilty
    keep = (label != -100).unsqueeze(-1)
    return torch.where(keep, kl, 0.0).sum() / keep.sum()


@given("jsd", logits(teacher_logits={(0, 0, 1): -INF}), "forward", "0 (exp) x -inf (sub) = nan")
def forward_kl_of_a_forbidden_token(student_logits, teacher_logits, label):
    student = F.log_softmax(student_logits, dim=-1)
    teacher = F.log_softmax(teacher_logits, dim=-1)
    kl = F.kl_div(student, teacher, log_target=True, reduction="none")  # guilty
    return kl.sum()


@given("jsd", logits(student_logits={(0, 0): -INF}, teacher_logits={(0, 0): -INF}), "forward",
       "-inf (student_logits) - -inf (amax) = nan")
def normalised_by_its_maximum(student_logits, teacher_logits, label):
    shifted = student_logits - student_logits.amax(-1, keepdim=True)  # guilty
    return shifted.exp().sum(-1).log().sum()


@given("jsd", logits(student_logits={(0, 1): -INF}), "backward", "0 (upstream) through logsumexp with result -inf")
def logsumexp_of_nothing(student_logits, teacher_logits, label):
    keep = torch.tensor([[True, False], [True, True]])
    total = torch.logsumexp(student_logits, dim=-1)  # guilty
    return total.masked_fill(~keep, 0.0).sum()


@given("jsd", logits(student_logits={(0, 0): torch.tensor([200.0, 0.0, 0.0, 0.0])},
                     teacher_logits={(0, 0): torch.tensor([200.0, 0.0, 0.0, 0.0])}), "forward", "log(0 (mul)) = -inf")
def mixture_underflows(student_logits, teacher_logits, label):
    p, q = student_logits.softmax(-1), teacher_logits.softmax(-1)
    m = torch.log((p + q) * 0.5)  # guilty
    return (p * (student_logits.log_softmax(-1) - m)).sum()


@given("jsd", logits(student_logits={(0, 0): torch.tensor([-INF, 1.0, 0.0, 0.5])}), "forward", "0 (softmax) x -inf")
def entropy_with_a_forbidden_token(student_logits, teacher_logits, label):
    log_p = student_logits.log_softmax(-1)
    p = student_logits.softmax(-1)
    return -(p * log_p).sum()  # guilty


@given("value_clip", critic(value={(0, 0): 1e30}), "forward", "pow(1e+30")
def square_overflows(value, old_value, returns, mask):
    clipped = old_value + (value - old_value).clamp(-0.2, 0.2)
    error = torch.max((value - returns) ** 2, (clipped - returns) ** 2)  # guilty
    return 0.5 * (error * mask).sum() / mask.sum()


@given("value_clip", critic(value={(0, 0): 0.0}), "backward", "rsqrt")
def inverse_root_at_zero(value, old_value, returns, mask):
    scale = torch.rsqrt(value * value)  # guilty
    return (scale.clamp(max=10.0) * mask)[0].sum()


@given("value_clip", critic(value={(0, 0): 0.0}), "backward", "pow")
def power_at_zero(value, old_value, returns, mask):
    magnitude = value.abs() ** 0.5  # guilty
    return (magnitude * mask)[0].sum()


@given("value_clip", critic(value={(1, 0): 0.5}, **{"return": {(1, 0): 0.5}}), "backward", "0 (upstream) / 0 (abs) = nan")
def divided_by_its_distance(value, old_value, returns, mask):
    difference = value - returns
    away = difference[1]
    direction = torch.where(away.abs() > 0, away / away.abs(), 0.0)  # guilty
    return (direction * mask[1]).sum()


class _Ratio(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, d: torch.Tensor) -> torch.Tensor:
        ratio = d.exp()
        ctx.save_for_backward(ratio)
        return ratio.clamp(max=2.0)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        ratio, = ctx.saved_tensors
        scaled = gradient * 1.0
        return scaled * ratio  # guilty


@given("grpo", policy(log_prob={(1, 2): 100.0}, old_log_prob={(1, 2): 0.0}), "backward", "0 (mul) x inf (exp) = nan")
def own_function_backward(log_prob, old_log_prob, advantage, mask):
    ratio = _Ratio.apply(log_prob - old_log_prob)
    return -(ratio * advantage * mask).sum() / mask.sum()


class _GradientAhead(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, d: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        slope, loss = torch.func.grad_and_value(lambda x: -(x.exp().clamp(max=2.0) * mask).sum())(d)  # guilty
        ctx.save_for_backward(slope)
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple:
        return ctx.saved_tensors[0] * gradient, None


@given("grpo", policy(log_prob={(0, 1): 100.0}), "backward", "exp(100.5 (sub)) = inf")
def own_function_differentiates_ahead(log_prob, old_log_prob, mask):
    return _GradientAhead.apply(log_prob - old_log_prob, mask)


class _LogMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(mask)
        total = (value * mask).sum(-1)
        return total / mask.sum(-1)  # guilty

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple:
        mask, = ctx.saved_tensors
        return gradient.unsqueeze(-1) * mask, None


@given("grpo", policy(mask=torch.tensor([[1, 1, 1], [0, 0, 0]], dtype=torch.uint8)), "forward", "/ 0 (sum) = nan")
def own_function_forward(log_prob, mask):
    return _LogMean.apply(log_prob, mask).mean()


@given("grpo", policy(log_prob={(0, 0): 100.0}, old_log_prob={(0, 0): 0.0}), "forward", "exp(100")
def written_in_place(log_prob, old_log_prob, mask):
    d = log_prob - old_log_prob
    ratio = torch.zeros_like(d)
    ratio[:, :2] = d[:, :2].exp()  # guilty
    ratio *= mask
    return ratio.sum()


@given("grpo", policy(log_prob={(0, 0): 100.0}, old_log_prob={(0, 0): 0.0}), "forward", "exp(")
def sequence_ratio_overflows(log_prob, old_log_prob, advantage, mask):
    def ratio_of(d):
        return d.exp()  # guilty
    total = ((log_prob - old_log_prob) * mask).sum(-1, keepdim=True)
    return -(ratio_of(total) * advantage * mask).sum()


@given("grpo", policy(log_prob={(0, 0): -120.0}), "backward", "0 (upstream) / 0 (exp)")
def minimum_keeps_the_infinity(log_prob, mask):
    p = torch.exp(log_prob)
    bounded = torch.minimum(-torch.log(p), torch.full_like(p, 5.0))  # guilty
    return (bounded * mask).sum()


@torch.jit.script
def _scripted_ratio(d: torch.Tensor) -> torch.Tensor:
    return torch.exp(d)


@given("grpo", policy(log_prob={(1, 2): 100.0}, old_log_prob={(1, 2): 0.0}), "backward", "0 (upstream) x inf (exp) = nan")
def scripted_where_after_exp(log_prob, old_log_prob, mask):
    d = log_prob - old_log_prob
    ratio = _scripted_ratio(d)  # guilty
    return torch.where(mask, ratio, 0.0).sum()


@given("grpo", policy(log_prob={(0, 0): 100.0, (1, 1): -200.0}, old_log_prob={(0, 0): 0.0}, advantage={(1, 1): 0.0}),
       "forward", "0 (exp) / 0 (advantage) = nan")
def beside_an_infinity_that_is_dropped(log_prob, old_log_prob, advantage, mask):
    ratio = torch.exp(log_prob - old_log_prob)
    weight = ratio / advantage  # guilty
    weight = torch.where(log_prob < 50, weight, 0.0)
    return (weight * mask).sum()


@given("grpo", policy(log_prob=rows([0.0, 1.0, 1.0], [1.0, 100.0, 1.0])), "backward", "0 (upstream) x inf (exp) = nan")
def beside_a_gradient_that_is_dropped(log_prob, mask):
    x = torch.where(log_prob == 0, torch.zeros_like(log_prob), log_prob)
    ratio = torch.exp(x)  # guilty
    distance = torch.sqrt(ratio - 1).nan_to_num(0.0)
    return (distance.clamp(min=0.5, max=10.0)).sum()
