# SPDX-License-Identifier: Apache-2.0
"""Losses that add up by a product of matrices, which torch.autocast forms in 16 bits."""
import torch


def by_einsum(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    valid = mask.bool()
    log_ratio = torch.where(valid, log_probs - old_log_probs, 0.0).clamp(-20.0, 20.0)
    ratio, advantage = torch.exp(log_ratio), torch.where(valid, advantages, 0.0)
    loss = -torch.min(ratio * advantage, ratio.clamp(1 - clip_low, 1 + clip_high) * advantage)
    return torch.einsum("bt,bt->", loss, valid.to(loss.dtype)) / valid.sum().clamp(min=1)


def by_einsum_outside(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    with torch.autocast(log_probs.device.type, enabled=False):
        return by_einsum(log_probs, old_log_probs, advantages, mask, clip_low, clip_high)
