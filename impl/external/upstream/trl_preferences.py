# SPDX-License-Identifier: Apache-2.0
"""TRL, its losses of answers and pairs of them."""
from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import torch
from release import Release
from torch import Tensor

CPO = ("trl.experimental.cpo.cpo_trainer", "trl.trainer.cpo_trainer")
REWARD = ("trl.trainer.reward_trainer",)
KTO = ("trl.trainer.kto_trainer",)
DPO = ("trl.trainer.dpo_trainer",)
ORPO = ("trl.experimental.orpo.orpo_trainer", "trl.trainer.orpo_trainer")
release = Release("trl", (*CPO, *REWARD, *KTO, *DPO, *ORPO))
trainer = release.class_with


def cpo(chosen_log_prob: Tensor, rejected_log_prob: Tensor, loss_type: str, beta: float, label_smoothing: float,
        margin: float) -> Tensor:
    self = object.__new__(trainer("cpo_loss", CPO))
    self.loss_type = "simpo" if loss_type == "sigmoid" and margin else loss_type
    self.beta, self.label_smoothing, self.simpo_gamma, self.alpha = beta, label_smoothing, margin, 0.0
    self.accelerator = SimpleNamespace(device=chosen_log_prob.device)
    return self.cpo_loss(chosen_log_prob, rejected_log_prob)[0].mean()


def reward(chosen_log_prob: Tensor, rejected_log_prob: Tensor, margin: float) -> Tensor:
    self = object.__new__(trainer("compute_loss", REWARD))
    self.model, self.args = SimpleNamespace(training=True), SimpleNamespace(center_rewards_coefficient=None)
    self.accelerator = SimpleNamespace(gather=lambda x: x, gather_for_metrics=lambda x: x)
    self._metrics, self._total_train_tokens, self._tp_size = defaultdict(lambda: defaultdict(list)), 0, 1
    rewards = torch.cat((chosen_log_prob, rejected_log_prob))[:, None]
    given = {"attention_mask": torch.ones_like(rewards), "margin": torch.full_like(chosen_log_prob, margin)}
    return self.compute_loss(lambda **inputs: SimpleNamespace(logits=rewards), given)


def kto(log_prob: Tensor, ref_log_prob: Tensor, desirable: Tensor, beta: float, kl: float, desirable_weight: float,
        undesirable_weight: float, loss_type: str = "kto") -> Tensor:
    self = object.__new__(trainer("_compute_kl_logps", KTO))
    self.__dict__.update(beta=beta, desirable_weight=desirable_weight, undesirable_weight=undesirable_weight,
                         loss_type=loss_type, calculate_KL=loss_type == "kto", precompute_ref_logps=True,
                         aux_loss_enabled=False, model=SimpleNamespace(training=True), _tp_size=1,
                         _total_train_tokens=0, _metrics=defaultdict(lambda: defaultdict(list)))
    self.accelerator = SimpleNamespace(device=log_prob.device, gather_for_metrics=lambda x: x)
    self._compute_kl_logps = lambda model, batch: torch.full_like(ref_log_prob[:1], kl)
    none, tokens = torch.zeros_like(log_prob)[:, None], desirable.new_ones(len(desirable), 2, dtype=torch.long)
    answers = SimpleNamespace(log_probs=log_prob[:, None], entropy=none, mean_logits=none)  # of one token each
    return self._compute_loss(lambda **inputs: answers, {
        "label": desirable, "input_ids": tokens, "attention_mask": tokens, "completion_mask": tokens,
        "ref_logps": ref_log_prob, "ref_KL_logps": torch.zeros_like(ref_log_prob[:1])}, False)


def apo_zero_unpaired(log_prob: Tensor, ref_log_prob: Tensor, desirable: Tensor, beta: float,
                      desirable_weight: float, undesirable_weight: float) -> Tensor:
    return kto(log_prob, ref_log_prob, desirable, beta, 0.0, desirable_weight, undesirable_weight,
               "apo_zero_unpaired")


def dpo(chosen_log_prob: Tensor, rejected_log_prob: Tensor, ref_chosen_log_prob: Tensor, ref_rejected_log_prob: Tensor,
        loss_type: str, beta: float) -> Tensor:
    self = object.__new__(trainer("_compute_loss", DPO))
    self.__dict__.update(beta=beta, loss_types=[loss_type], loss_weights=[1.0], f_divergence_type="reverse_kl",
                         precompute_ref_logps=True, ld_alpha=None, use_weighting=False, aux_loss_enabled=False,
                         model=SimpleNamespace(training=True), _tp_size=1, _total_train_tokens=0,
                         _metrics=defaultdict(lambda: defaultdict(list)))
    self.accelerator = SimpleNamespace(device=chosen_log_prob.device, gather=lambda x: x, gather_for_metrics=lambda x: x)
    log_probs = torch.cat((chosen_log_prob, rejected_log_prob))[:, None]  # answers of one token each
    none, tokens = torch.zeros_like(log_probs), torch.ones_like(log_probs, dtype=torch.long).expand(-1, 2)
    answers = SimpleNamespace(log_probs=log_probs, entropy=none, mean_logits=none, is_top1=none.bool())
    return self._compute_loss(lambda **inputs: answers, {
        "input_ids": tokens, "attention_mask": tokens, "completion_mask": tokens * tokens.new_tensor([0, 1]),
        "ref_chosen_logps": ref_chosen_log_prob, "ref_rejected_logps": ref_rejected_log_prob}, False)


def orpo(chosen_log_prob: Tensor, rejected_log_prob: Tensor, beta: float) -> Tensor:
    self = object.__new__(trainer("odds_ratio_loss", ORPO))
    self.beta, self.accelerator = beta, SimpleNamespace(device=chosen_log_prob.device)
    return -self.odds_ratio_loss(chosen_log_prob, rejected_log_prob)[0].mean()
