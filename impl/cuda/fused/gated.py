# SPDX-License-Identifier: Apache-2.0
"""The fused losses as the gate asks them, each as torch's dispatcher hands it out (lossgate.toml)."""
from __future__ import annotations

from typing import Any

import lossgate_fused as fused
import torch
from torch import Tensor

Outputs = dict[str, Tensor]


def named(outputs: tuple[Tensor, Tensor]) -> Outputs:
    return dict(zip(("loss", "per_token"), outputs))


def grpo(log_prob: Tensor, old_log_prob: Tensor, ref_log_prob: Tensor, advantage: Tensor, mask: Tensor,
         total_tokens: int, total_sequences: int, **options: Any) -> Outputs:
    return named(fused.grpo(log_prob, old_log_prob, ref_log_prob, advantage, mask, total_tokens=total_tokens,
                            total_sequences=total_sequences, **options))


def value_clip(value: Tensor, old_value: Tensor, mask: Tensor, total_tokens: int, total_sequences: int,
               **options: Any) -> Outputs:
    return named(fused.value_clip(value, old_value, options.pop("return"), mask, total_tokens=total_tokens,
                                  total_sequences=total_sequences, **options))


def log_prob(logits: Tensor, label: Tensor, log_prob_weight: Tensor, entropy_weight: Tensor, temperature: float) -> Outputs:
    taken, entropy = fused.log_prob(logits, label, temperature=temperature)
    loss = weighted(taken, log_prob_weight, label) + weighted(entropy, entropy_weight, label)
    return {"loss": loss, "log_prob": taken, "entropy": entropy}


def weighted(terms: Tensor, weight: Tensor, label: Tensor) -> Tensor:
    """A weight of 0 asks for nothing, not even of an impossible token."""
    counts = (label != -100) & (weight != 0)
    return (terms.where(counts, 0) * weight.float().where(counts, 0)).sum()


def jsd(student_logits: Tensor, teacher_logits: Tensor, label: Tensor, total_tokens: int, **options: Any) -> Outputs:
    return named(fused.jsd(student_logits, teacher_logits, label, total_tokens=total_tokens, **options))


def sparse_jsd(student_logits: Tensor, support_token: Tensor, teacher_log_prob: Tensor, label: Tensor, total_tokens: int,
               **options: Any) -> Outputs:
    return named(fused.sparse_jsd(student_logits, support_token, teacher_log_prob, label, total_tokens=total_tokens, **options))


def linear_grpo(hidden: Tensor, weight: Tensor, bias: Tensor, label: Tensor, old_log_prob: Tensor, ref_log_prob: Tensor,
                advantage: Tensor, total_tokens: int, total_sequences: int, **options: Any) -> Outputs:
    valid = (label != -100).unsqueeze(-1)  # what stands at masked positions may not reach the weight's gradient
    logits = torch.nn.functional.linear(hidden.where(valid, 0), weight, bias)
    return named(fused.logits_grpo(logits, label, old_log_prob, ref_log_prob, advantage, total_tokens=total_tokens,
                                   total_sequences=total_sequences, **options))
