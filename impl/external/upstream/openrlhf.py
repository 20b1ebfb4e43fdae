# SPDX-License-Identifier: Apache-2.0
"""OpenRLHF: https://github.com/OpenRLHF/OpenRLHF"""
from __future__ import annotations

import torch
from release import Release, told
from torch import Tensor

MAKER = "openrlhf.trainer.ppo_utils.experience_maker"
release = Release("openrlhf", ("openrlhf.models.loss", "openrlhf.models.utils", MAKER))
losses, utils = release.load("openrlhf.models.loss"), release.load("openrlhf.models.utils")


def normalisers(function, total_tokens: int, total_sequences: int, micro_batches: int, world: int) -> dict:
    """What `iter_grad_accum_global_norm` (openrlhf/utils/loss_utils.py) hands to the losses, from 0.10.3 on."""
    return told(function, dp_size=world, batch_num_tokens=total_tokens / micro_batches,
                global_batch_size=total_sequences / micro_batches)


def ppo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, clip_low: float, clip_high: float,
        dual_clip, reduction: str, total_tokens, total_sequences, micro_batches, world) -> Tensor:
    loss = losses.PolicyLoss(clip_low, clip_high, dual_clip, token_level_loss=reduction == "token_mean")
    step = normalisers(loss.forward, total_tokens, total_sequences, micro_batches, world)
    return loss(log_prob, old_log_prob, advantage, mask.bool(), **step)[0]


def gspo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, clip_low: float, clip_high: float,
         dual_clip, total_tokens, total_sequences, micro_batches, world) -> Tensor:
    loss = losses.PolicyLoss(clip_low, clip_high, dual_clip, policy_loss_type="gspo")
    step = normalisers(loss.forward, total_tokens, total_sequences, micro_batches, world)
    return loss(log_prob, old_log_prob, advantage, mask.bool(), **step)[0]


def aggregated(terms: Tensor, mask: Tensor, total_tokens, total_sequences, micro_batches, world) -> Tensor:
    if not hasattr(losses, "aggregate_loss"):  # below 0.10.3: openrlhf/trainer/ray/ppo_actor.py:307
        return utils.masked_mean(terms, mask.bool())
    step = normalisers(losses.aggregate_loss, total_tokens, total_sequences, micro_batches, world)
    return losses.aggregate_loss(terms, mask.bool(), **step)


def kl(log_prob: Tensor, ref_log_prob: Tensor, mask: Tensor, kl_estimator: str, kl_straight_through: float,
       total_tokens, total_sequences, micro_batches, world) -> Tensor:
    straight = told(utils.compute_approx_kl, unbiased_gradient=bool(kl_straight_through))
    value = utils.compute_approx_kl(log_prob, ref_log_prob, kl_estimator=kl_estimator, **straight)
    return aggregated(value, mask, total_tokens, total_sequences, micro_batches, world)


def value_loss(value: Tensor, old_value: Tensor, return_: Tensor, mask: Tensor, value_clip, reduction: str,
               total_tokens, total_sequences, micro_batches, world) -> Tensor:
    loss = losses.ValueLoss(value_clip, token_level_loss=reduction == "token_mean")
    step = normalisers(loss.forward, total_tokens, total_sequences, micro_batches, world)
    return loss(value, old_value, return_, mask.bool(), **step)


def log_prob(logits: Tensor, label: Tensor, log_prob_weight: Tensor, entropy_weight: Tensor,
             temperature: float) -> Tensor:
    valid = label != -100
    # The function divides by the temperature in place, which indexing makes harmless.
    taken = utils.log_probs_from_logits(logits[valid], label[valid].long(), temperature)
    entropy = utils.compute_entropy(logits[valid] / temperature)
    return (log_prob_weight[valid] * taken + entropy_weight[valid] * entropy).sum()


def entropy(logits: Tensor, mask: Tensor, coefficient: float, total_tokens, total_sequences, micro_batches,
            world) -> Tensor:
    value = utils.compute_entropy(logits)  # openrlhf/trainer/ray/ppo_actor.py:347 of 0.11.2
    return -coefficient * aggregated(value, mask, total_tokens, total_sequences, micro_batches, world)


def dpo(chosen_log_prob: Tensor, rejected_log_prob: Tensor, ref_chosen_log_prob: Tensor, ref_rejected_log_prob: Tensor,
        beta: float, label_smoothing: float) -> Tensor:
    loss = losses.DPOLoss(beta, label_smoothing)
    return loss(chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob)[0]


def ipo(chosen_log_prob: Tensor, rejected_log_prob: Tensor, ref_chosen_log_prob: Tensor, ref_rejected_log_prob: Tensor,
        beta: float) -> Tensor:
    loss = losses.DPOLoss(beta, ipo=True)
    return loss(chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob)[0]


def reward(chosen_log_prob: Tensor, rejected_log_prob: Tensor, margin: float) -> Tensor:
    return losses.PairWiseLoss()(chosen_log_prob, rejected_log_prob, torch.full_like(chosen_log_prob, margin))


def log_exp_reward(chosen_log_prob: Tensor, rejected_log_prob: Tensor) -> Tensor:
    return losses.LogExpLoss()(chosen_log_prob, rejected_log_prob)


def gae(reward: Tensor, value: Tensor, mask: Tensor, gamma: float, lambda_: float) -> tuple[Tensor, Tensor]:
    estimate = release.load(MAKER).RemoteExperienceMaker.get_advantages_and_returns
    return estimate(None, value, reward, mask.long(), gamma, lambda_)
