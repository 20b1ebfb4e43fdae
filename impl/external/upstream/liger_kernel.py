# SPDX-License-Identifier: Apache-2.0
"""Liger Kernel, its losses in PyTorch: https://github.com/linkedin/Liger-Kernel

A sequence has one advantage there. So each token is handed over as a sequence of its own, which leaves the
mean over tokens and the sum over all as they are, but for VESPO, which weighs whole sequences.
"""
from __future__ import annotations

import inspect

import torch
from release import Release, told
from torch import Tensor

CHUNKED = "liger_kernel.chunked_loss."
release = Release("liger-kernel", tuple(
    CHUNKED + name for name in ("grpo_loss", "jsd_loss", "dpo_loss", "kto_loss", "orpo_loss", "simpo_loss", "fused_linear_ppo",
                                "fused_linear_distillation", "fused_linear_preference",
                                "fused_linear_unpaired_preference")))
policy, distillation = release.load(CHUNKED + "grpo_loss"), release.load(CHUNKED + "jsd_loss")


def jsd(student_hidden: Tensor, student_weight: Tensor, teacher_hidden: Tensor, teacher_weight: Tensor,
        label: Tensor, beta: float, temperature: float) -> Tensor:
    loss = distillation.LigerFusedLinearJSDLoss(0.0, 1.0, beta, -100, temperature, compiled=False, chunk_size=4)
    return loss(student_hidden.flatten(0, 1), student_weight, teacher_hidden.flatten(0, 1), teacher_weight,
                label.flatten().long())


def ppo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, shape=(-1, 1), **options) -> Tensor:
    function = policy.LigerFusedLinearGRPOFunction.ppo_loss_fn
    tokens, mask = log_prob.reshape(shape), mask.long()
    scores = {"per_token_logps": tokens}
    if "log_probs" in inspect.signature(function).parameters:  # older releases gather them themselves
        scores = {"log_probs": tokens[..., None], "selected_token_ids": torch.zeros_like(tokens, dtype=torch.long)}
    return function(**scores, attention_mask=mask.reshape(shape), advantages=advantage.flatten(),
                    full_attention_mask=mask, old_per_token_logps=old_log_prob.reshape(shape), **options)[0]


def bounded(function, dual_clip, kl_weighted: float) -> dict:
    return told(function, delta=dual_clip, use_bias_correction_kl=bool(kl_weighted))


def grpo(log_prob: Tensor, old_log_prob: Tensor, ref_log_prob: Tensor, advantage: Tensor, mask: Tensor,
         clip_low: float, clip_high: float, dual_clip, kl_penalty: float, kl_weighted: float, max_length: int,
         reduction: str) -> Tensor:
    return ppo(log_prob, old_log_prob, advantage, mask, ref_per_token_logps=ref_log_prob.reshape(-1, 1),
               epsilon_low=clip_low, epsilon_high=clip_high, beta=kl_penalty, max_completion_length=max_length,
               loss_type={"token_mean": "bnpo", "seq_mean_token_sum_norm": "dr_grpo"}[reduction],
               **bounded(policy.LigerFusedLinearGRPOFunction.ppo_loss_fn, dual_clip, kl_weighted))


def cispo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, weight_high: float,
          total_tokens: int) -> Tensor:
    return ppo(log_prob, old_log_prob, advantage, mask, epsilon_high=weight_high, beta=0.0, loss_type="cispo",
               num_items_in_batch=max(total_tokens, 1))


def vespo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, k_positive: float,
          lambda_positive: float, k_negative: float, lambda_negative: float, total_tokens: int) -> Tensor:
    return ppo(log_prob, old_log_prob, advantage, mask, log_prob.shape, beta=0.0, loss_type="vespo",
               vespo_k_pos=k_positive, vespo_lambda_pos=lambda_positive, vespo_k_neg=k_negative,
               vespo_lambda_neg=lambda_negative, num_items_in_batch=max(total_tokens, 1))


def linear_grpo(hidden: Tensor, weight: Tensor, bias: Tensor, label: Tensor, old_log_prob: Tensor,
                ref_log_prob: Tensor, advantage: Tensor, clip_low: float, clip_high: float, dual_clip,
                kl_penalty: float, kl_weighted: float, temperature: float) -> Tensor:
    loss = policy.LigerFusedLinearGRPOLoss
    loss = loss(beta=kl_penalty, compiled=False, chunk_size=4, epsilon_low=clip_low, epsilon_high=clip_high,
                loss_type="bnpo", temperature=temperature, **bounded(loss, dual_clip, kl_weighted))
    mask, label = (label != -100).long().reshape(-1, 1), label.long().clamp(min=0).reshape(-1, 1)
    return loss(hidden.reshape(-1, 1, hidden.shape[-1]), weight, label, mask, advantage.flatten(), bias,
                ref_log_prob.reshape(-1, 1), old_log_prob.reshape(-1, 1))[0]


def simpo(chosen_log_prob: Tensor, rejected_log_prob: Tensor, beta: float, label_smoothing: float,
          margin: float) -> Tensor:
    loss = release.load(CHUNKED + "simpo_loss").LigerFusedLinearSimPOFunction.preference_loss_fn
    answers = torch.cat((chosen_log_prob, rejected_log_prob))  # in place of their tokens, whose rows are counted
    return loss(chosen_log_prob, rejected_log_prob, answers, beta, margin, label_smoothing)[0]


def dpo(chosen_log_prob: Tensor, rejected_log_prob: Tensor, ref_chosen_log_prob: Tensor, ref_rejected_log_prob: Tensor,
        beta: float, loss_type: str) -> Tensor:
    loss = release.load(CHUNKED + "dpo_loss").LigerFusedLinearDPOFunction.preference_loss_fn
    answers = torch.cat((chosen_log_prob, rejected_log_prob))  # in place of their tokens, whose rows are counted
    return loss(chosen_log_prob, rejected_log_prob, answers, ref_chosen_log_prob, ref_rejected_log_prob, beta,
                loss_type)[0]


def kto(log_prob: Tensor, ref_log_prob: Tensor, desirable: Tensor, beta: float, kl: float) -> Tensor:
    loss = release.load(CHUNKED + "kto_loss").LigerFusedLinearKTOFunction.preference_loss_fn
    # In place of the tokens, whose rows are counted, the log-probs; kl as its caller has it, which clamps it at 0.
    found = loss(log_prob, desirable, log_prob, ref_log_prob, beta, torch.full_like(ref_log_prob[:1], kl))
    return found[0] if isinstance(found, tuple) else found


def orpo(chosen_log_prob: Tensor, rejected_log_prob: Tensor, beta: float) -> Tensor:
    loss = release.load(CHUNKED + "orpo_loss").LigerFusedLinearORPOFunction.preference_loss_fn
    answers = torch.cat((chosen_log_prob, rejected_log_prob))  # in place of their tokens, whose rows are counted
    return loss(chosen_log_prob, rejected_log_prob, answers, beta)[0]
