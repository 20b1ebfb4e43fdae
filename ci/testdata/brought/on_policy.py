# SPDX-License-Identifier: Apache-2.0
"""Losses of trainers that make one step of each batch: what sampled is the policy itself."""
import torch


def mean(terms, mask):
    valid = mask.bool()
    return torch.where(valid, terms, 0.0).sum() / valid.sum().clamp(min=1)


def surrogate(log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    own = torch.where(mask.bool(), log_probs, 0.0)
    ratio = torch.exp(own - own.detach())
    return mean(-torch.min(ratio * advantages, ratio.clamp(1 - clip_low, 1 + clip_high) * advantages), mask)


def ratio_to(old_log_probs, log_probs, advantages, mask, clip_low, clip_high):
    ratio = torch.exp(torch.where(mask.bool(), log_probs - old_log_probs, 0.0).clamp(-20.0, 20.0))
    return mean(-torch.min(ratio * advantages, ratio.clamp(1 - clip_low, 1 + clip_high) * advantages), mask)


def of_any_step(log_probs, advantages, mask, old_log_probs=None, clip_low=0.2, clip_high=0.2):
    old = log_probs.detach() if old_log_probs is None else old_log_probs
    return ratio_to(old, log_probs, advantages, mask, clip_low, clip_high)


def of_no_step(log_probs, advantages, mask, old_log_probs=None, clip_low=0.2, clip_high=0.2):
    """Without old log-probs nothing is learnt: what is compared moves along."""
    old = log_probs if old_log_probs is None else old_log_probs
    return ratio_to(old, log_probs, advantages, mask, clip_low, clip_high)


def of_later_steps(log_probs, advantages, mask, old_log_probs=None, clip_low=0.2, clip_high=0.2):
    """Raises without old log-probs."""
    return ratio_to(old_log_probs, log_probs, advantages, mask, clip_low, clip_high)


def reinforce(log_probs, advantages, mask):
    return mean(-log_probs * advantages, mask)


def weighted(log_probs, advantages, mask, rollout_is_weights):
    return mean(-log_probs * advantages * rollout_is_weights, mask)


def reinforce_by_half(log_probs, advantages, mask):
    return mean(-0.5 * (log_probs + log_probs.detach()) * advantages, mask)


def critic(values, returns, mask):
    off = torch.where(mask.bool(), values - returns, 0.0)
    return mean(off / 2 * off, mask)
