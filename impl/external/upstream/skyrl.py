# SPDX-License-Identifier: Apache-2.0
"""SkyRL: https://github.com/NovaSky-AI/SkyRL, released as skyrl-train up to 0.3.1 and as skyrl from 0.4.0 on."""
from __future__ import annotations

from types import SimpleNamespace

import torch
from release import Release
from torch import Tensor

OLD, NEW = "skyrl_train.utils.", "skyrl.backends.skyrl_train.utils."
release = Release("skyrl", (OLD + "ppo_utils", NEW + "ppo_utils", NEW + "torch_utils", NEW + "off_policy_correction_utils"))
losses = release.first(NEW + "ppo_utils", OLD + "ppo_utils")
scales_advantages = hasattr(losses, "apply_loss_reduction_to_advantages_minibatch")


def scaled(advantage: Tensor, mask: Tensor, reduction: str, max_length: int, tokens: int, rows: int) -> Tensor:
    """The advantages of a micro-batch, scaled as part of their mini-batch. The release scales the whole of it
    (skyrl/train/trainer.py:1527 of 0.4.0) by counts alone, so rows with the missing counts stand for the rest."""
    rest = mask.new_zeros(rows - len(mask), mask.shape[1])
    rest[:1, :1] = tokens - mask.sum()
    scale = losses.apply_loss_reduction_to_advantages_minibatch
    all_rows = torch.cat([advantage, torch.zeros_like(rest)]), torch.cat([mask, rest])
    return scale(*all_rows, reduction, micro_batch_size=len(advantage), max_seq_len=max_length)[: len(advantage)]


def policy(function, log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, max_length: int,
           reduction: str, total_tokens: int, total_rows: int, world: int, **config) -> Tensor:
    if not mask.numel():  # no worker has a micro-batch without sequences
        return log_prob.sum()
    mask = mask.float()
    config = SimpleNamespace(loss_reduction=reduction, max_seq_len=max_length, use_tis=False, **config)
    config.off_policy_correction = SimpleNamespace(tis_ratio_type=None) if "cispo" in vars(config) else None
    if scales_advantages:
        advantage = scaled(advantage, mask, reduction, max_length, total_tokens, total_rows)
    loss = function(log_prob, old_log_prob, advantage, config, mask)[0]
    return loss * world if scales_advantages else loss  # workers/worker.py:1244 of 0.4.0


def ppo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, clip_low: float, clip_high: float,
        dual_clip, max_length: int, reduction: str, total_tokens: int, total_rows: int, world: int) -> Tensor:
    return policy(losses.ppo_policy_loss, log_prob, old_log_prob, advantage, mask, max_length, reduction, total_tokens,
                  total_rows, world, policy_loss_type="regular" if dual_clip is None else "dual_clip",
                  clip_ratio_c=dual_clip, eps_clip_low=clip_low, eps_clip_high=clip_high)


def gspo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, clip_low: float, clip_high: float,
         max_length: int, reduction: str, total_tokens: int, total_rows: int, world: int) -> Tensor:
    return policy(losses.gspo_policy_loss, log_prob, old_log_prob, advantage, mask, max_length, reduction, total_tokens,
                  total_rows, world, eps_clip_low=clip_low, eps_clip_high=clip_high)


def cispo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, weight_low: float,
          weight_high: float, max_length: int, reduction: str, total_tokens: int, total_rows: int, world: int) -> Tensor:
    bounds = SimpleNamespace(cispo_eps_clip_low=1 - weight_low, cispo_eps_clip_high=weight_high - 1, cispo_anchor="old")
    return policy(losses.compute_policy_loss_cispo, log_prob, old_log_prob, advantage, mask, max_length, reduction,
                  total_tokens, total_rows, world, cispo=bounds)


def dppo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, divergence: str, divergence_low: float,
         divergence_high: float, max_length: int, reduction: str, total_tokens: int, total_rows: int, world: int) -> Tensor:
    bounds = SimpleNamespace(dppo_type=f"binary_{divergence}", delta_low=divergence_low, delta_high=divergence_high)
    return policy(losses.dppo_policy_loss, log_prob, old_log_prob, advantage, mask, max_length, reduction, total_tokens,
                  total_rows, world, dppo=bounds)


def sapo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, tau_positive: float,
         tau_negative: float, max_length: int, reduction: str, total_tokens: int, total_rows: int, world: int) -> Tensor:
    return policy(losses.sapo_policy_loss, log_prob, old_log_prob, advantage, mask, max_length, reduction, total_tokens,
                  total_rows, world, sapo=SimpleNamespace(tau_pos=tau_positive, tau_neg=tau_negative))


def with_kl(log_prob: Tensor, ref_log_prob: Tensor, mask: Tensor, kl_penalty: float, old_log_prob: Tensor,
            advantage: Tensor, clip_low: float, clip_high: float, dual_clip, max_length: int, reduction: str,
            total_tokens: int, total_rows: int, rank_rows: int, world: int) -> Tensor:
    if not mask.numel():  # as above
        return log_prob.sum()
    policy = ppo(log_prob, old_log_prob, advantage, mask, clip_low, clip_high, dual_clip, max_length, reduction,
                 total_tokens, total_rows, world)
    kl = losses.compute_approx_kl(log_prob, ref_log_prob, mask.float(), "k3")
    kl_loss = losses.masked_mean(kl, mask.float(), dim=-1).mean()  # workers/worker.py:686 of 0.3.1, 1232 of 0.4.0
    weight = len(mask) / rank_rows if scales_advantages else 1.0  # worker.py:1021 of 0.4.0
    return policy + kl_loss * kl_penalty * weight  # worker.py:691 of 0.3.1, 1244 of 0.4.0


def critic(value: Tensor, old_value: Tensor, return_: Tensor, mask: Tensor, value_clip) -> Tensor:
    config = SimpleNamespace(value_clip=value_clip)
    return losses.ppo_critic_loss(value, old_value, return_, config, mask.float())[0]


def rollout_correction(old_log_prob: Tensor, sampler_log_prob: Tensor, mask: Tensor, level: str,
                       weight_high: float) -> Tensor:
    if level == "geometric":
        raise NotImplementedError("a weight is of a token or of a sequence")
    caps = SimpleNamespace(token_tis_ratio_clip_high=weight_high, sequence_tis_ratio_clip_high=weight_high)
    weights = release.load(NEW + "off_policy_correction_utils").compute_tis_ratio
    return weights(old_log_prob, sampler_log_prob, mask.float(), level, caps)[0].expand_as(old_log_prob)


def several(mask: Tensor) -> Tensor:
    if mask.sum() == 1:  # one has no variance, which is refused: ppo_utils.py:140 of 0.4.0
        raise NotImplementedError("several tokens have a variance")
    return mask.float()


def gae(reward: Tensor, value: Tensor, mask: Tensor, gamma: float, lambda_: float) -> tuple[Tensor, ...]:
    """Rows are turned so that answers end with them (skyrl/train/dataset/preprocess.py:289 of 0.4.0), and back."""
    counts, column = several(mask), torch.arange(mask.shape[1], device=mask.device)
    length = counts.long().sum(1, keepdim=True)
    ahead, behind = ((column + step) % len(column) for step in (length, -length))
    rows = (x.gather(1, ahead) for x in (reward, value, counts))
    return tuple(x.gather(1, behind) for x in losses.compute_gae_advantage_return(*rows, gamma, lambda_))


def whiten(advantage: Tensor, mask: Tensor, shift_mean: bool) -> Tensor:
    return losses.masked_whiten(advantage, several(mask), bool(shift_mean))


def group_advantage(reward: Tensor, group: Tensor, scale: str, epsilon: float) -> Tensor:
    one = reward.unsqueeze(-1)
    estimate = losses.compute_grpo_outcome_advantage
    return estimate(one, torch.ones_like(one), group.cpu().numpy(), epsilon, scale == "std")[0].squeeze(-1)
