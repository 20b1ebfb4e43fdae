# SPDX-License-Identifier: Apache-2.0
"""Policy and value losses of verl, SkyRL, AReaL and Unsloth."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from fault import FAR, MASK, SQUARE, TERMS, Release, Seen, fault, halves, leaf, not_finite, shown, slope, split
from release import told
from torch import Tensor

VERL = ("verl.trainer.ppo.core_algos", "verl.utils.torch_functional")


def aggregate(terms: Tensor, mask: Tensor, mode: str, tokens: int) -> Tensor:
    loss = Release("verl", VERL).load(VERL[0]).agg_loss
    return loss(terms, mask, mode, **told(loss, dp_size=1, batch_num_tokens=tokens, global_batch_size=len(terms)))


@fault("verl.agg_loss.split", "each micro-batch is divided by its own tokens, the actor averages them", "verl==0.6.1",
       "verl==0.7.0 verl==0.9.1")
def verl_split() -> Seen:
    takes_counts = "batch_num_tokens" in told(Release("verl", VERL).load(VERL[0]).agg_loss, batch_num_tokens=6)
    parts = halves(lambda rows: aggregate(TERMS[rows], MASK[rows], "token-mean", 6))
    return split(aggregate(TERMS, MASK, "token-mean", 6), parts * 2 if takes_counts else parts)


@fault("verl.agg_loss.empty_row", "0 / 0 of a row without a token", "verl==0.6.0", "verl==0.6.1 verl==0.9.1")
def verl_empty_row() -> Seen:
    terms = leaf([1.0, 1.0], [1.0, 1.0])
    loss = aggregate(terms, torch.tensor([[1, 1], [0, 0]]), "seq-mean-token-mean", 2)
    return not_finite(loss, terms, "0 for the row without a token")


@fault("verl.agg_loss.sum", "adds all terms before it divides: inf where each term and their mean fit", "verl==0.9.1",
       far=True)
def verl_sum() -> Seen:
    terms = leaf([2e38, 2e38])
    return not_finite(aggregate(terms, torch.ones(1, 2), "token-mean", 2), terms, "loss 2e+38, gradient 0.5 each")


@fault("verl.compute_value_loss.square", SQUARE, "verl==0.9.1", far=True)
def verl_square() -> Seen:
    value, one = leaf([FAR]), torch.ones(1, 1)
    loss = Release("verl", VERL).load(VERL[0]).compute_value_loss
    found = loss(value, torch.zeros(1, 1), torch.full((1, 1), FAR), one.long(), 0.5)[0]
    return not_finite(found, value, "loss 3.38e+38")


@fault("verl.dro.square", SQUARE, "verl==0.9.1", far=True)
def verl_dro_square() -> Seen:
    log_prob, zero = leaf([-FAR]), torch.zeros(1, 1)
    losses = Release("verl", VERL).load(VERL[0])
    counts = told(losses.agg_loss, dp_size=1, batch_num_tokens=1, global_batch_size=1)
    config = SimpleNamespace(policy_loss=SimpleNamespace(dro_beta=0.05), global_batch_info=counts)
    found = losses.compute_policy_loss_dro(zero, log_prob, zero, torch.ones(1, 1).long(), "token-mean", config)[0]
    return not_finite(found, log_prob, "loss 1.69e+37")


def geo_mean(log_prob: Tensor, advantage: Tensor, mask: Tensor) -> Tensor:
    """Of old log-probs of 0."""
    loss = Release("verl", VERL).load(VERL[0]).compute_policy_loss_geo_mean
    config = SimpleNamespace(clip_ratio=0.4, clip_ratio_low=None, clip_ratio_high=None)
    return loss(torch.zeros_like(log_prob), log_prob, advantage, mask, config=config)[0]


@fault("verl.geo_mean.split", "each micro-batch is divided by its own rows, the engine adds them up", "verl==0.9.1")
def verl_geo_mean_split() -> Seen:
    parts = halves(lambda rows: geo_mean(torch.zeros_like(TERMS[rows]), TERMS[rows], MASK[rows]))
    return split(geo_mean(torch.zeros_like(TERMS), TERMS, MASK), parts * 2)


@fault("verl.geo_mean.padding", "a weight of exp(100) flows back to a padded position, then a product with the mask",
       "verl==0.9.1", far=True)
def verl_geo_mean_padding() -> Seen:
    log_prob = leaf([100.0, 0.0])
    gradient = slope(geo_mean(log_prob, -torch.ones(1, 2), torch.tensor([[1, 0]])), log_prob)
    return Seen(bool(gradient[0, 1] != 0), f"gradient {shown(gradient)}; by the formula 0 at the padded position")


DROPPED = "a dropped token whose advantage of 3e38 overflows by its weight: inf * 0"


@fault("verl.dppo.product", DROPPED, "verl==0.9.1", far=True)
def verl_dppo_product() -> Seen:
    log_prob, old, one = leaf([-0.5]), torch.tensor([[-10.0]]), torch.ones(1, 1)
    module = Release("verl", VERL).load(VERL[0])
    config = SimpleNamespace(clip_ratio=0.2, clip_ratio_low=None, clip_ratio_high=None, clip_ratio_c=20.0,
                             get=lambda name, default: 20.0, global_batch_info={"batch_num_tokens": 1, "dp_size": 1})
    loss = module.compute_policy_loss_dppo_tv(old, log_prob, one * 3e38, one.long(), config=config)[0]
    return not_finite(loss, log_prob, "loss 0, gradient 0")


OLD, NEW = "skyrl_train.utils.", "skyrl.backends.skyrl_train.utils."
SKYRL = (OLD + "ppo_utils", NEW + "ppo_utils", NEW + "torch_utils", NEW + "off_policy_correction_utils")


def skyrl() -> Any:
    return Release("skyrl", SKYRL).first(NEW + "ppo_utils", OLD + "ppo_utils")


def skyrl_policy(log_prob: Tensor, advantage: Tensor, mask: Tensor) -> Tensor:
    config = SimpleNamespace(policy_loss_type="regular", loss_reduction="token_mean", max_seq_len=5, eps_clip_low=0.2,
                             eps_clip_high=0.2, use_tis=False,
                             off_policy_correction=SimpleNamespace(tis_ratio_type=None, sequence_mask_metric=None,
                                                                   token_mask_is_threshold_low=None,
                                                                   outlier_token_is_threshold_low=None,
                                                                   outlier_token_is_threshold_high=None))
    return skyrl().ppo_policy_loss(log_prob, torch.zeros_like(log_prob), advantage, config, mask.float())[0]


@fault("skyrl.ppo.exponent", "a clipped token's log-ratio of 100: 0 * inf in the gradient", "skyrl-train==0.1.0",
       "skyrl-train==0.2.0 skyrl==0.4.0")
def skyrl_exponent() -> Seen:
    log_prob = leaf([100.0])
    loss = skyrl_policy(log_prob, torch.ones(1, 1), torch.ones(1, 1))
    return not_finite(loss, log_prob, "loss -1.2, gradient 0")


@fault("skyrl.ppo.split", "each micro-batch is divided by its own tokens, the worker averages them",
       "skyrl-train==0.3.1", "skyrl==0.4.0")
def skyrl_split() -> Seen:
    scale = getattr(skyrl(), "apply_loss_reduction_to_advantages_minibatch", None)
    advantage = -TERMS if scale is None else scale(-TERMS, MASK.float(), "token_mean", micro_batch_size=1, max_seq_len=5)

    def of(rows: slice) -> Tensor:
        return skyrl_policy(torch.zeros(2, 5)[rows], advantage[rows], MASK[rows])

    # From 0.4.0 on the whole mini-batch's advantages carry the divisor, and micro-batches are added up.
    return split(of(slice(0, 2)), halves(of) * (1 if scale is None else 2))


@fault("skyrl.dppo.product", DROPPED, "skyrl==0.4.0", far=True)
def skyrl_dppo_product() -> Seen:
    log_prob, old, one = leaf([-0.5]), torch.tensor([[-10.0]]), torch.ones(1, 1)
    bounds = SimpleNamespace(dppo_type="binary_tv", delta_low=0.2, delta_high=0.2)
    config = SimpleNamespace(dppo=bounds, off_policy_correction=None)
    return not_finite(skyrl().dppo_policy_loss(log_prob, old, one * 3e38, config, one)[0], log_prob, "loss 0, gradient 0")


@fault("skyrl.worker.kl", "compute_approx_kl is under no_grad: a KL term without a gradient", "skyrl-train==0.3.1",
       "skyrl==0.4.0")
def skyrl_kl() -> Seen:
    log_prob = leaf([0.5])
    kl = skyrl().compute_approx_kl(log_prob, torch.zeros(1, 1), torch.ones(1, 1), "k3").mean()
    gradient = slope(kl, log_prob)
    return Seen(not gradient.any(), f"KL {shown(kl)}, gradient {shown(gradient)}; by the formula 0.393469")


@fault("skyrl.ppo_critic_loss.square", SQUARE, "skyrl==0.4.0 skyrl-train==0.3.1", far=True)
def skyrl_square() -> Seen:
    value, one = leaf([FAR]), torch.ones(1, 1)
    config = SimpleNamespace(value_clip=0.2)
    loss = skyrl().ppo_critic_loss(value, torch.full((1, 1), FAR), torch.zeros(1, 1), config, one)[0]
    return not_finite(loss, value, "loss 3.38e+38")


AREAL = "areal.utils.functional.functional"


def areal() -> Any:
    return Release("areal", (AREAL,)).load(AREAL)


def areal_ppo(log_prob: Tensor, mask: list) -> Tensor:
    zero = torch.zeros_like(log_prob)
    return areal().ppo_actor_loss_fn(log_prob, zero, zero, torch.ones_like(log_prob), 0.2, torch.tensor([mask]))[0]


@fault("areal.ppo.exponent", "a clipped token's log-ratio of 100: 0 * inf in the gradient", "areal==1.0.4")
def areal_ppo_exponent() -> Seen:
    log_prob = leaf([100.0])
    return not_finite(areal_ppo(log_prob, [True]), log_prob, "loss -1.2, gradient 0")


@fault("areal.ppo.padding", "where() selects behind exp at a padded position: 0 * inf in the gradient", "areal==1.0.4")
def areal_ppo_padding() -> Seen:
    log_prob = leaf([0.0, 100.0])
    return not_finite(areal_ppo(log_prob, [True, False]), log_prob, "loss -1, gradient [-1, 0]")


@fault("areal.ppo_critic_loss_fn.square", SQUARE, "areal==1.0.4", far=True)
def areal_square() -> Seen:
    value = leaf([FAR])
    loss = areal().ppo_critic_loss_fn(value, torch.full((1, 1), FAR), torch.zeros(1, 1), 0.2, torch.ones(1, 1).bool())[0]
    return not_finite(loss, value, "loss 3.38e+38")


def areal_sapo(log_prob: Tensor, mask: list) -> Tensor:
    zero = torch.zeros_like(log_prob)
    return areal().sapo_loss_fn(log_prob, zero, torch.ones_like(log_prob), 1.0, 1.05, torch.tensor([mask]))[0]


@fault("areal.sapo.exponent", "a log-ratio of 100 in front of a gate that is closed: 0 * inf in the gradient", "areal==1.0.4")
def areal_exponent() -> Seen:
    log_prob = leaf([100.0])
    return not_finite(areal_sapo(log_prob, [True]), log_prob, "loss -4, gradient 0")


@fault("areal.sapo.padding", "the same at a padded position: where() selects the loss, not what is in front of it",
       "areal==1.0.4")
def areal_padding() -> Seen:
    log_prob = leaf([0.0, 100.0])
    return not_finite(areal_sapo(log_prob, [True, False]), log_prob, "loss -2, gradient [-1, 0]")


UNSLOTH = "unsloth_zoo.rl_replacements"


def unsloth(log_prob: Tensor, mask: list) -> Tensor:
    loss = Release("unsloth-zoo", (UNSLOTH,)).load(UNSLOTH).grpo_compute_loss
    zero, ids = torch.zeros_like(log_prob), torch.zeros(log_prob.shape, dtype=torch.long)
    return loss(zero, log_prob, zero, None, ids, torch.tensor([mask]), 0.0, torch.ones(1), loss_type="grpo",
                num_items_in_batch=torch.tensor(sum(mask)))[0]


@fault("unsloth.grpo.exponent", "a clipped token's log-ratio of 100: 0 * inf in the gradient", "unsloth-zoo==2026.10.9")
def unsloth_exponent() -> Seen:
    log_prob = leaf([100.0])
    return not_finite(unsloth(log_prob, [1]), log_prob, "loss -1.2, gradient 0")


@fault("unsloth.grpo.padding", "exp of a padded position's log-ratio of 100, then a product with the mask",
       "unsloth-zoo==2026.6.7", "unsloth-zoo==2026.7.1 unsloth-zoo==2026.10.9")
def unsloth_padding() -> Seen:
    log_prob = leaf([0.0, 100.0])
    return not_finite(unsloth(log_prob, [1, 0]), log_prob, "loss -1, gradient [-1, 0]")
