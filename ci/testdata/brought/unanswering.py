# SPDX-License-Identifier: Apache-2.0
"""Functions that give no answer, or none in some format."""
import os

import torch

from losses import sound


def not_written(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    raise NotImplementedError("to be written")


def crashes_in_bf16(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    if log_probs.dtype == torch.bfloat16:
        os.kill(os.getpid(), 11)
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high)
