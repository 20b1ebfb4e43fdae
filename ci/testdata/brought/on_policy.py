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


def reinforce(log_probs, advantages, mask):
    return mean(-log_probs * advantages, mask)


def weighted(log_probs, advantages, mask, rollout_is_weights):
    return mean(-log_probs * advantages * rollout_is_weights, mask)


def reinforce_by_half(log_probs, advantages, mask):
    return mean(-0.5 * (log_probs + log_probs.detach()) * advantages, mask)


def critic(values, returns, mask):
    off = torch.where(mask.bool(), values - returns, 0.0)
    return mean(off / 2 * off, mask)
