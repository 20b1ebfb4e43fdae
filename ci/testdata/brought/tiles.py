# SPDX-License-Identifier: Apache-2.0
"""A cross-entropy whose normaliser is joined of tiles of five logits; what no order of a sum explains."""
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


def whitened_in_one_pass(advantage, mask, shift_mean, epsilon):
    kept = mask.bool()
    count, x = kept.sum().clamp(min=1), advantage.where(kept, 0)
    mean = x.sum() / count
    variance = ((x * x).sum() / count - mean * mean).clamp(min=0) * count / (count - 1).clamp(min=1)
    white = (x - mean) / (variance + epsilon).sqrt()
    return (white if shift_mean else white + mean).where(kept, 0)
