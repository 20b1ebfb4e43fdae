# SPDX-License-Identifier: Apache-2.0
"""torchtune: https://github.com/pytorch/torchtune"""
from __future__ import annotations

import torch
from release import Release
from torch import Tensor

PPO, REWARDS, KD = "torchtune.rlhf.loss.ppo", "torchtune.rlhf.rewards", "torchtune.modules.loss.kd_losses"
CHUNKED, DPO = "torchtune.modules.loss.ce_chunked_output_loss", "torchtune.rlhf.loss.dpo"
release = Release("torchtune", (PPO, REWARDS, KD, CHUNKED, DPO))
ppo_losses, distillation, preferences = release.load(PPO), release.load(KD), release.load(DPO)
ppo_losses.rlhf.__dict__["masked_mean"] = release.load(REWARDS).masked_mean  # as torchtune.rlhf exports it


def ppo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, clip_low: float) -> Tensor:
    none = torch.zeros_like(advantage)
    loss = ppo_losses.PPOLoss(epsilon=clip_low, value_coeff=0.0)
    return loss(old_log_prob, log_prob, advantage, none, none, none, mask.bool(), mask.bool())[0]


def value_loss(value: Tensor, old_value: Tensor, return_: Tensor, mask: Tensor, value_clip: float) -> Tensor:
    none = torch.zeros_like(value)
    loss = ppo_losses.PPOLoss(value_clip_range=value_clip, value_coeff=1.0)
    return loss(none, none, none, old_value, value, return_, mask.bool(), mask.bool())[0]


def distiller(name: str, *options):
    if not hasattr(distillation, name):
        raise NotImplementedError(f"this release has no {name}")
    return getattr(distillation, name)(*options)


def forward_kl(student_logits: Tensor, teacher_logits: Tensor, label: Tensor, reduction: str) -> Tensor:
    return divergence(distiller("ForwardKLLoss"), student_logits, teacher_logits, label, reduction)


def reverse_kl(student_logits: Tensor, teacher_logits: Tensor, label: Tensor, reduction: str) -> Tensor:
    return divergence(distiller("ReverseKLLoss"), student_logits, teacher_logits, label, reduction)


def divergence(loss, student_logits: Tensor, teacher_logits: Tensor, label: Tensor, reduction: str) -> Tensor:
    label = label.long().contiguous()  # the recipe's come from torch.hstack
    return loss(student_logits.flatten(0, 1), teacher_logits.flatten(0, 1), label, reduction == "token_mean")


def chunked_forward_kl(student_logits: Tensor, teacher_logits: Tensor, label: Tensor) -> Tensor:
    return chunked("ForwardKLWithChunkedOutputLoss", student_logits, teacher_logits, label)


def chunked_reverse_kl(student_logits: Tensor, teacher_logits: Tensor, label: Tensor) -> Tensor:
    return chunked("ReverseKLWithChunkedOutputLoss", student_logits, teacher_logits, label)


def chunked(name: str, student_logits: Tensor, teacher_logits: Tensor, label: Tensor) -> Tensor:
    chunks = min(2, label.shape[1])
    loss = distiller(name, chunks)
    return loss(list(student_logits.chunk(chunks, 1)), list(teacher_logits.chunk(chunks, 1)), label.long().contiguous())


def cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    chunks = min(8, label.shape[1])
    loss = release.load(CHUNKED).CEWithChunkedOutputLoss(chunks)
    return loss(list(logits.chunk(chunks, 1)), label.long())

def dpo(chosen_log_prob: Tensor, rejected_log_prob: Tensor, ref_chosen_log_prob: Tensor, ref_rejected_log_prob: Tensor,
        beta: float, label_smoothing: float) -> Tensor:
    loss = preferences.DPOLoss(beta, label_smoothing)
    return loss(chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob)[0].mean()


def rso(chosen_log_prob: Tensor, rejected_log_prob: Tensor, ref_chosen_log_prob: Tensor, ref_rejected_log_prob: Tensor,
        beta: float) -> Tensor:
    if not hasattr(preferences, "RSOLoss"):
        raise NotImplementedError("this release has no RSOLoss")
    loss = preferences.RSOLoss(gamma=beta)
    return loss(chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob)[0].mean()


def gae(reward: Tensor, value: Tensor, mask: Tensor, gamma: float, lambda_: float) -> tuple[Tensor, Tensor]:
    return release.load(REWARDS).estimate_advantages(value, reward, gamma, lambda_, mask.bool())


def whiten(advantage: Tensor, mask: Tensor, shift_mean: bool) -> Tensor:
    return release.load(REWARDS).whiten(advantage, mask.bool(), not shift_mean)  # it adds the mean where it is told so
