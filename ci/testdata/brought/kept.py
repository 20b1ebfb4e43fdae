# SPDX-License-Identifier: Apache-2.0
"""Losses that keep something between calls, and one that is wrong everywhere."""
import functools

from losses import sound

calls, counts = [], {}


@functools.wraps(sound)
def halved(*args, **kwargs):
    return sound(*args, **kwargs) / 2


@functools.wraps(sound)
def halved_in_the_end(*args, **kwargs):
    calls.append(1)
    return sound(*args, **kwargs) / (2 if len(calls) > 30 else 1)


@functools.wraps(sound)
def by_the_first_count(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    count = mask.bool().sum().clamp(min=1)
    kept = counts.setdefault(mask.shape, count)
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high) * count / kept
