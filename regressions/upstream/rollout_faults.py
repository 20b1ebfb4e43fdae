# SPDX-License-Identifier: Apache-2.0
"""Importance weights of tokens that another engine sampled: verl and AReaL."""
from __future__ import annotations

from types import SimpleNamespace

import torch
from fault import Release, Seen, fault, shown

VERL = ("verl.trainer.ppo.rollout_corr_helper", "verl.utils.torch_functional")
AREAL = "areal.utils.functional.functional"
NAN = float("nan")


def verl_weights(log_ratio: list, bounds: str) -> torch.Tensor:
    ratio = torch.tensor([log_ratio])
    weights = Release("verl", VERL).load(VERL[0]).compute_rollout_correction_weights
    return weights(ratio, torch.ones_like(ratio).long(), "token", bounds)[0]


@fault("verl.rollout.nothing_left", "the effective size of a batch whose weights are all dropped divides by 0", "verl==0.9.1")
def verl_nothing_left() -> Seen:
    try:
        weights = verl_weights([1.0, 1.0], "0.5_2")
    except ZeroDivisionError as error:
        return Seen(True, f"raises {error}; by the formula weights [0, 0]")
    return Seen(False, f"weights {shown(weights)}")


@fault("verl.rollout.laundering", "comparisons of a NaN are false: its token weighs 0, as one that was dropped", "verl==0.9.1")
def verl_laundering() -> Seen:
    weights = verl_weights([NAN, 0.0], "0.5_2")
    return Seen(bool(weights.isfinite().all()), f"log-ratios [nan, 0], weights {shown(weights)}")


@fault("areal.rejection.laundering", "a log-ratio that is no number becomes 0: its token weighs 1", "areal==1.0.4")
def areal_laundering() -> Seen:
    config = SimpleNamespace(metric="ratio", level="token", agg="mean", action="clamp", lower=None, upper=2.0)
    filtered = Release("areal", (AREAL,)).load(AREAL).apply_rejection_sampling
    found = filtered(torch.tensor([[NAN, 0.0]]), torch.zeros(1, 2), torch.ones(1, 2).long(), None, config)
    weights = found.behave_imp_weight
    return Seen(bool(weights.isfinite().all()), f"log-probs [nan, 0], weights {shown(weights)}")
