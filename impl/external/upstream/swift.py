# SPDX-License-Identifier: Apache-2.0
"""ms-swift: https://github.com/modelscope/ms-swift"""
from __future__ import annotations

from types import SimpleNamespace

import torch
from release import Release
from torch import Tensor

LOSS, ADVANTAGE, TERMS = "swift.rlhf_trainers.gkd_loss", "swift.rl_core.advantage", "swift.trainers.utils"
GRPO = ("swift.rlhf_trainers.grpo_trainer",)
release = Release("ms-swift", (LOSS, ADVANTAGE, TERMS, *GRPO))
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


LOSS_TYPES = {"sequence_mean": "grpo", "token_mean": "dapo", "seq_mean_token_sum_norm": "dr_grpo"}
# Nothing but the loss: no filter by entropy, length or policy distance, no teacher, no inference engine.
PLAIN = dict(beta=0.0, importance_sampling_level="token", compute_entropy=False, overlong_filter=False, kl_in_reward=False,
             rollout_importance_sampling_mode=None, log_rollout_offpolicy_metrics=False,
             disable_rollout_importance_sampling=True, off_policy_sequence_mask_delta=None, sdar_loss_coef=0.0,
             chord_sft_iterator=None, model_accepts_loss_kwargs=False, compute_loss_func=None, _has_teacher=False,
             model=SimpleNamespace(training=True))


def policy(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, total_tokens: int, micro_batches: int,
           world: int, ref_log_prob=None, delta=None, **options) -> Tensor:
    """What a trainer whose model gives these log-probs makes of a micro-batch, before its base class divides by their
    number."""
    self = object.__new__(release.class_with("_compute_loss_and_metrics", GRPO))
    self.__dict__.update(PLAIN, current_gradient_accumulation_steps=micro_batches, **options)
    self.accelerator = SimpleNamespace(num_processes=world, gather_for_metrics=lambda x: x)
    self.args = SimpleNamespace(delta=delta, gradient_accumulation_steps=micro_batches)
    self._get_per_token_logps_and_entropies = lambda *arguments, **named: (log_prob, None)
    batch = SimpleNamespace(completion_mask=mask.bool(), truncated_mask=None, advantages=advantage,
                            old_per_token_logps=old_log_prob, ref_per_token_logps=ref_log_prob,
                            rollout_per_token_logps=None, num_items_in_batch=torch.tensor(float(total_tokens)))
    return self._compute_loss_and_metrics(None, None, batch)[0]


def grpo(log_prob: Tensor, old_log_prob: Tensor, ref_log_prob: Tensor, advantage: Tensor, mask: Tensor, clip_low: float,
         clip_high: float, dual_clip, level: str, kl_penalty: float, max_length: int, reduction: str,
         total_tokens: int, micro_batches: int, world: int) -> Tensor:
    return policy(log_prob, old_log_prob, advantage, mask, total_tokens, micro_batches, world, ref_log_prob,
                  loss_type=LOSS_TYPES[reduction], epsilon_low=clip_low, epsilon_high=clip_high, beta=kl_penalty,
                  importance_sampling_level=level, max_completion_length=max_length, delta=dual_clip)


def cispo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, weight_high: float,
          total_tokens: int, micro_batches: int, world: int) -> Tensor:
    return policy(log_prob, old_log_prob, advantage, mask, total_tokens, micro_batches, world, loss_type="cispo",
                  epsilon_high=weight_high)


def sapo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, tau_positive: float,
         tau_negative: float, total_tokens: int, micro_batches: int, world: int) -> Tensor:
    return policy(log_prob, old_log_prob, advantage, mask, total_tokens, micro_batches, world, loss_type="sapo",
                  tau_pos=tau_positive, tau_neg=tau_negative)
