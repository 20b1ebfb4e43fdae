# SPDX-License-Identifier: Apache-2.0
"""AReaL: https://github.com/inclusionAI/AReaL"""
from __future__ import annotations

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from release import Release
from torch import Tensor

ACTOR, DATA = "areal.trainer.ppo.actor", "areal.utils.data"
release = Release("areal", ("areal.utils.functional.functional", ACTOR, DATA))
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


# Nothing is added to a reward, which is told as the KL estimate of log-probs against 0.
PLAIN = dict(config=SimpleNamespace(overlong_reward_penalty=None, use_decoupled_loss=False, recompute_logprob=True),
             reward_bias=0.0, reward_scaling=1.0, reward_clip=0.0, reward_norm=None, adv_norm=None, kl_ctl=-1.0,
             mask_no_eos_with_zero=False)


def gae(reward: Tensor, value: Tensor, mask: Tensor, gamma: float, lambda_: float) -> tuple[Tensor, Tensor]:
    """Positions are those that predict the next token, so there is one token more, whose value is 0."""
    actor, tokens = release.load(ACTOR).PPOActor, F.pad(mask.float(), (1, 0))
    estimator = release.load(DATA).KLEstimator("k1", apply_clamp=False)
    self = SimpleNamespace(**PLAIN, kl_estimator=estimator, discount=gamma, gae_lambda=lambda_)
    told = dict(input_ids=tokens, attention_mask=torch.ones_like(tokens), loss_mask=tokens, rewards=reward.new_zeros(len(mask)),
                prox_logp=F.pad(reward, (0, 1)), values=F.pad(value, (0, 1)))
    data = actor._compute_advantages(self, told)
    return data["advantages"][:, :-1], data["returns"][:, :-1]


def group_advantage(reward: Tensor, size: int, baseline: str, scale: str, epsilon: float) -> Tensor:
    config = SimpleNamespace(mean_level="group", mean_leave1out=baseline == "leave_one_out", group_size=size, eps=epsilon,
                             std_level=None if scale == "unscaled" else "group", std_unbiased=scale == "std")
    return release.load(DATA).Normalization(config)(reward)
