# SPDX-License-Identifier: Apache-2.0
"""A cross-entropy whose normaliser is joined of tiles of five logits; an exp of base 2; what no declaration explains."""
import torch


def joins_tiles(logits, label):
    kept, normaliser = label != -100, None
    rows, targets = logits[kept], label[kept].long()
    for tile in rows.split(5, -1):
        part = tile.logsumexp(-1)
        normaliser = part if normaliser is None else torch.logaddexp(normaliser, part)
    return (normaliser - rows.gather(-1, targets[:, None]).squeeze(-1)).sum() / kept.sum().clamp(min=1)


def joins_tiles_of_what_it_caps(logits, label):
    return joins_tiles(logits.clamp(min=-1e5), label)


def off_where_wide(logits, label):
    kept = label != -100
    rows, targets = logits[kept], label[kept].long()
    normaliser = rows.logsumexp(-1) * (1.0001 if logits.shape[-1] % 1024 == 0 else 1)
    return (normaliser - rows.gather(-1, targets[:, None]).squeeze(-1)).sum() / kept.sum().clamp(min=1)


def weighs_by_exp2(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    valid = mask.bool()
    log_ratio = torch.where(valid, log_probs - old_log_probs, 0.0).clamp(-20.0, 20.0)
    ratio, advantage = torch.exp2(log_ratio * 1.4426950408889634), torch.where(valid, advantages, 0.0)
    loss = -torch.min(ratio * advantage, ratio.clamp(1 - clip_low, 1 + clip_high) * advantage)
    return torch.where(valid, loss, 0.0).sum() / valid.sum().clamp(min=1)


def whitened_in_one_pass(advantage, mask, shift_mean, epsilon):
    kept = mask.bool()
    count, x = kept.sum().clamp(min=1), advantage.where(kept, 0)
    mean = x.sum() / count
    variance = ((x * x).sum() / count - mean * mean).clamp(min=0) * count / (count - 1).clamp(min=1)
    white = (x - mean) / (variance + epsilon).sqrt()
    return (white if shift_mean else white + mean).where(kept, 0)
