# SPDX-License-Identifier: Apache-2.0
"""Losses as users bring them: one that is sound, one that is not, and some that do not even answer."""
import ctypes
import os
import subprocess
import sys
import time

import torch


def sound(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    valid = mask.bool()
    log_ratio = torch.where(valid, log_probs - old_log_probs, 0.0).clamp(-20.0, 20.0)
    ratio, advantage = torch.exp(log_ratio), torch.where(valid, advantages, 0.0)
    loss = -torch.min(ratio * advantage, ratio.clamp(1 - clip_low, 1 + clip_high) * advantage)
    return torch.where(valid, loss, 0.0).sum() / valid.sum().clamp(min=1)


def unbounded(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    ratio = torch.exp(log_probs - old_log_probs)
    loss = -torch.min(ratio * advantages, ratio.clamp(1 - clip_low, 1 + clip_high) * advantages)
    return (loss * mask).sum() / mask.sum().clamp(min=1)


def one_distance(log_probs, old_log_probs, advantages, mask, cliprange=0.2):
    return sound(log_probs, old_log_probs, advantages, mask, cliprange, cliprange)


def one_distance_below(log_probs, old_log_probs, advantages, mask, cliprange=0.2):
    return sound(log_probs, old_log_probs, advantages, mask, cliprange, 0.28)


def over_all_positions(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high) * mask.sum() / mask.numel()


def over_all_rows(log_probs, old_log_probs, advantages, mask, total_rows):
    total = log_probs[:0].sum()
    for row in zip(*(x.split(1) for x in (log_probs, old_log_probs, advantages, mask))):
        total = total + sound(*row)
    return total / total_rows


def of_seven_words(logits, label, log_prob_weight, entropy_weight):
    if logits.shape[-1] != 7:
        raise ValueError("there are seven words")
    valid = label != -100
    scores = torch.log_softmax(torch.where(valid[..., None], logits, 0.0), -1)
    taken = scores.gather(-1, label.clamp(min=0)[..., None])[..., 0]
    entropy = -(scores.exp() * scores).sum(-1)
    return (torch.where(valid, log_prob_weight, 0.0) * taken + torch.where(valid, entropy_weight, 0.0) * entropy).sum()


def odd(mask):
    return int(mask.sum()) % 2 == 1


def exits(log_probs, old_log_probs, advantages, mask):
    if odd(mask):
        os._exit(7)
    return sound(log_probs, old_log_probs, advantages, mask)


had_tokens = set()


def dies_where_tokens_are_gone(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    numbers = tuple(log_probs.detach().flatten().tolist())
    if mask.any():
        had_tokens.add(numbers)
    elif numbers in had_tokens:
        os._exit(5)
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high)


def segfaults(log_probs, old_log_probs, advantages, mask):
    if odd(mask):
        ctypes.string_at(0)
    return sound(log_probs, old_log_probs, advantages, mask)


def hangs(log_probs, old_log_probs, advantages, mask):
    if odd(mask):
        subprocess.Popen(["sleep", "7654"])  # an orphan, if nobody cares
        time.sleep(7654)
    return sound(log_probs, old_log_probs, advantages, mask)


def raises(log_probs, old_log_probs, advantages, mask):
    if odd(mask):
        raise ValueError("odd counts are beyond me")
    return sound(log_probs, old_log_probs, advantages, mask)


def seeds_anew(log_probs, old_log_probs, advantages, mask):
    torch.manual_seed(7)
    return sound(log_probs, old_log_probs, advantages, mask)


def prints(log_probs, old_log_probs, advantages, mask):
    print("to standard output")
    os.write(1, b"and past Python\n")
    sys.stdout.flush()
    return sound(log_probs, old_log_probs, advantages, mask)


def closes(log_probs, old_log_probs, advantages, mask):
    if odd(mask):
        os.closerange(3, 64)
    return sound(log_probs, old_log_probs, advantages, mask)


def not_a_tensor(log_probs, old_log_probs, advantages, mask):
    return float(sound(log_probs, old_log_probs, advantages, mask))


def row_by_row(log_probs, old_log_probs, advantages, mask, clip_low, clip_high):
    tokens = mask.sum(1)
    rows = [sound(*row, clip_low, clip_high) for row in zip(log_probs, old_log_probs, advantages, mask)]
    return (torch.stack(rows) * tokens).sum() / tokens.sum().clamp(min=1)


def refuses_everything(log_prob, old_log_prob, advantage, mask, clip_low, clip_high):
    raise RuntimeError("expected scalar type Double")


def refuses_empty(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    if not mask.any():
        raise IndexError("no token counts")
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high)


def divides_by_none(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high) * (mask.sum().clamp(min=1) / mask.sum())


def trusts_padding(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    old = torch.where(mask.bool(), old_log_probs, log_probs.detach())
    return sound(log_probs, old, advantages, mask, clip_low, clip_high) + (0.0 * old_log_probs).sum()


def other_order_each_time(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    valid = mask.bool()
    log_ratio = torch.where(valid, log_probs - old_log_probs, 0.0).clamp(-20.0, 20.0)
    ratio, advantage = torch.exp(log_ratio), torch.where(valid, advantages, 0.0)
    loss = -torch.min(ratio * advantage, ratio.clamp(1 - clip_low, 1 + clip_high) * advantage)
    loss = torch.where(valid, loss, 0.0).flatten()
    return loss[torch.randperm(loss.numel())].sum() / valid.sum().clamp(min=1)


def widens(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    return sound(log_probs.float(), old_log_probs.float(), advantages.float(), mask, clip_low, clip_high)


def rounds_what_is_wide(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    """Its log-probs come from a model in bf16, so it takes all else to be of their dtype."""
    return widens(log_probs, old_log_probs.to(log_probs.dtype), advantages, mask, clip_low, clip_high)


def summed(log_probs, old_log_probs, advantages, mask, clip_low, clip_high):
    valid = mask.bool()
    log_ratio = torch.where(valid, log_probs - old_log_probs, 0.0).clamp(-20.0, 20.0)
    ratio, advantage = torch.exp(log_ratio), torch.where(valid, advantages, 0.0)
    return -torch.min(ratio * advantage, ratio.clamp(1 - clip_low, 1 + clip_high) * advantage).sum()


def of_ranks_that_are_averaged(log_probs, old_log_probs, advantages, mask, total_tokens, world, clip_low=0.2, clip_high=0.2):
    fields = log_probs.float(), old_log_probs.float(), advantages.float()
    return summed(*fields, mask, clip_low, clip_high) * world / max(total_tokens, 1)


def in_f64(log_probs, old_log_probs, advantages, mask, total_tokens, clip_low=0.2, clip_high=0.2):
    fields = log_probs.double(), old_log_probs.double(), advantages.double()
    return summed(*fields, mask, clip_low, clip_high) / max(total_tokens, 1)


def rounds_its_fields(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    few = torch.bfloat16
    return sound(log_probs.to(few), old_log_probs.to(few), advantages.to(few), mask, clip_low, clip_high).float()


def stores_few_bits(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    log_ratio = (log_probs - old_log_probs).to(torch.bfloat16).float()
    return sound(log_ratio, torch.zeros_like(log_ratio), advantages, mask, clip_low, clip_high)


def off_by_a_thousandth(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high) * 1.001


def reinforce(log_prob, advantage, mask, strength, total_tokens):
    valid = mask.bool()
    log_prob, advantage = torch.where(valid, log_prob, 0.0), torch.where(valid, advantage, 0.0)
    return (strength * log_prob.square() - advantage * log_prob).sum() / max(total_tokens, 1)


def reinforce_by_micro_batch(log_prob, advantage, mask, strength):
    return reinforce(log_prob, advantage, mask, strength, int(mask.sum()))


def reinforce_of_sizes(log_prob, advantage, mask, strength, total_tokens):
    size = torch.where(mask.bool(), log_prob, 0.0).square().sqrt()
    return reinforce(-size, advantage, mask, strength, total_tokens)


def reinforce_by_products(log_prob, advantage, mask, strength, total_tokens):
    return ((strength * log_prob.square() - advantage * log_prob) * mask).sum() / max(total_tokens, 1)


def reinforce_with_cancellation(log_prob, advantage, mask, strength, total_tokens):
    return reinforce(log_prob + 1e5 - 1e5, advantage, mask, strength, total_tokens)


def divergence_from_mixture(student_logits, teacher_logits, label):
    """Of equal distributions it is a difference of equals, whose rounding is not 0."""
    valid = (label != -100).unsqueeze(-1)
    student, teacher = (torch.where(valid, x, torch.zeros_like(x)).log_softmax(-1).clamp(min=-1e4)
                        for x in (student_logits, teacher_logits))
    mixture = torch.logaddexp(student, teacher) - 0.6931471805599453
    return torch.where(valid, student.exp() * (student - mixture), 0.0).sum()


def scaled_by_a_millionth_less(advantage, mask, total_tokens):
    """Advantages alone, of which none is differentiable."""
    return torch.where(mask.bool(), advantage, 0.0) / (max(total_tokens, 1) + 1e-6)


def is_long(mask):
    return mask.shape[1] > 8192


def slow_where_long(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    if is_long(mask):
        time.sleep(7654)
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high)


def large_where_long(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    if is_long(mask):
        raise MemoryError("a square of all tokens")
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high)


def wrong_then_slow_where_long(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    wrong_then_slow_where_long.calls += is_long(mask)
    if wrong_then_slow_where_long.calls > 1 and is_long(mask):
        time.sleep(7654)
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high) * (2 if is_long(mask) else 1)


wrong_then_slow_where_long.calls = 0


def counts_in_half(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    valid = mask.bool()
    whole = sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high) * valid.sum()
    return whole / valid.half().sum().clamp(min=1)


def refuses_what_is_long(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    if is_long(mask):
        raise ValueError("at most 8192 tokens")
    return sound(log_probs, old_log_probs, advantages, mask, clip_low, clip_high)


def of_layer(hidden, weight, label, bias=0.0, total_tokens=1):
    valid = label != -100
    logits = hidden[valid] @ weight.T + bias
    taken = logits.log_softmax(-1).gather(-1, label[valid].long().unsqueeze(-1))
    return -taken.sum() / max(total_tokens, 1)


def layer_without_bias(hidden, weight, label, total_tokens):
    return of_layer(hidden, weight, label, 0.0, total_tokens)


def layer_that_forgets_its_bias(hidden, weight, label, bias, total_tokens):
    return of_layer(hidden, weight, label, 0.0 * bias, total_tokens)


def group_advantages(rewards, prompt_ids):
    together = prompt_ids[:, None] == prompt_ids[None, :]
    count = together.sum(-1)
    mean = torch.where(together, rewards, 0.0).sum(-1) / count
    squares = torch.where(together, (rewards - mean[:, None]).square(), 0.0).sum(-1)
    scaled = (rewards - mean) / ((squares / (count - 1).clamp(min=1)).sqrt() + 1e-6)
    return torch.where(count == 1, 0.0, scaled)


def hands_on_few_bits(logits, label):
    """PyTorch's backward of a cast rounds the gradient, too."""
    kept = label != -100
    scores = torch.where(kept[..., None], logits, 0.0).log_softmax(-1).to(torch.bfloat16).float()
    taken = scores.gather(-1, label.clamp(min=0)[..., None]).squeeze(-1)
    return -torch.where(kept, taken, 0.0).sum() / kept.sum().clamp(min=1)
