# SPDX-License-Identifier: Apache-2.0
"""AReaL: https://github.com/inclusionAI/AReaL"""
from __future__ import annotations

from types import SimpleNamespace

from release import Release
from torch import Tensor

release = Release("areal", ("areal.utils.functional.functional",))
losses = release.load("areal.utils.functional.functional")


def ppo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, clip_low: float, clip_high: float,
        dual_clip) -> Tensor:
    if not mask.any():  # a zero, see areal/engine/fsdp_engine.py:2063 of 1.0.4
        return log_prob[:0].sum()
    return losses.ppo_actor_loss_fn(log_prob, old_log_prob, old_log_prob, advantage, clip_low, mask.bool(),
                                    eps_clip_higher=clip_high, c_clip=dual_clip)[0]


def sapo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, tau_positive: float,
         tau_negative: float) -> Tensor:
    if not mask.any():
        return log_prob[:0].sum()
    return losses.sapo_loss_fn(log_prob, old_log_prob, advantage, tau_positive, tau_negative, mask.bool())[0]


def critic(value: Tensor, old_value: Tensor, return_: Tensor, mask: Tensor, value_clip: float) -> Tensor:
    if not mask.any():
        return value[:0].sum()
    return losses.ppo_critic_loss_fn(value, old_value, return_, value_clip, mask.bool())[0]


def dpo(chosen_log_prob: Tensor, rejected_log_prob: Tensor, ref_chosen_log_prob: Tensor, ref_rejected_log_prob: Tensor,
        beta: float, loss_type: str) -> Tensor:
    if not hasattr(losses, "dpo_preference_loss") or loss_type == "hinge":
        raise NotImplementedError("this release has no such loss")
    margin = (chosen_log_prob - rejected_log_prob) - (ref_chosen_log_prob - ref_rejected_log_prob)
    return losses.dpo_preference_loss(margin, beta=beta, loss_type=loss_type).mean()


def rollout_correction(old_log_prob: Tensor, sampler_log_prob: Tensor, mask: Tensor, level: str, beyond: str,
                       weight_low: float, weight_high: float) -> Tensor:
    if level == "sequence":
        raise NotImplementedError("the weight of a sequence is a geometric mean")
    config = SimpleNamespace(metric="ratio", level="token" if level == "token" else "sequence", agg="mean",
                             action="mask" if beyond == "drop" else "clamp", lower=weight_low, upper=weight_high)
    return losses.apply_rejection_sampling(old_log_prob, sampler_log_prob, mask.long(), None, config).behave_imp_weight
