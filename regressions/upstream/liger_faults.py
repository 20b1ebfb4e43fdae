# SPDX-License-Identifier: Apache-2.0
"""Liger Kernel, chunked losses in PyTorch and kernels in Triton, which its interpreter runs on a CPU."""
from __future__ import annotations

import torch
import torch.nn.functional as F
from fault import Release, Seen, fault, leaf, not_finite, shown, slope
from release import file_of
from torch import Tensor

CHUNKED = "liger_kernel.chunked_loss."
NEWEST = "liger-kernel==0.8.5"


def chunked(name: str) -> object:
    bases = (CHUNKED + "fused_linear_ppo", CHUNKED + "fused_linear_distillation")
    return Release("liger-kernel", (CHUNKED + name, *bases)).load(CHUNKED + name)


def grpo(log_prob: Tensor, mask: list) -> Tensor:
    """The loss of one sequence with advantage 1, whose old log-probs are 0."""
    zero, kept = torch.zeros(1, len(mask)), torch.tensor([mask])
    return chunked("grpo_loss").LigerFusedLinearGRPOFunction.ppo_loss_fn(
        per_token_logps=log_prob[None], attention_mask=kept, advantages=torch.ones(1), full_attention_mask=kept,
        old_per_token_logps=zero, ref_per_token_logps=zero, beta=0.0, loss_type="bnpo")[0]


@fault("liger.vespo.laundering", "nan_to_num of the weight: a NaN among the old log-probs leaves a loss of 0", NEWEST)
def vespo_laundering() -> Seen:
    log_prob, old, kept = leaf(-1.0, -2.0), torch.tensor([float("nan"), -2.0]), torch.ones(1, 2, dtype=torch.long)
    loss = chunked("grpo_loss").LigerFusedLinearGRPOFunction.ppo_loss_fn(
        per_token_logps=log_prob[None], attention_mask=kept, advantages=torch.ones(1), full_attention_mask=kept,
        old_per_token_logps=old[None], beta=0.0, loss_type="vespo")[0]
    gradient = torch.autograd.grad(loss, log_prob)[0]
    return Seen(bool(loss.isfinite()), f"old log-probs {shown(old)}, loss {shown(loss)}, gradient {shown(gradient)}")


def linear_grpo(hidden: Tensor, mask: list) -> Tensor:
    """As above, of hidden states times an identity: both tokens have log(1/2), the second's old log-prob is -101."""
    loss = chunked("grpo_loss").LigerFusedLinearGRPOLoss(beta=0.0, compiled=False, loss_type="bnpo", use_ref_model=False)
    old, kept = torch.tensor([[0.0, -101.0]]), torch.tensor([mask])
    return loss(hidden[None], torch.eye(2), torch.zeros(1, 2, dtype=torch.long), kept, torch.ones(1), None, None, old)[0]


def both(log_prob: Tensor, mask: list, linear_mask: list, formula: str) -> Seen:
    """The loss of log-probs and that of hidden states, which calls it."""
    hidden = leaf([0.0, 0.0], [0.0, 0.0])
    found = not_finite(grpo(log_prob, mask), log_prob, formula)
    linear = not_finite(linear_grpo(hidden, linear_mask), hidden, "finite")
    return Seen(found.wrong and linear.wrong, f"{found.numbers}; of hidden states {linear.numbers}")


@fault("liger.grpo.padding", "exp of a padded position's log-ratio of 100, then a product with the mask", NEWEST)
def padding() -> Seen:
    return both(leaf(0.0, 100.0), [1, 0], [1, 0], "loss -1, gradient [-1, 0]")


@fault("liger.grpo.exponent", "a clipped token's log-ratio of 100: 0 * inf in the gradient", NEWEST)
def exponent() -> Seen:
    return both(leaf(100.0, 0.0), [1, 0], [0, 1], "loss -1.2, gradient [0, 0]")


@fault("liger.linear_jsd.ignored", "rows whose label is ignored are in the loss and its divisor", "liger-kernel==0.6.3",
       "liger-kernel==0.8.5")
def ignored() -> Seen:
    loss = chunked("jsd_loss").LigerFusedLinearJSDLoss(0.0, 1.0, 0.5, -100, compiled=False)
    hidden, teacher, identity = leaf([0.5, 0.0], [2.0, 0.0]), torch.zeros(2, 2), torch.eye(2)
    gradient = slope(loss(hidden, identity, teacher, identity, torch.tensor([0, -100])), hidden)
    return Seen(bool(gradient[1].any()), f"gradient {shown(gradient)}; by the formula 0 for the ignored row")


@fault("liger.linear_jsd.mixture", "log of a mixture of probabilities that underflow", "liger-kernel==0.6.2",
       "liger-kernel==0.6.3 liger-kernel==0.8.5")
def mixture() -> Seen:
    logits = leaf([0.0, 0.5, -120.0])
    loss = chunked("jsd_loss").LigerFusedLinearJSDFunction.distillation_loss_fn
    return not_finite(loss(logits, torch.tensor([[0.5, 0.0, -120.0]])), logits, "loss 0.0303, gradient 0 at the third")


JSD, PRIMITIVE = "liger_kernel.ops.jsd", "liger_kernel.ops.backends._triton.jsd"
KERNELS = (JSD, PRIMITIVE, "liger_kernel.ops.utils", "liger_kernel.utils")


@fault("liger.jsd.mixture", "log of a mixture of probabilities that underflow, in the Triton kernel",
       "liger-kernel==0.8.3", "liger-kernel==0.8.4 liger-kernel==0.8.5")
def kernel_mixture() -> Seen:
    release = Release("liger-kernel", KERNELS, also=("packaging",))
    kernels = release.load(JSD)
    if file_of(PRIMITIVE):  # 0.8 looks its kernels up by device
        kernels.dispatch = lambda name, *given, **choice: release.load(PRIMITIVE).jsd_loss_and_grad_triton(*given)
    logits = leaf([0.0, 0.5, -120.0])
    teacher = F.log_softmax(torch.tensor([[0.5, 0.0, -120.0]]), dim=-1)
    loss = kernels.LigerJSDFunction.apply(F.log_softmax(logits, dim=-1), teacher, torch.zeros(1, dtype=torch.long), 0.5, -100)
    return not_finite(loss, logits, "loss 0.0303, gradient 0 at the third")


CROSS_ENTROPY = "liger_kernel.ops.cross_entropy"


@fault("liger.cross_entropy.block", "a first block of impossible tokens: the running maximum is -inf, less itself", NEWEST)
def first_block() -> Seen:
    release = Release("liger-kernel", (CROSS_ENTROPY, *KERNELS[2:]), also=("packaging",))
    logits = torch.zeros(1, 2 * 32768 + 1)
    logits[0, :32768] = float("-inf")
    logits.requires_grad_()
    loss = release.load(CROSS_ENTROPY).LigerCrossEntropyFunction.apply(
        logits.clone(), torch.tensor([65536]), None, -100, 0.0, 0.0, "mean", None, False)[0]
    found = slope(loss, logits)[0, -1]
    return Seen(not loss.isfinite(), f"loss {shown(loss)}, gradient of the label {shown(found)}; by the formula 10.3972 and -0.99997")


@fault("liger.cross_entropy.twice", "a second backward of a kept graph finds the gradient scaled in place", NEWEST)
def second_backward() -> Seen:
    release = Release("liger-kernel", (CROSS_ENTROPY, *KERNELS[2:]), also=("packaging",))
    logits = leaf([0.0, 0.0])
    loss = 3 * release.load(CROSS_ENTROPY).LigerCrossEntropyFunction.apply(
        logits.clone(), torch.tensor([0]), None, -100, 0.0, 0.0, "mean", None, False)[0]
    once, twice = (torch.autograd.grad(loss, logits, retain_graph=True)[0].clone() for _ in range(2))
    return Seen(not torch.equal(once, twice), f"gradient {shown(once)}, then {shown(twice)}; by the formula [-1.5, 1.5]")


FUSED = "liger_kernel.ops.fused_linear_cross_entropy"


def fused_gradients(frozen: bool) -> tuple:
    """Of the loss, three times, by the weights: once and once more. Hidden states may need none."""
    release = Release("liger-kernel", (FUSED, CROSS_ENTROPY, *KERNELS[2:]), also=("packaging",))
    hidden, weight = leaf([1.0]).detach().requires_grad_(not frozen), leaf([0.0], [0.0])
    loss = 3 * release.load(FUSED).LigerFusedLinearCrossEntropyFunction.apply(hidden, weight, torch.tensor([0]))[0]
    found = (torch.autograd.grad(loss, weight, retain_graph=True, allow_unused=True)[0] for _ in range(2))
    return tuple(None if gradient is None else gradient.clone() for gradient in found)


@fault("liger.linear_cross_entropy.twice", "a second backward of a kept graph finds the gradients scaled in place", "liger-kernel==0.8.5")
def second_fused_backward() -> Seen:
    once, twice = fused_gradients(frozen=False)
    return Seen(not torch.equal(once, twice), f"gradient {shown(once)}, then {shown(twice)}; by the formula [-1.5, 1.5]")


@fault("liger.linear_cross_entropy.frozen", "weights have no gradient where the hidden states need none", "liger-kernel==0.8.5")
def frozen_hidden() -> Seen:
    gradient = fused_gradients(frozen=True)[0]
    return Seen(gradient is None, f"gradient {'none' if gradient is None else shown(gradient)}; by the formula [-1.5, 1.5]")


@fault("liger.orpo.certain", "log1p(-exp(x)) of a log-prob whose exp rounds to 1", NEWEST)
def orpo_certain() -> Seen:
    names = (CHUNKED + "orpo_loss", CHUNKED + "fused_linear_preference")
    loss = Release("liger-kernel", names).load(names[0]).LigerFusedLinearORPOFunction.preference_loss_fn
    found = []
    for given, formula in (((-1e-8, -2.0), "loss 1.56518e-09, gradient [-0.156518, 1.81015e-09]"),
                           ((-2.0, -1e-8), "loss 20.2753, gradient [-1.15652, 1e+08]")):
        pair = leaf(*given)
        found.append(not_finite(loss(pair[:1], pair[1:], pair, 1.0)[0], pair, formula))
    return Seen(all(seen.wrong for seen in found), "; ".join(seen.numbers for seen in found))
