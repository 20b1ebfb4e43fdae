# SPDX-License-Identifier: Apache-2.0
"""The founding bugs (regressions/*.case) in Python; sound/founding.py has each of them mended."""

import torch
from teacher_answers import answers


def with_rest(log_prob):
    """The teacher's top tokens, and one bucket for the rest of the vocabulary."""
    whole = log_prob.logsumexp(-1, keepdim=True).clamp(max=-1e-7)
    return torch.cat([log_prob, torch.log(-torch.expm1(whole))], -1)


def sparse_reverse_kl(student_logits, support_token, teacher_log_prob, label):
    student = student_logits.log_softmax(-1).gather(-1, support_token)
    p, q = with_rest(student), with_rest(teacher_log_prob)  # padded with -inf
    divergence = (p.exp() * (p - q)).sum(-1)  # guilty
    return torch.where(label != -100, divergence, 0.0).sum() / (label != -100).sum().clamp(min=1)


def every_nth_prompt(prompt, num_generations):
    scored = prompt[::num_generations]
    return scored.repeat_interleave(num_generations)[:len(prompt)].float()


def unclamped_exp(log_prob, old_log_prob, ref_log_prob, advantage, mask, clip_low=0.2, clip_high=0.2, kl_penalty=0.04):
    ratio = torch.exp(log_prob - old_log_prob)
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip_low, 1 + clip_high) * advantage)
    x = ref_log_prob - log_prob
    kl = torch.exp(x) - x - 1  # guilty
    return ((kl_penalty * kl - gain) * mask).sum() / mask.sum()


def mean_of_means(log_prob, old_log_prob, advantage, mask, total_tokens, micro_batches):
    ratio = torch.exp((log_prob - old_log_prob).clamp(-20, 20))
    gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
    return -torch.where(mask, gain, 0.0).sum() / mask.sum().clamp(min=1)


def merged_where_present(payload):
    return answers(payload, merges_what_is_there=True)


def prompt_unchecked(payload):
    return answers(payload, trusts_prompts=True)


def json_lacks_actual(payload):
    return answers(payload, leaves_out_json=True)
