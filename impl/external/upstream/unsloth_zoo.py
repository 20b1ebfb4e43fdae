# SPDX-License-Identifier: Apache-2.0
"""Unsloth Zoo: https://github.com/unslothai/unsloth-zoo"""
from __future__ import annotations

import torch
from release import Release
from torch import Tensor

FUSED, CPU = "unsloth_zoo.fused_losses.fused_linear", "unsloth_zoo.cpu.ops"
release = Release("unsloth-zoo", ("unsloth_zoo.rl_replacements", FUSED, CPU))
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


def divisor_of(reduction: str, num_items: int, total_tokens: int) -> int:
    return {"token_mean": total_tokens, "sum_over_items": num_items, "sum": 1}[reduction]


def linear_cross_entropy(hidden: Tensor, weight: Tensor, bias: Tensor, label: Tensor, label_smoothing: float,
                         reduction: str, num_items: int, total_tokens: int) -> Tensor:
    return release.load(FUSED).fused_linear_cross_entropy(
        hidden, weight, bias, label.long(), divisor=divisor_of(reduction, num_items, total_tokens),
        label_smoothing=label_smoothing)


def cpu_linear_cross_entropy(hidden: Tensor, weight: Tensor, label: Tensor, reduction: str, num_items: int,
                             total_tokens: int) -> Tensor:
    return release.load(CPU).chunked_linear_cross_entropy(
        hidden, weight, None, divisor_of(reduction, num_items, total_tokens), shift_labels=label.long(), chunk_rows=4)


def linear_jsd(student_hidden: Tensor, student_weight: Tensor, teacher_hidden: Tensor, teacher_weight: Tensor,
               label: Tensor, beta: float, temperature: float, reduction: str, num_items: int,
               total_tokens: int) -> Tensor:
    return release.load(FUSED).fused_linear_jsd(
        student_hidden, student_weight, teacher_hidden, teacher_weight, labels=label.long(), beta=beta,
        temperature=temperature, num_items_in_batch=divisor_of(reduction, num_items, total_tokens))
