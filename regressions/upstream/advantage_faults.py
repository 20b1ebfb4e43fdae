# SPDX-License-Identifier: Apache-2.0
"""Estimates of advantages, over tokens and within groups: torchtune, OpenRLHF and AReaL."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from fault import Release, Seen, fault, shown
from torch import Tensor


def rewards() -> Any:
    return Release("torchtune", ("torchtune.rlhf.rewards",)).load("torchtune.rlhf.rewards")


@fault("torchtune.whiten.one", "one token has a variance of 0 * 1 / 0, and every position a NaN", "torchtune==0.6.1")
def whiten_one() -> Seen:
    whitened = rewards().whiten(torch.tensor([[3.0, 0.0]]), torch.tensor([[True, False]]))
    return Seen(not bool(whitened.isfinite().all()), f"whitened {shown(whitened)}; by the formula, with its mean, 3")


@fault("torchtune.estimate_advantages.mean", "the mean is added to advantages that were normalised", "torchtune==0.6.1")
def advantages_mean() -> Seen:
    value, reward = torch.zeros(1, 4), torch.tensor([[9.0, 10.0, 11.0, 10.0]])
    advantage = rewards().estimate_advantages(value, reward, 0.0, 0.0, torch.ones(1, 4, dtype=torch.bool))[0]
    return Seen(bool(advantage.mean() > 1), f"rewards {shown(reward)} without a discount or values: {shown(advantage)}; "
                "by the formula [-1.22474, 0, 1.22474, 0]")


@fault("openrlhf.gae.turns", "before another turn's text stands a value of 0, and what comes behind it is as many steps further",
       "openrlhf==0.11.2")
def gae_turns() -> Seen:
    name = "openrlhf.trainer.ppo_utils.experience_maker"
    estimate = Release("openrlhf", (name,)).load(name).RemoteExperienceMaker.get_advantages_and_returns

    def first(value: list, mask: list) -> Tensor:
        return estimate(None, torch.tensor([value]), torch.zeros(1, len(value)), torch.tensor([mask]), 1.0, 0.5)[0][0, 0]

    turns, joined = first([1.0, 0.0, 3.0], [1, 0, 1]), first([1.0, 3.0], [1, 1])
    return Seen(not torch.equal(turns, joined), f"values 1 and 3 with a masked token between them {shown(turns)}, with none "
                f"{shown(joined)}")


@fault("areal.Normalization.leave_one_out", "deviations are those from the means of the others, too, so that the quotient is as "
       "without leaving one out", "areal==1.0.4")
def leave_one_out() -> Seen:
    name = "areal.utils.data"
    normalise, reward = Release("areal", (name,)).load(name).Normalization, torch.tensor([0.0, 1.0])

    def normalised(others: bool) -> Tensor:
        levels = dict(mean_level="group", std_level="group", group_size=2)
        return normalise(SimpleNamespace(**levels, mean_leave1out=others, std_unbiased=True, eps=0.0))(reward)

    found, plain = normalised(True), normalised(False)
    return Seen(torch.allclose(found, plain), f"rewards {shown(reward)}, each less the other {shown(found)}, less the mean "
                f"{shown(plain)}; by the formula [-1.41421, 1.41421]")
