# SPDX-License-Identifier: Apache-2.0
"""TRL: https://github.com/huggingface/trl

A loss is a method of a trainer. The trainer is made without its constructor and given the attributes that
the method reads; one that is missing is an AttributeError.
"""
from __future__ import annotations

from collections import defaultdict
from contextlib import nullcontext
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from release import Release, told
from torch import Tensor

SERVER = ("trl.experimental.distillation.distillation_trainer",
          "trl.experimental.server_distillation.server_distillation_trainer")
GKD = ("trl.experimental.gkd.gkd_trainer", "trl.trainer.gkd_trainer")
GRPO = ("trl.trainer.grpo_trainer",)
DISTILLATION = "trl.trainer.distillation_trainer"
TILES = ("trl.kernels.chunked_divergence", "trl.kernels.chunked_logprob")
SCORES = "trl.trainer.utils"
SFT = ("trl.trainer.sft_trainer",)
GMPO = ("trl.experimental.gmpo.gmpo_trainer",)
SDPO = ("trl.experimental.sdpo.sdpo_trainer", "trl.experimental.sdpo.loss_utils")
release = Release("trl", (*SERVER, *GKD, *GRPO, *GMPO, *SFT, DISTILLATION, *TILES, SCORES, *SDPO))
trainer = release.class_with


def server(student_logits: Tensor, support_token: Tensor, teacher_log_prob: Tensor, label: Tensor, beta: float,
           temperature: float, tail: float) -> Tensor:
    self = object.__new__(trainer("_compute_server_sparse_top_1_divergence_loss", SERVER))
    self.beta, self.loss_add_tail, self.reverse_kl_top_1_mode = beta, bool(tail), "sampled"
    support_token = support_token.clamp(min=0)  # padded with 0: distillation_trainer.py:1314 of 1.3.0
    teacher = {"actual_logprobs": teacher_log_prob[..., 0], "topk_logprobs": teacher_log_prob,
               "topk_token_ids": support_token}
    student = F.log_softmax(student_logits / temperature, dim=-1)  # as compute_loss has it
    if beta == 0:
        return self._compute_server_forward_kl_loss(teacher, student, label)
    return self._compute_server_sparse_top_1_divergence_loss(teacher, student, support_token[..., 0], label)


def sdpo(student_logits: Tensor, support_token: Tensor, teacher_log_prob: Tensor, label: Tensor, beta: float,
         temperature: float, tail: float) -> Tensor:
    valid = label != -100
    if len(valid.sum(-1).unique()) != 1:
        raise NotImplementedError("each sequence is averaged by itself, which is the mean where all are as long")
    if bool((support_token.sort().values.diff() == 0)[valid].any()):
        raise NotImplementedError("the tokens of a top-k are distinct")
    token = label.long().clamp(min=0)
    nothing = token[:, :0]
    self = object.__new__(trainer("_compute_server_distillation_loss", SDPO))
    self.state, self._last_loaded_step = SimpleNamespace(global_step=0), 0
    self.accelerator, self.model_kwarg_keys, self.temperature = SimpleNamespace(gather=lambda x: x), (), temperature
    self._metrics = defaultdict(lambda: defaultdict(list))
    self.args = SimpleNamespace(distillation_mode="topk_logits", distillation_add_tail=bool(tail),
                                distillation_alpha=beta, distillation_is_clip=None)
    self._get_teacher_token_logprobs_from_server = lambda *request: {
        "actual_logprobs": teacher_log_prob[..., 0], "topk_logprobs": teacher_log_prob,
        "topk_token_ids": support_token.clamp(min=0)}
    # What a model answers at the last position belongs to the token after it.
    model = Model(F.pad(student_logits, (0, 0, 0, 1)))
    return self._compute_server_distillation_loss(
        model, {"completion_ids": token, "completion_mask": valid, "prompt_ids": nothing, "prompt_mask": nothing})


class Model:
    """That answers with these logits."""

    training = True

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    def __call__(self, **inputs: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.logits)


def gkd(student_logits: Tensor, teacher_logits: Tensor, label: Tensor, beta: float, temperature: float,
        reduction: str, total_tokens: int) -> Tensor:
    loss = trainer("generalized_jsd_loss", GKD).generalized_jsd_loss
    if reduction == "sum":
        return loss(student_logits, teacher_logits, label, beta, temperature, "sum")
    return loss(student_logits, teacher_logits, label, beta, temperature,
                **told(loss, num_items_in_batch=total_tokens))


def gkd_batchmean(student_logits: Tensor, teacher_logits: Tensor, label: Tensor, beta: float,
                  temperature: float) -> Tensor:
    loss = trainer("generalized_jsd_loss", GKD).generalized_jsd_loss
    if not len(label) or bool((label == -100).any()):
        raise NotImplementedError("without labels every position counts")
    # The sum over the sequences divided by their number, as in torch.nn.KLDivLoss, whose name it has.
    return loss(student_logits, teacher_logits, None, beta, temperature, "batchmean") * len(student_logits)


def linear_jsd(student_hidden: Tensor, student_weight: Tensor, teacher_hidden: Tensor, teacher_weight: Tensor,
               label: Tensor, beta: float, temperature: float, total_tokens: int) -> Tensor:
    if not label.numel():  # its tiles are made of positions
        raise NotImplementedError("a micro-batch has a position there")
    loss = release.load(DISTILLATION)._chunked_divergence_loss
    release.load(TILES[0]).maybe_gather_lm_head_ctx = lambda *weights: nullcontext()  # none of them is sharded
    return loss(student_hidden, teacher_hidden, student_weight, teacher_weight, label != -100, beta,
                max(total_tokens, 1), temperature=temperature)[0]


class LanguageModel:
    """Whose backbone gives these hidden states, and which has this head."""

    config = SimpleNamespace(get_text_config=SimpleNamespace)

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.base_model = lambda **inputs: SimpleNamespace(last_hidden_state=hidden)
        self.get_output_embeddings = lambda: SimpleNamespace(weight=weight, bias=bias)

    def forward(self) -> None:
        """Is replaced."""


def fused_model(hidden: Tensor, weight: Tensor, bias: Tensor, **outputs: tuple) -> LanguageModel:
    scores, model = release.load(SCORES), LanguageModel(hidden, weight, bias)
    scores.maybe_gather_lm_head_ctx = lambda *weights: nullcontext()  # none of them is sharded
    scores._ChunkedLogProbFunction = release.load(TILES[1]).ChunkedLogProbFunction  # as trl.kernels exports it
    scores.add_fused_lm_head(model, **outputs)
    return model


def linear_cross_entropy(hidden: Tensor, weight: Tensor, bias: Tensor, label: Tensor, total_tokens: int,
                         world: int) -> Tensor:
    terms = -fused_model(hidden, weight, bias).forward(fused_lm_head=True, shift_labels=label.long()).log_probs
    return terms.sum() / max(total_tokens, 1) * world  # trl/trainer/sft_trainer.py:1618 and 1624 of 1.16.0


def dft(logits: Tensor, label: Tensor, reduction: str, num_items: int, total_tokens: int, world: int) -> Tensor:
    if logits.shape[-1] > 2048:
        raise NotImplementedError("the head that hands logits on has a number for each two tokens")
    self = object.__new__(trainer("compute_loss", SFT))
    self.model, self.args = SimpleNamespace(training=True), SimpleNamespace(loss_type="dft", average_tokens_across_devices=True)
    self.aux_loss_enabled, self.compute_loss_func, self.label_smoother = False, None, None
    self.accelerator = SimpleNamespace(num_processes=world, parallelism_config=None, gather_for_metrics=lambda x: x)
    self._metrics, self._total_train_tokens, self._tp_size = defaultdict(lambda: defaultdict(list)), 0, 1
    self.get_tp_size = lambda: 1
    head = torch.eye(logits.shape[-1], dtype=logits.dtype, device=logits.device)
    model = fused_model(logits, head, None, outputs=("log_probs", "entropy", "is_top1"))
    count = torch.tensor(total_tokens if reduction == "token_mean" else num_items)
    given = {"shift_labels": label.long(), "attention_mask": label != -100}  # the second is for a metric
    return self.compute_loss(model.forward, given, num_items_in_batch=count)


def log_prob(logits: Tensor, label: Tensor, log_prob_weight: Tensor, entropy_weight: Tensor,
             temperature: float) -> Tensor:
    if not len(label):  # it stacks its rows, and cannot stack none
        raise NotImplementedError("a micro-batch has a sequence there")
    functions, valid = release.load(SCORES), label != -100
    scaled = logits / temperature
    taken = functions.selective_log_softmax(scaled, label.long().clamp(min=0))[valid]
    entropy = functions.entropy_from_logits(scaled)[valid]
    return (log_prob_weight[valid] * taken + entropy_weight[valid] * entropy).sum()


LOSS_TYPES = {"sequence_mean": "grpo", "token_mean": "dapo", "seq_mean_token_sum_norm": "dr_grpo"}
# Nothing but the loss: no filter by entropy or policy distance, no entropy bonus, no router, no inference engine.
PLAIN = dict(top_entropy_quantile=1.0, off_policy_mask_threshold=None, use_vllm=False, aux_loss_enabled=False,
             vllm_importance_sampling_correction=False, _entropy_bonus_enabled=False, model=SimpleNamespace(training=True))


def grpo_trainer(log_prob: Tensor, micro_batches: int, world: int, entropy=None, modules: tuple = GRPO):
    """A trainer whose model gives these log-probs and entropies."""
    made = trainer("_compute_loss", modules)
    self = object.__new__(made)
    self.__dict__.update(PLAIN, current_gradient_accumulation_steps=micro_batches)
    self.accelerator = SimpleNamespace(num_processes=world, sync_gradients=True, gather=lambda x: x,
                                       reduce=lambda x, reduction: x)
    self._metrics = defaultdict(lambda: defaultdict(list))
    entropy = torch.zeros_like(log_prob) if entropy is None else entropy
    scores = (log_prob, entropy, None)  # the third is the router's loss, where there is one
    scores = scores if modules != GRPO or "aux_loss_enabled" in made._compute_loss.__code__.co_names else scores[:2]
    self._get_per_token_logps_and_entropies = lambda *arguments, **named: scores
    return self


def inputs(old_log_prob: Tensor, advantage: Tensor, mask: Tensor, total_tokens: int) -> dict:
    """What a step's data loader hands over. The prompt is one token."""
    ids = torch.zeros_like(mask, dtype=torch.long)
    return {"prompt_ids": ids[:, :1], "prompt_mask": ids[:, :1], "completion_ids": ids,
            "completion_mask": mask.long(), "advantages": advantage, "old_per_token_logps": old_log_prob,
            "num_items_in_batch": torch.tensor(total_tokens)}


def grpo(log_prob: Tensor, old_log_prob: Tensor, ref_log_prob: Tensor, advantage: Tensor, mask: Tensor,
         clip_low: float, clip_high: float, dual_clip, level: str, kl_penalty: float, kl_weighted: float,
         max_length: int, reduction: str, total_tokens: int, micro_batches: int, world: int) -> Tensor:
    self = grpo_trainer(log_prob, micro_batches, world)
    self.beta, self.loss_type, self.importance_sampling_level = kl_penalty, LOSS_TYPES[reduction], level
    self.epsilon_low, self.epsilon_high, self.max_completion_length = clip_low, clip_high, max_length
    self.args = SimpleNamespace(delta=dual_clip, use_bias_correction_kl=bool(kl_weighted),
                                steps_per_generation=micro_batches)
    return self._compute_loss(None, inputs(old_log_prob, advantage, mask, total_tokens) |
                              {"ref_per_token_logps": ref_log_prob})


def linear_grpo(hidden: Tensor, weight: Tensor, bias: Tensor, label: Tensor, old_log_prob: Tensor,
                ref_log_prob: Tensor, advantage: Tensor, temperature: float, clip_low: float, clip_high: float,
                level: str, kl_penalty: float, kl_weighted: float, max_length: int, reduction: str,
                total_tokens: int, micro_batches: int, world: int) -> Tensor:
    """With the model's last layer, and the scores as the trainer takes them from its logits."""
    if not len(label):
        raise NotImplementedError("a micro-batch has a sequence there")
    logits = F.linear(hidden, weight, bias) / temperature
    scores = release.load(SCORES).selective_log_softmax(logits, label.long().clamp(min=0))
    return grpo(scores, old_log_prob, ref_log_prob, advantage, label != -100, clip_low, clip_high, None, level,
                kl_penalty, kl_weighted, max_length, reduction, total_tokens, micro_batches, world)


def cispo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, weight_high: float,
          total_tokens: int, micro_batches: int, world: int) -> Tensor:
    self = grpo_trainer(log_prob, micro_batches, world)
    self.beta, self.loss_type, self.importance_sampling_level = 0.0, "cispo", "token"
    self.epsilon_high, self.args = weight_high, SimpleNamespace(steps_per_generation=micro_batches)
    return self._compute_loss(None, inputs(old_log_prob, advantage, mask, total_tokens))


def on_policy_cispo(log_prob: Tensor, advantage: Tensor, importance_weight: Tensor, mask: Tensor, total_tokens: int,
                    micro_batches: int, world: int) -> Tensor:
    """With one step of each batch, which vLLM sampled: a weight of 1, and the ratio to vLLM's policy."""
    self = grpo_trainer(log_prob, micro_batches, world)
    self.beta, self.loss_type, self.importance_sampling_level = 0.0, "cispo", "token"
    self.epsilon_high, self.args = 5.0, SimpleNamespace(steps_per_generation=micro_batches)
    self.use_vllm = self.vllm_importance_sampling_correction = True
    return self._compute_loss(None, inputs(None, advantage, mask, total_tokens) |
                              {"importance_sampling_ratio": importance_weight})


def sapo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, tau_positive: float,
         tau_negative: float, total_tokens: int, micro_batches: int, world: int) -> Tensor:
    self = grpo_trainer(log_prob, micro_batches, world)
    self.beta, self.loss_type, self.importance_sampling_level = 0.0, "sapo", "token"
    self.args = SimpleNamespace(sapo_temperature_pos=tau_positive, sapo_temperature_neg=tau_negative)
    return self._compute_loss(None, inputs(old_log_prob, advantage, mask, total_tokens))


def vespo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, k_positive: float,
          lambda_positive: float, k_negative: float, lambda_negative: float, total_tokens: int, micro_batches: int,
          world: int) -> Tensor:
    self = grpo_trainer(log_prob, micro_batches, world)
    self.beta, self.loss_type, self.importance_sampling_level = 0.0, "vespo", "token"
    self.args = SimpleNamespace(vespo_k_pos=k_positive, vespo_lambda_pos=lambda_positive, vespo_k_neg=k_negative,
                                vespo_lambda_neg=lambda_negative, steps_per_generation=micro_batches)
    return self._compute_loss(None, inputs(old_log_prob, advantage, mask, total_tokens))


def gmpo(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, mask: Tensor, clip_low: float, clip_high: float,
         total_tokens: int, micro_batches: int, world: int) -> Tensor:
    self = grpo_trainer(log_prob, micro_batches, world, modules=GMPO)
    self.beta, self.epsilon_low, self.epsilon_high = 0.0, clip_low, clip_high
    return self._compute_loss(None, inputs(old_log_prob, advantage, mask, total_tokens))


def entropy_bonus(logits: Tensor, mask: Tensor, coefficient: float, total_tokens: int, micro_batches: int,
                  world: int) -> Tensor:
    none = torch.zeros_like(logits[..., 0])  # without an advantage the policy's loss is 0
    entropy = release.load(SCORES).entropy_from_logits(logits)
    self = grpo_trainer(none, micro_batches, world, entropy)
    self.beta, self.loss_type, self.importance_sampling_level = 0.0, "dapo", "token"
    self.epsilon_low, self.epsilon_high, self.use_adaptive_entropy = 0.2, 0.2, False
    self._entropy_bonus_enabled, self.entropy_coef = True, coefficient
    self.args = SimpleNamespace(delta=None, use_bias_correction_kl=False, steps_per_generation=micro_batches)
    return self._compute_loss(None, inputs(none, none, mask, total_tokens))
