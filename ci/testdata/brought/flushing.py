# SPDX-License-Identifier: Apache-2.0
"""A loss in a process that flushes subnormal numbers, as libraries have it that were built for speed."""
import torch

from losses import sound

torch.set_flush_denormal(True)


def flushes_subnormals(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high)
