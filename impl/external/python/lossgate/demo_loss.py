# SPDX-License-Identifier: Apache-2.0
"""A distillation loss with a bug that was met in a released trainer (huggingface/trl#5594), and mended."""

import torch


def reverse_kl(student_logits, support_token, teacher_log_prob, label):
    student = student_logits.log_softmax(-1).gather(-1, support_token)
    p, q = with_rest(student), with_rest(teacher_log_prob)  # padded with -inf
    divergence = (p.exp() * (p - q)).sum(-1)
    valid = label != -100
    return torch.where(valid, divergence, 0.0).sum() / valid.sum().clamp(min=1)


def with_rest(log_prob):
    """The teacher's top tokens, and one bucket for the rest of the vocabulary."""
    whole = log_prob.logsumexp(-1, keepdim=True).clamp(max=-1e-7)
    return torch.cat([log_prob, torch.log(-torch.expm1(whole))], -1)


def mended(student_logits, support_token, teacher_log_prob, label):
    valid = (label != -100).unsqueeze(-1)  # padding is replaced before the maths, not after
    student_logits = torch.where(valid, student_logits, 0.0)
    teacher_log_prob = torch.where(valid, teacher_log_prob, -1.0)
    return reverse_kl(student_logits, support_token, teacher_log_prob, label)
