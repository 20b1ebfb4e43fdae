# SPDX-License-Identifier: Apache-2.0
"""OpenRLHF."""
from __future__ import annotations

from typing import Any

import torch
from fault import FAR, MASK, SQUARE, TERMS, Release, Seen, fault, halves, leaf, not_finite, shown, split
from release import told
from torch import Tensor

OPENRLHF = ("openrlhf.models.loss", "openrlhf.models.utils")


def openrlhf(name: str) -> Any:
    return Release("openrlhf", OPENRLHF).load("openrlhf.models." + name)


@fault("openrlhf.PolicyLoss.exponent", "a clipped token's log-ratio of 100: 0 * inf in the gradient",
       "openrlhf==0.10.2", "openrlhf==0.10.3 openrlhf==0.11.2")
def openrlhf_exponent() -> Seen:
    log_prob = leaf([100.0])
    loss = openrlhf("loss").PolicyLoss()(log_prob, torch.zeros(1, 1), torch.ones(1, 1), torch.ones(1, 1, dtype=torch.bool))
    return not_finite(loss[0], log_prob, "loss -1.2, gradient 0")


@fault("openrlhf.PolicyLoss.split", "each micro-batch is divided by its own tokens, DeepSpeed averages them",
       "openrlhf==0.10.2", "openrlhf==0.10.3 openrlhf==0.11.2")
def openrlhf_split() -> Seen:
    loss = openrlhf("loss").PolicyLoss()
    zero, valid = torch.zeros(2, 5), MASK.bool()

    def of(rows: slice, count: float) -> Tensor:
        step = told(loss.forward, dp_size=1, batch_num_tokens=count, global_batch_size=1.0)
        return loss(zero[rows], zero[rows], -TERMS[rows], valid[rows], **step)[0]

    return split(of(slice(0, 2), 6.0), halves(lambda rows: of(rows, 3.0)))


def gspo(log_prob: Tensor, mask: list) -> Tensor:
    loss = openrlhf("loss").PolicyLoss(policy_loss_type="gspo")
    return loss(log_prob, torch.zeros_like(log_prob), torch.ones_like(log_prob), torch.tensor([mask]))[0]


@fault("openrlhf.gspo.exponent",
       "a clipped sequence's mean log-ratio of 100: 0 * inf in the gradient, and in the loss of one that is padded",
       "openrlhf==0.11.2")
def gspo_exponent() -> Seen:
    log_prob, padded = leaf([100.0, 100.0]), leaf([100.0, 0.0])
    found = not_finite(gspo(log_prob, [True, True]), log_prob, "loss -1.2, gradient 0")
    loss = gspo(padded, [True, False])
    return Seen(found.wrong and bool(loss.isnan()), f"{found.numbers}; padded: loss {shown(loss)}")


@fault("openrlhf.kl.clamp", "k3 is clamped behind exp: 0 * inf in the gradient", "openrlhf==0.11.1", "openrlhf==0.11.2")
def kl_clamp() -> Seen:
    log_prob = leaf(-100.0, 0.0)
    value = openrlhf("utils").compute_approx_kl(log_prob, torch.tensor([0.0, -0.5]), kl_estimator="k3")
    return not_finite(value.sum(), log_prob, "loss 10.1065, gradient [0, 0.393469]")


@fault("openrlhf.kl.straight_through", "value + s - s, with s = d * d / 2, loses the value or gives inf - inf",
       "openrlhf==0.11.2 openrlhf==0.11.1", far=True)
def straight_through() -> Seen:
    log_prob = leaf(-3e4, -2e19)
    kl = openrlhf("utils").compute_approx_kl
    value = kl(log_prob, torch.zeros(2), kl_estimator="k3", unbiased_gradient=True)
    return Seen(not torch.equal(value, torch.full((2,), 10.0)), f"values {shown(value)}; by the formula [10, 10]")


@fault("openrlhf.ValueLoss.square", SQUARE, "openrlhf==0.11.2", far=True)
def square() -> Seen:
    value, valid = leaf([FAR]), torch.ones(1, 1, dtype=torch.bool)
    loss = openrlhf("loss").ValueLoss(0.2)(value, torch.full((1, 1), FAR), torch.zeros(1, 1), valid)
    return not_finite(loss, value, "loss 3.38e+38")


@fault("openrlhf.LogExpLoss.exponent", "log(1 + exp(100)): the reward of a rejected answer 100 above that of the chosen one",
       "openrlhf==0.11.2")
def log_exp() -> Seen:
    chosen = leaf(0.0)
    return not_finite(openrlhf("loss").LogExpLoss()(chosen, torch.tensor([100.0])), chosen, "loss 100, gradient -1")
