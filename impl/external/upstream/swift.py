# SPDX-License-Identifier: Apache-2.0
"""ms-swift: https://github.com/modelscope/ms-swift"""
from __future__ import annotations

from types import SimpleNamespace

import torch
from release import Release
from torch import Tensor

LOSS, ADVANTAGE, TERMS = "swift.rlhf_trainers.gkd_loss", "swift.rl_core.advantage", "swift.trainers.utils"
release = Release("ms-swift", (LOSS, ADVANTAGE, TERMS))
losses = release.load(LOSS)


def jsd(teacher, student_logits: Tensor, label: Tensor, beta: float, temperature: float) -> Tensor:
    teacher.labels = label
    total, count = losses.gkd_loss(student_logits, teacher, label, beta, temperature)
    return total * 0 if count == 0 else total / count  # rlhf_trainers/gkd_trainer.py:112 of 4.6.0


def gkd(student_logits: Tensor, teacher_logits: Tensor, label: Tensor, beta: float, temperature: float) -> Tensor:
    return jsd(losses.TeacherOutput(full_logits=teacher_logits), student_logits, label, beta, temperature)


def gkd_top_k(student_logits: Tensor, support_token: Tensor, teacher_log_prob: Tensor, label: Tensor, beta: float) -> Tensor:
    if support_token.shape[-1] > 1 and bool((support_token.sort().values.diff() == 0)[label != -100].any()):
        raise NotImplementedError("the tokens of a top-k are distinct")
    teacher = losses.TeacherOutput(topk_logprobs=teacher_log_prob, topk_indices=support_token.clamp(min=0))
    return jsd(teacher, student_logits, label, beta, 1.0)


def dft(logits: Tensor, label: Tensor, reduction: str, num_items: int, total_tokens: int, world: int) -> Tensor:
    labels = label.long().roll(1, dims=-1)  # which it rolls back
    terms = release.load(TERMS).per_token_loss_func(SimpleNamespace(logits=logits.contiguous()), labels,
                                                     enable_dft_loss=True)
    count = torch.tensor(total_tokens if reduction == "token_mean" else num_items)
    return terms.sum() / count * world  # trainers/seq2seq_trainer.py:225 and 241 of 4.6.0


def group_advantage(reward: Tensor, group: Tensor, baseline: str, scale: str) -> Tensor:
    if scale == "population_std":
        raise NotImplementedError("a deviation is divided by one less")
    estimate = release.load(ADVANTAGE).compute_advantages_dynamic
    return estimate(reward.unsqueeze(-1), torch.ones_like(reward[:1]), group.tolist(), list(range(len(reward))),
                    "rloo" if baseline == "leave_one_out" else "grpo", "group" if scale == "std" else "none")[0]
