# SPDX-License-Identifier: Apache-2.0
"""Transformers: https://github.com/huggingface/transformers"""
from __future__ import annotations

import torch
from release import Release, told
from torch import Tensor

LOSSES, SMOOTHER = "transformers.loss.loss_utils", "transformers.trainer_pt_utils"
release = Release("transformers", (LOSSES, SMOOTHER))


def items(reduction: str, num_items: int, total_tokens: int) -> Tensor:
    return torch.tensor(total_tokens if reduction == "token_mean" else num_items)


def causal_lm(logits: Tensor, label: Tensor, reduction: str, num_items: int, total_tokens: int, world: int) -> Tensor:
    loss = release.load(LOSSES).ForCausalLMLoss
    count = items(reduction, num_items, total_tokens)
    rows, label = logits.contiguous(), label.long().contiguous()  # as lm_head and the collator make them
    value = loss(rows, None, logits.shape[-1], num_items_in_batch=count, shift_labels=label)
    return value * world  # transformers/trainer.py:2206 of 5.23.0


def label_smoother(logits: Tensor, label: Tensor, label_smoothing: float, reduction: str, num_items: int,
                   total_tokens: int, world: int) -> Tensor:
    loss = release.load(SMOOTHER).LabelSmoother(epsilon=label_smoothing)
    count = told(loss, num_items_in_batch=items(reduction, num_items, total_tokens))
    return loss({"logits": logits}, label.long(), **count) * (world if count else 1)
