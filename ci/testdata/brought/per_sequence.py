# SPDX-License-Identifier: Apache-2.0
"""Losses of whole sequences, most of a trainer that averages what its micro-batches give."""
import torch

from losses import sound


def row_means(log_probs, old_log_probs, advantages, mask, clip_low, clip_high):
    """Of each sequence, and how many have a token that counts."""
    valid = mask.bool()
    log_ratio = torch.where(valid, log_probs - old_log_probs, 0.0).clamp(-20.0, 20.0)
    ratio, advantage = torch.exp(log_ratio), torch.where(valid, advantages, 0.0)
    loss = -torch.min(ratio * advantage, ratio.clamp(1 - clip_low, 1 + clip_high) * advantage)
    tokens = valid.sum(1)
    rows = torch.where(valid, loss, 0.0).sum(1) / tokens.clamp(min=1)
    return rows, (tokens > 0).sum().clamp(min=1)


def mean_over_sequences(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    rows, count = row_means(log_probs, old_log_probs, advantages, mask, clip_low, clip_high)
    return rows.sum() / count


def mean_over_its_rank(log_probs, old_log_probs, advantages, mask, rank_sequences, clip_low=0.2, clip_high=0.2):
    """Whose micro-batches may be of any size."""
    rows, _ = row_means(log_probs, old_log_probs, advantages, mask, clip_low, clip_high)
    return rows.sum() / max(rank_sequences, 1)


def share_of_its_rank(log_probs, old_log_probs, advantages, mask, micro_batches, clip_low=0.2, clip_high=0.2):
    """It averages its micro-batches itself, by accumulation steps, and its trainer adds up."""
    return mean_over_sequences(log_probs, old_log_probs, advantages, mask, clip_low, clip_high) / micro_batches


def mean_that_is_divided_twice(log_probs, old_log_probs, advantages, mask, micro_batches, clip_low=0.2, clip_high=0.2):
    """By the function and by its trainer."""
    return mean_over_sequences(log_probs, old_log_probs, advantages, mask, clip_low, clip_high) / micro_batches


def mean_over_tokens(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high)


def rounds_each_step(chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob, beta, margin):
    """To the 16 bits of its fields, which shows where differences cancel, on hostile batches."""
    log_ratio = (chosen_log_prob - rejected_log_prob) - (ref_chosen_log_prob - ref_rejected_log_prob)
    return -torch.nn.functional.logsigmoid(beta * log_ratio - margin).sum()
