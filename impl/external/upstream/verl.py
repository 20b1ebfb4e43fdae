# SPDX-License-Identifier: Apache-2.0
"""verl: https://github.com/verl-project/verl"""
from __future__ import annotations

from types import SimpleNamespace

import torch
from release import Release, told
from torch import Tensor

release = Release("verl", ("verl.trainer.ppo.core_algos", "verl.trainer.ppo.rollout_corr_helper", "verl.utils.torch_functional"))
losses = release.load("verl.trainer.ppo.core_algos")
functional = release.load("verl.utils.torch_functional")
MODES = {"token_mean": "token-mean", "sequence_mean": "seq-mean-token-mean",
         "seq_mean_token_sum_norm": "seq-mean-token-sum"}


class Config(SimpleNamespace):
    def get(self, name: str, default=None):
        return getattr(self, name, default)


def counts(function, total_tokens: int, total_rows: int, world: int) -> dict:
    """What the engine's losses hand over (verl/workers/utils/losses.py:102 of 0.7.0, 186 of 0.9.1). The batch size
    is ppo_mini_batch_size, so it counts rows without a token, too (verl/trainer/ppo/ray_trainer.py:1362 of 0.9.1)."""
    return told(function, dp_size=world, batch_num_tokens=total_tokens, global_batch_size=total_rows)


def ppo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, clip_low: float, clip_high: float,
        dual_clip: float, reduction: str, total_tokens: int, total_rows: int, world: int) -> Tensor:
    config = Config(clip_ratio=None, clip_ratio_low=clip_low, clip_ratio_high=clip_high, clip_ratio_c=dual_clip,
                    global_batch_info=counts(losses.agg_loss, total_tokens, total_rows, world))
    loss = losses.compute_policy_loss_vanilla
    return loss(old_log_prob, log_prob, advantage, mask.long(), MODES[reduction], config)[0]


losses.ActorConfig = Config  # a stand-in, which these assert that their configuration is


def gspo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, clip_low: float, clip_high: float,
         reduction: str, total_tokens: int, total_rows: int, world: int) -> Tensor:
    config = Config(clip_ratio=None, clip_ratio_low=clip_low, clip_ratio_high=clip_high,
                    global_batch_info=counts(losses.agg_loss, total_tokens, total_rows, world))
    loss = losses.compute_policy_loss_gspo
    return loss(old_log_prob, log_prob, advantage, mask.long(), MODES[reduction], config)[0]


def reinforced(loss, log_prob: Tensor, advantage: Tensor, importance_weight: Tensor, mask: Tensor, reduction: str,
               **step: int) -> Tensor:
    """The log-probs in front are for its metrics, if for anything."""
    config = Config(global_batch_info=counts(losses.agg_loss, **step))
    return loss(log_prob.detach(), log_prob, advantage, mask.long(), MODES[reduction], config, importance_weight)[0]


def gpg(log_prob: Tensor, advantage: Tensor, importance_weight: Tensor, mask: Tensor, reduction: str,
        total_tokens: int, total_rows: int, world: int) -> Tensor:
    return reinforced(losses.compute_policy_loss_gpg, log_prob, advantage, importance_weight, mask, reduction,
                      total_tokens=total_tokens, total_rows=total_rows, world=world)


def reinforce(log_prob: Tensor, advantage: Tensor, importance_weight: Tensor, mask: Tensor, reduction: str,
              total_tokens: int, total_rows: int, world: int) -> Tensor:
    return reinforced(losses.compute_policy_loss_reinforce, log_prob, advantage, importance_weight, mask, reduction,
                      total_tokens=total_tokens, total_rows=total_rows, world=world)


def dro(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, importance_weight: Tensor, mask: Tensor, beta: float,
        reduction: str, total_tokens: int, total_rows: int, world: int) -> Tensor:
    config = Config(policy_loss=SimpleNamespace(dro_beta=beta),
                    global_batch_info=counts(losses.agg_loss, total_tokens, total_rows, world))
    loss = losses.compute_policy_loss_dro
    return loss(old_log_prob, log_prob, advantage, mask.long(), MODES[reduction], config, importance_weight)[0]


def cispo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, weight_low: float,
          weight_high: float, reduction: str, total_tokens: int, total_rows: int, world: int) -> Tensor:
    config = Config(clip_ratio=None, clip_ratio_low=1 - weight_low, clip_ratio_high=weight_high - 1,
                    global_batch_info=counts(losses.agg_loss, total_tokens, total_rows, world))
    loss = losses.compute_policy_loss_cispo
    return loss(old_log_prob, log_prob, advantage, mask.long(), MODES[reduction], config)[0]


def dppo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, divergence: str, divergence_low: float,
         divergence_high: float, weight_high, reduction: str, total_tokens: int, total_rows: int, world: int) -> Tensor:
    if weight_high is None:
        raise NotImplementedError("weights have an upper bound")
    config = Config(clip_ratio=None, clip_ratio_low=divergence_low, clip_ratio_high=divergence_high,
                    clip_ratio_c=weight_high, global_batch_info=counts(losses.agg_loss, total_tokens, total_rows, world))
    loss = getattr(losses, f"compute_policy_loss_dppo_{divergence}")
    return loss(old_log_prob, log_prob, advantage, mask.long(), MODES[reduction], config)[0]


def sapo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, tau_positive: float,
         tau_negative: float, reduction: str, total_tokens: int, total_rows: int, world: int) -> Tensor:
    config = Config(tau_pos=tau_positive, tau_neg=tau_negative,
                    global_batch_info=counts(losses.agg_loss, total_tokens, total_rows, world))
    loss = losses.compute_policy_loss_sapo
    return loss(old_log_prob, log_prob, advantage, mask.long(), MODES[reduction], config)[0]


def gmpo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, clip_low: float,
         clip_high: float) -> Tensor:
    config = Config(clip_ratio=None, clip_ratio_low=clip_low, clip_ratio_high=clip_high)
    return losses.compute_policy_loss_geo_mean(old_log_prob, log_prob, advantage, mask.long(), config=config)[0]


def kl(log_prob: Tensor, ref_log_prob: Tensor, mask: Tensor, reduction: str, total_tokens: int,
       total_rows: int, world: int) -> Tensor:
    value = losses.kl_penalty(log_prob, ref_log_prob, "k3")
    step = counts(losses.agg_loss, total_tokens, total_rows, world)
    return losses.agg_loss(value, mask.long(), MODES[reduction], **step)


def value_loss(value: Tensor, old_value: Tensor, return_: Tensor, mask: Tensor, value_clip: float, reduction: str,
               total_tokens: int, total_rows: int, world: int) -> Tensor:
    loss = losses.compute_value_loss
    step = counts(loss, total_tokens, total_rows, world)
    return loss(value, return_, old_value, mask.long(), value_clip, MODES[reduction], **step)[0]


def entropy(logits: Tensor, mask: Tensor, coefficient: float, reduction: str, total_tokens: int, total_rows: int,
            world: int) -> Tensor:
    """The body of compute_entropy_loss, which the workers have a copy of (verl/workers/utils/losses.py:124 of 0.9.1)
    since it hands no counts on."""
    value = functional.entropy_from_logits(logits)
    step = counts(losses.agg_loss, total_tokens, total_rows, world)
    return -coefficient * losses.agg_loss(value, mask.long(), MODES[reduction], **step)


# Neither of these is installed beside it.
functional.FLAH_ATTN_CROSS_ENTROPY_LOSS_AVAILABLE = functional.NPU_CROSS_ENTROPY_LOSS_AVAILABLE = False


def log_prob(logits: Tensor, label: Tensor, log_prob_weight: Tensor, entropy_weight: Tensor,
             temperature: float) -> Tensor:
    if not len(label):  # it stacks its rows, and cannot stack none
        raise NotImplementedError("a micro-batch has a sequence there")
    valid = label != -100
    scaled = logits / temperature  # verl/workers/engine/fsdp/transformer_impl.py:98 of 0.9.1
    taken = functional.logprobs_from_logits(scaled, label.long().clamp(min=0))[valid]
    entropy = functional.entropy_from_logits(scaled)[valid]
    return (log_prob_weight[valid] * taken + entropy_weight[valid] * entropy).sum()


def several(mask: Tensor) -> Tensor:
    if mask.sum() == 1:  # one has no variance, which is refused: verl/utils/torch_functional.py:319 of 0.9.1
        raise NotImplementedError("several tokens have a variance")
    return mask.long()


def gae(reward: Tensor, value: Tensor, mask: Tensor, gamma: float, lambda_: float) -> tuple[Tensor, Tensor]:
    counts = several(mask)
    advantage, returns = losses.compute_gae_advantage_return(reward, value, counts, gamma, lambda_)
    return advantage * counts, returns * counts  # its losses select by the mask


def whiten(advantage: Tensor, mask: Tensor, shift_mean: bool) -> Tensor:
    counts = several(mask)
    return functional.masked_whiten(advantage, counts, bool(shift_mean)) * counts


def group_advantage(reward: Tensor, group: Tensor, scale: str, epsilon: float) -> Tensor:
    one = reward.unsqueeze(-1)
    estimate = losses.compute_grpo_outcome_advantage
    return estimate(one, torch.ones_like(one), group.cpu().numpy(), epsilon, scale == "std")[0].squeeze(-1)


def leave_one_out(reward: Tensor, group: Tensor) -> Tensor:
    one = reward.unsqueeze(-1)
    return losses.compute_rloo_outcome_advantage(one, torch.ones_like(one), group.cpu().numpy())[0].squeeze(-1)


def rollout_correction(old_log_prob: Tensor, sampler_log_prob: Tensor, mask: Tensor, level: str, beyond: str,
                       weight_low: float, weight_high: float) -> Tensor:
    if level == "geometric" or (beyond == "drop" and weight_low == 0):
        raise NotImplementedError("a weight is of a token or of a sequence, and a lower bound positive")
    bounds = f"{weight_low}_{weight_high}" if beyond == "drop" else weight_high
    weights = release.load("verl.trainer.ppo.rollout_corr_helper").compute_rollout_correction_weights
    return weights(old_log_prob - sampler_log_prob, mask.long(), level, bounds)[0]
