# SPDX-License-Identifier: Apache-2.0
"""Losses as trainers write them, for the sample page: two have bugs that are met in the field, and the third is the
first one, mended."""

import torch


def ppo_loss(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    ratio = torch.exp(log_probs - old_log_probs)
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    loss = -torch.min(ratio * advantages, clipped * advantages)
    return (loss * mask).sum() / mask.sum().clamp(min=1)


def value_loss(value, old_value, target, mask, clip_range=0.2):
    clipped = old_value + (value - old_value).clamp(-clip_range, clip_range)
    loss = 0.5 * torch.max((value - target) ** 2, (clipped - target) ** 2)
    return (loss * mask).mean() / mask.float().mean()


def mended_ppo_loss(log_probs, old_log_probs, advantages, mask, total_tokens, clip_low=0.2, clip_high=0.2):
    log_ratio = torch.where(mask, log_probs - old_log_probs, 0.0)
    ratio = torch.exp(log_ratio.clamp(-20.0, 20.0))
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    advantages = torch.where(mask, advantages, 0.0)
    return -torch.min(ratio * advantages, clipped * advantages).sum() / max(total_tokens, 1)
