# SPDX-License-Identifier: Apache-2.0
"""A cross-entropy whose normaliser is joined of tiles of five logits."""
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
