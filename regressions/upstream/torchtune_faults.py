# SPDX-License-Identifier: Apache-2.0
"""torchtune."""
from __future__ import annotations

from typing import Any

import torch
from fault import FAR, MASK, SQUARE, TERMS, Release, Seen, fault, halves, leaf, not_finite, shown, split
from release import told
from torch import Tensor

def ppo_loss(epsilon: float, value_coeff: float) -> Any:
    release = Release("torchtune", ("torchtune.rlhf.loss.ppo", "torchtune.rlhf.rewards"))
    losses = release.load("torchtune.rlhf.loss.ppo")
    losses.rlhf.__dict__["masked_mean"] = release.load("torchtune.rlhf.rewards").masked_mean  # as torchtune.rlhf has it
    return losses.PPOLoss(epsilon=epsilon, value_clip_range=0.2, value_coeff=value_coeff)


def policy(log_prob: Tensor, valid: Tensor, advantage: Tensor) -> Tensor:
    zero = torch.zeros_like(log_prob)
    return ppo_loss(0.2, 0.0)(zero, log_prob, advantage, zero, zero, zero, valid, valid)[0]


@fault("torchtune.PPOLoss.exponent", "a clipped token's log-ratio of 100: 0 * inf in the gradient", "torchtune==0.6.1")
def exponent() -> Seen:
    log_prob, one = leaf([100.0]), torch.ones(1, 1)
    return not_finite(policy(log_prob, one.bool(), one), log_prob, "loss -1.2, gradient 0")


@fault("torchtune.PPOLoss.empty", "0 / 0 of a batch without a token", "torchtune==0.5.0", "torchtune==0.6.0 torchtune==0.6.1")
def empty() -> Seen:
    log_prob, one = leaf([0.0]), torch.ones(1, 1)
    return not_finite(policy(log_prob, ~one.bool(), one), log_prob, "loss 0, gradient 0")


@fault("torchtune.PPOLoss.split", "each micro-batch is divided by its own tokens, the recipe averages them", "torchtune==0.6.1")
def ppo_split() -> Seen:
    # recipes/ppo_full_finetune_single_device.py:1118
    of = lambda rows: policy(torch.zeros(2, 5)[rows], MASK[rows].bool(), -TERMS[rows])  # noqa: E731
    return split(of(slice(0, 2)), halves(of))


@fault("torchtune.PPOLoss.square", SQUARE, "torchtune==0.6.1", far=True)
def square() -> Seen:
    value, zero, valid = leaf([FAR]), torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool)
    loss = ppo_loss(0.2, 1.0)(zero, zero, zero, torch.full((1, 1), FAR), value, zero, valid, valid)[0]
    return not_finite(loss, value, "loss 3.38e+38")


KD = "torchtune.modules.loss.kd_losses"


@fault("torchtune.chunked_reverse_kl.empty", "0 / 0 of a batch without a label, which the same loss without chunks is spared",
       "torchtune==0.6.1")
def chunked_reverse_kl_empty() -> Seen:
    return chunked_empty("Reverse")


@fault("torchtune.chunked_forward_kl.empty", "0 / 0 of a batch without a label, which the same loss without chunks is spared",
       "torchtune==0.4.0", "torchtune==0.3.1 torchtune==0.6.1")
def chunked_forward_kl_empty() -> Seen:
    return chunked_empty("Forward")


def chunked_empty(kind: str) -> Seen:
    logits, teacher, label = leaf([[0.5, 0.0]]), torch.zeros(1, 1, 2), torch.tensor([[-100]])
    losses = Release("torchtune", (KD,)).load(KD)
    whole = getattr(losses, f"{kind}KLLoss")()(logits[0], teacher[0], label)
    loss = getattr(losses, f"{kind}KLWithChunkedOutputLoss")(1)([logits], [teacher], label)
    found = not_finite(loss, logits, "loss 0, gradient 0")
    return Seen(found.wrong and bool(whole == 0), f"{found.numbers}; without chunks {shown(whole)}")


@fault("torchtune.chunked_forward_kl.chunks", "each chunk is divided by its own tokens, and the mean of that is taken",
       "torchtune==0.3.1", "torchtune==0.4.0 torchtune==0.6.1")
def chunked_forward_kl() -> Seen:
    losses = Release("torchtune", (KD,)).load(KD)
    logits, label = torch.zeros(1, 4, 2), torch.tensor([[0, -100, 0, 0]])
    logits[0, 0, 0] = -4.0
    teacher = torch.zeros(1, 4, 2)
    whole = losses.ForwardKLLoss()(logits[0], teacher[0], label)
    chunked = losses.ForwardKLWithChunkedOutputLoss(2)(list(logits.chunk(2, 1)), list(teacher.chunk(2, 1)), label)
    return Seen(not torch.allclose(chunked, whole), f"in two chunks {shown(chunked)}, in one {shown(whole)}")


@fault("torchtune.cross_entropy.split", "each micro-batch is divided by its own tokens, the recipe averages them",
       "torchtune==0.3.1", "torchtune==0.6.1")
def torchtune_split() -> Seen:
    name = "torchtune.modules.loss.ce_chunked_output_loss"
    losses = Release("torchtune", (name,)).load(name)
    loss = losses.CEWithChunkedOutputLoss(1)
    logits, label = torch.tensor([[[-4.0, 0.0]] * 5, [[0.0, 0.0]] * 5]), torch.where(MASK > 0, 0, -100)
    weighs = "0.3.1" not in losses.__file__

    def of(rows: slice) -> Tensor:
        value = loss([logits[rows]], label[rows])
        return value * MASK[rows].sum() / 3 if weighs else value  # recipes/full_finetune_single_device.py:699 of 0.6.1

    return split(loss([logits], label), halves(of))
