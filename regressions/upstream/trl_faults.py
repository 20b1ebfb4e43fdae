# SPDX-License-Identifier: Apache-2.0
"""TRL. A loss is a method of a trainer, which is made without its constructor and given what the method reads."""
from __future__ import annotations

from collections import defaultdict
from types import ModuleType, SimpleNamespace
from typing import Any, Optional

import torch
import torch.nn.functional as F
from fault import Release, Seen, fault, leaf, not_finite, shown, slope, split
from torch import Tensor

GRPO = "trl.trainer.grpo_trainer"
GKD = "trl.experimental.gkd.gkd_trainer"
KTO = "trl.trainer.kto_trainer"
ORPO = "trl.experimental.orpo.orpo_trainer"
GMPO = "trl.experimental.gmpo.gmpo_trainer"
SERVER = ("trl.experimental.server_distillation.server_distillation_trainer",
          "trl.experimental.distillation.distillation_trainer")
NEWEST = "trl==1.16.0"


def trainer(module: ModuleType, method: str) -> Any:
    """An object of the module's class that has this method."""
    classes = (found for found in vars(module).values() if isinstance(found, type) and method in vars(found))
    return object.__new__(next(classes))


def grpo(log_prob: Tensor, mask: list, advantage: float, loss_type: str = "grpo", old: Optional[Tensor] = None,
         beta: float = 0.0, self: Any = None) -> Tensor:
    """The loss of one sequence, whose old log-probs are 0 unless given, as those of the reference are."""
    self = self or trainer(Release("trl", (GRPO,)).load(GRPO), "_compute_loss")
    zero, ids = torch.zeros(1, len(mask)), torch.zeros(1, len(mask), dtype=torch.long)
    self.__dict__.update(
        beta=beta, loss_type=loss_type, importance_sampling_level="token", epsilon_low=0.2, epsilon_high=0.2,
        max_completion_length=sum(mask), current_gradient_accumulation_steps=1, top_entropy_quantile=1.0,
        off_policy_mask_threshold=None, use_vllm=False, aux_loss_enabled=False, _entropy_bonus_enabled=False,
        model=SimpleNamespace(training=True), _metrics=defaultdict(lambda: defaultdict(list)),
        accelerator=SimpleNamespace(num_processes=1, sync_gradients=True, gather=lambda x: x,
                                    reduce=lambda x, reduction: x),
        args=SimpleNamespace(delta=None, use_bias_correction_kl=False, steps_per_generation=1,
                             sapo_temperature_pos=1.0, sapo_temperature_neg=1.05, vespo_k_pos=2.0,
                             vespo_lambda_pos=3.0, vespo_k_neg=3.0, vespo_lambda_neg=2.0),
        _get_per_token_logps_and_entropies=lambda *arguments, **named: (log_prob[None], zero, None))
    return self._compute_loss(None, {
        "prompt_ids": ids[:, :1], "prompt_mask": ids[:, :1], "completion_ids": ids,
        "completion_mask": torch.tensor([mask]), "advantages": torch.tensor([advantage]),
        "old_per_token_logps": zero if old is None else old[None], "ref_per_token_logps": zero,
        "num_items_in_batch": torch.tensor(sum(mask))})


def each_kind(given: list, mask: list, formula: str) -> Seen:
    """GRPO, DAPO and Dr. GRPO divide by the same here: one sequence with one token."""
    found = []
    for kind in ("grpo", "dapo", "dr_grpo"):
        log_prob = leaf(*given)
        found.append(not_finite(grpo(log_prob, mask, 1.0, kind), log_prob, formula))
    return Seen(all(seen.wrong for seen in found), found[0].numbers)


@fault("trl.grpo.padding", "exp of a padded position's log-ratio of 100, then a product with the mask", NEWEST)
def padding() -> Seen:
    return each_kind([0.0, 100.0], [1, 0], "loss -1, gradient [-1, 0]")


@fault("trl.grpo.exponent", "a clipped token's log-ratio of 100: 0 * inf in the gradient", NEWEST)
def exponent() -> Seen:
    return each_kind([100.0, 0.0], [1, 0], "loss -1.2, gradient [0, 0]")


@fault("trl.sapo.padding", "exp of a padded position's log-ratio of 100 in front of the gate", NEWEST)
def sapo_padding() -> Seen:
    log_prob = leaf(0.0, 100.0)
    return not_finite(grpo(log_prob, [1, 0], 1.0, "sapo"), log_prob, "loss -2, gradient [-1, 0]")


@fault("trl.sapo.exponent", "a log-ratio of 100 in front of a gate that is closed: 0 * inf in the gradient", NEWEST)
def sapo_exponent() -> Seen:
    log_prob = leaf(100.0, 0.0)
    return not_finite(grpo(log_prob, [1, 0], 1.0, "sapo"), log_prob, "loss -4, gradient [0, 0]")


@fault("trl.vespo.laundering", "nan_to_num of the weight: a NaN among the old log-probs leaves a loss of 0", NEWEST)
def vespo_laundering() -> Seen:
    log_prob, old = leaf(-1.0, -2.0), torch.tensor([float("nan"), -2.0])
    loss = grpo(log_prob, [1, 1], 1.0, "vespo", old)
    gradient = torch.autograd.grad(loss, log_prob)[0]
    return Seen(bool(loss.isfinite()), f"old log-probs {shown(old)}, loss {shown(loss)}, gradient {shown(gradient)}")


def gmpo(log_prob: Tensor, mask: list, advantage: float) -> Tensor:
    return grpo(log_prob, mask, advantage, self=object.__new__(Release("trl", (GRPO, GMPO)).load(GMPO).GMPOTrainer))


@fault("trl.gmpo.exponent", "a mean log-ratio of 100 of a sequence without an advantage: inf * 0", NEWEST)
def gmpo_exponent() -> Seen:
    log_prob = leaf(100.0)
    return not_finite(gmpo(log_prob, [1], 0.0), log_prob, "loss 0, gradient 0")


@fault("trl.gmpo.padding", "a weight of exp(100) flows back to a padded position, then a product with the mask", NEWEST,
       far=True)
def gmpo_padding() -> Seen:
    log_prob = leaf(100.0, 0.0)
    gradient = slope(gmpo(log_prob, [1, 0], -1.0), log_prob)
    return Seen(bool(gradient[1] != 0), f"gradient {shown(gradient)}; by the formula 0 at the padded position")


def server(student_logits: Tensor, teacher: list, label: list, beta: float = 1.0) -> Tensor:
    """One sequence against the log-probs of a teacher server for token 0, which is the sampled and the top one."""
    self = trainer(Release("trl", SERVER).first(*SERVER), "_compute_server_sparse_top_1_divergence_loss")
    self.beta, self.loss_add_tail, self.reverse_kl_top_1_mode = beta, True, "sampled"
    token = torch.zeros(1, len(label), dtype=torch.long)
    result = {"actual_logprobs": torch.tensor([teacher]), "topk_logprobs": torch.tensor([teacher])[..., None],
              "topk_token_ids": token[..., None]}
    student = F.log_softmax(student_logits, dim=-1)[None]
    return self._compute_server_sparse_top_1_divergence_loss(result, student, token, torch.tensor([label]))


@fault("trl.server.padding", "a teacher's -inf at a padded position is selected away behind the divergence",
       "trl==1.3.0", "trl==1.4.0")
def server_padding() -> Seen:
    logits = leaf([0.5, 0.0], [0.5, 0.0])
    loss = server(logits, [-1.0, float("-inf")], [0, -100])
    return not_finite(loss, logits, "0 for the padded position")


@fault("trl.server.laundering", "nan_to_num makes a plausible loss of a NaN logit at a valid position", NEWEST)
def laundering() -> Seen:
    logits = leaf([float("nan"), 0.0], [0.5, 0.0])
    loss = server(logits, [-1.0, -1.0], [0, 0])
    return Seen(bool(loss.isfinite()), f"loss {shown(loss)} of logits {shown(logits)}")


@fault("trl.server.split", "each micro-batch is divided by its own tokens, then by the number of micro-batches", NEWEST)
def server_split() -> Seen:
    logits, teacher, label = torch.tensor([[2.0, 0.0], [0.5, 0.0], [0.5, 0.0]]), [-3.0, -1.0, -1.0], [0, 0, 0]
    parts = server(logits[:1], teacher[:1], label[:1]) + server(logits[1:], teacher[1:], label[1:])
    return split(server(logits, teacher, label), parts / 2)  # server_distillation_trainer.py:343


@fault("trl.gkd.split", "each micro-batch is divided by its own tokens, and the trainer adds them up",
       "trl==1.6.0", "trl==1.7.0 trl==1.16.0")
def gkd_split() -> Seen:
    loss = trainer(Release("trl", (GKD,)).load(GKD), "generalized_jsd_loss").generalized_jsd_loss
    known = loss.__code__.co_varnames
    student, teacher, label = torch.tensor([[[2.0, 0.0]] + [[0.5, 0.0]] * 5]), torch.zeros(1, 6, 2), torch.zeros(1, 6)
    step = {"num_items_in_batch": 6} if "num_items_in_batch" in known else {}

    def of(begin: int, end: int) -> Tensor:
        return loss(student[:, begin:end], teacher[:, begin:end], label[:, begin:end], **step)

    return split(of(0, 6), of(0, 1) + of(1, 6))


@fault("trl.gkd.batchmean", "without labels batchmean divides by sequences x tokens, not by the sequences",
       "trl==0.23.1", "trl==0.24.0")
def gkd_batchmean() -> Seen:
    module = "trl.trainer.gkd_trainer"
    loss = trainer(Release("trl", (module,)).load(module), "generalized_jsd_loss").generalized_jsd_loss
    student, teacher = torch.tensor([[[2.0, 0.0], [0.5, 0.0], [0.5, 0.0]]]), torch.zeros(1, 3, 2)
    mean, whole = loss(student, teacher), loss(student, teacher, reduction="sum")
    return Seen(bool((mean - whole).abs() > 1e-3), f"{shown(mean)} for one sequence whose sum is {shown(whole)}")


@fault("trl.kto.laundering", "nanmean leaves an answer out whose log-prob is NaN, and divides by the others", NEWEST)
def kto_laundering() -> Seen:
    self = trainer(Release("trl", (KTO,)).load(KTO), "_compute_kl_logps")
    log_prob, none, tokens = leaf(float("nan"), -1.0), torch.zeros(2), torch.ones(2, 2, dtype=torch.long)
    self.__dict__.update(
        beta=0.1, desirable_weight=1.0, undesirable_weight=1.0, loss_type="apo_zero_unpaired", calculate_KL=False,
        precompute_ref_logps=True, aux_loss_enabled=False, model=SimpleNamespace(training=True), _tp_size=1,
        _total_train_tokens=0, _metrics=defaultdict(lambda: defaultdict(list)), _compute_kl_logps=lambda *given: None,
        accelerator=SimpleNamespace(device="cpu", gather_for_metrics=lambda x: x))
    outputs = SimpleNamespace(log_probs=log_prob[:, None], entropy=none[:, None], mean_logits=none[:, None])
    loss = self._compute_loss(lambda **inputs: outputs, {
        "label": torch.tensor([True, False]), "input_ids": tokens, "attention_mask": tokens, "completion_mask": tokens,
        "ref_logps": none - 1}, False)
    gradient = torch.autograd.grad(loss, log_prob)[0]
    return Seen(bool(loss.isfinite()), f"log-probs {shown(log_prob)}, loss {shown(loss)}, gradient {shown(gradient)}")


@fault("trl.orpo.certain", "log1mexp has both forms in a where, and log1p(-exp(x)) is 0 * inf where exp(x) rounds to 1",
       NEWEST)
def orpo_certain() -> Seen:
    self = trainer(Release("trl", (ORPO,)).load(ORPO), "odds_ratio_loss")
    self.beta, self.accelerator = 1.0, SimpleNamespace(device="cpu")
    chosen = leaf(-1e-8)
    loss = -self.odds_ratio_loss(chosen, torch.tensor([-2.0]))[0].mean()
    return not_finite(loss, chosen, "loss 1.56518e-09, gradient [-0.156518]")
