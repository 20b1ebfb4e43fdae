# SPDX-License-Identifier: Apache-2.0
"""Unsloth Zoo: https://github.com/unslothai/unsloth-zoo"""
from __future__ import annotations

import torch
from release import Release
from torch import Tensor

release = Release("unsloth-zoo", ("unsloth_zoo.rl_replacements",))
loss = release.load("unsloth_zoo.rl_replacements").grpo_compute_loss
LOSS_TYPES = {"sequence_mean": "grpo", "token_mean": "dapo", "seq_mean_token_sum_norm": "dr_grpo"}


def grpo(log_prob: Tensor, old_log_prob: Tensor, ref_log_prob: Tensor, advantage: Tensor, mask: Tensor,
         clip_low: float, clip_high: float, dual_clip, level: str, kl_penalty: float, max_length: int,
         reduction: str, total_tokens: int, micro_batches: int, world: int) -> Tensor:
    ids = torch.zeros_like(mask, dtype=torch.long)
    return loss(ref_log_prob, log_prob, old_log_prob, None, ids, mask.long(), kl_penalty, advantage,
                loss_type=LOSS_TYPES[reduction], epsilon_low=clip_low, epsilon_high=clip_high, delta=dual_clip,
                importance_sampling_level=level, max_completion_length=max_length, num_processes=world,
                num_items_in_batch=torch.tensor(total_tokens), current_gradient_accumulation_steps=micro_batches)[0]
