# SPDX-License-Identifier: Apache-2.0
"""Losses that are one of the catalog in their own way, and functions that are only near to one."""
import time

import torch

compiled = []


def policy(ratio, advantages, low=0.2, high=0.2):
    return -torch.min(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)


def mean(loss, mask):
    return (loss * mask).sum() / mask.sum()


def k3(log_probs, ref_log_probs):
    return torch.exp(ref_log_probs - log_probs) - (ref_log_probs - log_probs) - 1


def one_advantage_a_sequence(log_probs, old_log_probs, advantages, mask):
    if advantages.dim() != 1:
        raise ValueError("one advantage a sequence")
    return mean(policy(torch.exp(log_probs - old_log_probs), advantages[:, None], 0.17, 0.31), mask)


def of_whole_sequences(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    """GSPO of verl and SkyRL: the weight is the sequence's, its gradient each token's own, with the token's advantage."""
    mask = mask.bool()
    counts = mask.sum(1).clamp(min=1)
    mean = torch.where(mask, log_probs - old_log_probs, 0.0).sum(1) / counts
    own = torch.where(mask, log_probs, 0.0)
    ratio = torch.exp((own - own.detach() + mean.detach()[:, None]).clamp(-20, 20))
    loss = policy(ratio, torch.where(mask, advantages, 0.0), clip_low, clip_high)
    return (loss.sum(1) / counts).sum() / mask.any(1).sum().clamp(min=1)


def of_whole_sequences_by_two(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    return of_whole_sequences((log_probs + old_log_probs) / 2, old_log_probs, advantages, mask, clip_low, clip_high)


def one_epsilon(log_probs, old_log_probs, advantages, mask, eps=0.2, reduction="token_mean"):
    loss = policy(torch.exp(log_probs - old_log_probs), advantages, eps, eps)
    means = {"token_mean": mean, "sequence_mean": lambda x, m: ((x * m).sum(1) / m.sum(1)).mean()}
    return means[reduction](loss, mask)


def scaled_distillation(student_logits, teacher_logits, labels, temperature=2.0):
    valid = labels != -100
    student, teacher = (x[valid] / temperature for x in (student_logits, teacher_logits))
    divergence = (teacher.softmax(-1) * (teacher.log_softmax(-1) - student.log_softmax(-1))).sum()
    return divergence / valid.sum().clamp(min=1) * temperature**2


def unscaled_distillation(student_logits, teacher_logits, labels, temperature=2.0):
    return scaled_distillation(student_logits, teacher_logits, labels, temperature) / temperature**2


def distillation_by_temperature(student_logits, teacher_logits, labels, temperature=2.0):
    return scaled_distillation(student_logits, teacher_logits, labels, temperature) / temperature


def guarded_product(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    loss = policy(torch.exp(log_probs - old_log_probs), advantages, clip_low, clip_high)  # infinite behind the mask
    return (loss * mask).sum() / (mask.sum() + 1e-8)


def flattened(log_probs, old_log_probs, advantages, mask):
    """`.view()` wants what lies in one piece; no trainer hands over anything else."""
    kept = mask.view(-1).bool()
    x = torch.where(kept, log_probs.view(-1) - old_log_probs.view(-1), 0.0).clamp(-20, 20)
    loss = policy(torch.exp(x), torch.where(kept, advantages.view(-1), 0.0))
    return loss.sum() / kept.sum().clamp(min=1)


def halves_a_square(values, returns, mask):
    return (0.5 * torch.where(mask.bool(), values - returns, 0.0) ** 2).sum() / mask.sum().clamp(min=1)


def compiled_first(log_probs, old_log_probs, advantages, mask):
    """Whose first call takes as long as a compiler."""
    if not compiled:
        time.sleep(10.5)
        compiled.append(True)
    return flattened(*(x.contiguous() for x in (log_probs, old_log_probs, advantages, mask)))


def bounded_above(log_probs, old_log_probs, advantages, mask):
    """A bound on one side, which no option of the catalog has."""
    x = torch.where(mask.bool(), log_probs - old_log_probs, 0.0).clamp(max=10)
    loss = policy(torch.exp(x), torch.where(mask.bool(), advantages, 0.0))
    return loss.sum() / mask.sum().clamp(min=1)


def dual_clipped(log_probs, old_log_probs, advantages, mask, dual_clip=3.0):
    """Whose last bound is any number, and never None."""
    x = torch.where(mask.bool(), log_probs - old_log_probs, 0.0).clamp(-20, 20)
    advantages = torch.where(mask.bool(), advantages, 0.0)
    loss = policy(torch.exp(x), advantages)
    loss = torch.where(advantages < 0, torch.min(loss, -advantages * dual_clip), loss)
    return loss.sum() / mask.sum().clamp(min=1)


def half_kl(log_probs, old_log_probs, ref_log_probs, advantages, mask, beta=0.04):
    loss = policy(torch.exp(log_probs - old_log_probs), advantages)
    return mean(loss + 0.5 * beta * k3(log_probs, ref_log_probs), mask)


def other_sign(log_probs, old_log_probs, advantages, mask):
    return mean(policy(torch.exp(log_probs - old_log_probs), -advantages), mask)


def opposite(log_probs, old_log_probs, advantages, mask):
    return -mean(policy(torch.exp(log_probs - old_log_probs), advantages), mask)


def clips_late(log_probs, old_log_probs, advantages, mask, clip_low=0.2, clip_high=0.2):
    return mean(policy(torch.exp(log_probs - old_log_probs), advantages, clip_low, 2 * clip_high), mask)


def clips_exchanged(log_probs, old_log_probs, advantages, mask, cliprange_low=0.2, cliprange_high=0.28):
    """Each distance on the other's side."""
    x = torch.where(mask.bool(), log_probs - old_log_probs, 0.0).clamp(-20, 20)
    loss = policy(torch.exp(x), torch.where(mask.bool(), advantages, 0.0), cliprange_high, cliprange_low)
    return loss.sum() / mask.sum().clamp(min=1)


def another_mean(log_probs, old_log_probs, advantages, mask, reduction):
    loss = policy(torch.exp(log_probs - old_log_probs), advantages)
    return ((loss * mask).sum(1) / mask.sum(1)).mean() if reduction == "token_mean" else mean(loss, mask)


def no_advantage(log_probs, old_log_probs, mask):
    return mean(-torch.exp(log_probs - old_log_probs), mask)


def ratio_detached(log_probs, old_log_probs, advantages, mask):
    return mean(policy(torch.exp(log_probs - old_log_probs).detach(), advantages) * log_probs, mask)


def terms(log_prob, old_log_prob, advantage, clip_low=0.2, clip_high=0.2):
    """Position by position: who calls it has the mask."""
    ratio = torch.exp((log_prob - old_log_prob).clamp(-20.0, 20.0))
    return -torch.min(ratio * advantage, ratio.clamp(1 - clip_low, 1 + clip_high) * advantage)


class Kernel(torch.autograd.Function):
    """Hands its terms on."""

    @staticmethod
    def forward(ctx, terms):
        return terms.clone()


class OneForAll(Kernel):
    """Its backward takes the first position's upstream gradient for everybody's."""

    @staticmethod
    def backward(ctx, upstream):
        return upstream.reshape(-1)[:1].sum().expand(upstream.shape)


def terms_of_one(log_prob, old_log_prob, advantage, clip_low=0.2, clip_high=0.2):
    return OneForAll.apply(terms(log_prob, old_log_prob, advantage, clip_low, clip_high))


class MeanForAll(torch.autograd.Function):
    """Its backward takes the mean of what comes in for each of the terms that count."""

    @staticmethod
    def forward(ctx, terms, mask):
        ctx.mask = mask
        return terms.clone()

    @staticmethod
    def backward(ctx, upstream):
        return torch.where(ctx.mask, upstream.sum() / ctx.mask.sum().clamp(min=1), 0.0), None


def terms_of_mean(log_prob, old_log_prob, advantage, mask, clip_low=0.2, clip_high=0.2):
    return MeanForAll.apply(terms(log_prob, old_log_prob, advantage, clip_low, clip_high), mask.bool())


def behind(tensor):
    """How many elements there are from its first one to the end of its memory."""
    return tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()


class Unstrided(Kernel):
    """Its backward reads on from the first position's upstream gradient, whatever its strides."""

    @staticmethod
    def backward(ctx, upstream):
        read = torch.full((upstream.numel(),), 77.0, dtype=upstream.dtype)
        count = min(behind(upstream), upstream.numel())
        read[:count] = upstream.as_strided((count,), (1,))
        return read.view(upstream.shape)


def terms_unstrided(log_prob, old_log_prob, advantage, clip_low=0.2, clip_high=0.2):
    return Unstrided.apply(terms(log_prob, old_log_prob, advantage, clip_low, clip_high))


def advantage_by_other_strides(log_prob, old_log_prob, advantage, clip_low=0.2, clip_high=0.2):
    """A kernel that gets one tensor's strides for all."""
    end = sum((extent - 1) * stride for extent, stride in zip(log_prob.shape, log_prob.stride())) + 1
    if advantage.numel() and end <= behind(advantage):
        advantage = advantage.as_strided(log_prob.shape, log_prob.stride())
    return terms(log_prob, old_log_prob, advantage, clip_low, clip_high)


def by_generations(rewards, num_generations=4, eps=1e-4):
    """Advantages of groups that a trainer knows by their size alone."""
    r = rewards.view(-1, num_generations)
    return ((r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True) + eps)).view(-1)


def by_blocks(rewards, group, eps=1e-4):
    r = rewards.reshape(int(group.max()) + 1, -1)
    return ((r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True) + eps)).reshape(-1)


def by_interleaved_blocks(rewards, num_generations=4, eps=1e-4):
    """As if the first answers to all prompts stood first."""
    r = rewards.reshape(num_generations, -1)
    return ((r - r.mean(0)) / (r.std(0) + eps)).reshape(-1)


def told_lengths(log_probs, old_log_probs, advantages, response_lengths):
    """How long each response is says as much as a mask, where all padding is on the right."""
    kept = torch.arange(log_probs.shape[1]) < response_lengths[:, None]
    x = torch.where(kept, log_probs - old_log_probs, 0.0).clamp(-20, 20)
    loss = policy(torch.exp(x), torch.where(kept, advantages, 0.0))
    return loss.sum() / kept.sum().clamp(min=1)


def advantages_of_responses(rewards, values, mask, gamma=1.0, lam=0.95):
    """The value behind the last token is 0 where padding begins there; what is masked between two tokens is none."""
    kept = mask.bool()
    rewards, values = (torch.where(kept, x, 0.0) for x in (rewards, values))
    following = torch.cat([values[:, 1:], torch.zeros_like(values[:, :1])], 1)
    delta, last, advantages = rewards + gamma * following - values, torch.zeros_like(rewards[:, 0]), []
    for t in reversed(range(rewards.shape[1])):
        last = delta[:, t] + gamma * lam * last
        advantages.append(last)
    advantages = torch.where(kept, torch.stack(advantages[::-1], 1), 0.0) if advantages else torch.zeros_like(rewards)
    return {"advantage": advantages, "return": torch.where(kept, advantages + values, 0.0)}


def told_one_more(log_probs, old_log_probs, advantages, response_lengths):
    return told_lengths(log_probs, old_log_probs, advantages, response_lengths + 1)


def whitened_everywhere(values, mask, shift_mean=True):
    """As trainers have it, who read the valid positions alone."""
    mask = mask.float()
    count = mask.sum()
    mean = (values * mask).sum() / count
    squares = ((values - mean) ** 2 * mask).sum()
    whitened = (values - mean) * torch.rsqrt(squares / (count - 1).clamp(min=1) + 1e-8)
    return whitened if shift_mean else whitened + mean


def by_items(log_probs, old_log_probs, advantages, mask, num_items_in_batch):
    """Divided by a count that its trainer gathers, and hands over as a tensor."""
    loss = policy(torch.exp((log_probs - old_log_probs).clamp(-20, 20)), advantages)
    return torch.where(mask.bool(), loss, 0.0).sum() / num_items_in_batch.clamp(min=1)


def trusts_padding_twice(log_probs, old_log_probs, advantages, mask):
    """A leak of one field and an overflow of another."""
    behind = 1 - mask.float()
    leak = 1e-3 * (torch.nan_to_num(advantages) * behind).sum() + (0 * torch.exp(log_probs * behind)).sum()
    return leak + by_items(log_probs, old_log_probs, advantages, mask, mask.sum())


def token_loss(logits, labels):
    valid = labels != -100
    cost = torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=-100, reduction="sum")
    return cost / valid.sum().clamp(min=1)


def selective_log_softmax(logits, index):
    """As trainers have it, whoever makes a loss of it."""
    return torch.gather(logits, -1, index.unsqueeze(-1)).squeeze(-1) - torch.logsumexp(logits, -1)


def selective_softmax_of_half(logits, index):
    return selective_log_softmax(logits.half().to(logits.dtype), index)


def next_token_loss(logits, labels):
    """As in transformers and OpenRLHF: labels lie at their own tokens, and the loss moves them."""
    return token_loss(logits[..., :-1, :], labels[..., 1:])


def shifted_twice(logits, labels):
    """By whoever made the batch, and again."""
    return next_token_loss(logits[..., :-1, :], labels[..., 1:])
