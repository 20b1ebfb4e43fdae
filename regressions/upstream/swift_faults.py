# SPDX-License-Identifier: Apache-2.0
"""ms-swift. A loss is a method of a trainer, which is made without its constructor and given what the method reads."""
from __future__ import annotations

from types import SimpleNamespace

import torch
from fault import MASK, TERMS, Release, Seen, fault, halves, leaf, not_finite, split
from torch import Tensor

GRPO = "swift.rlhf_trainers.grpo_trainer"
NEWEST = "ms-swift==4.6.0"


def policy(log_prob: Tensor, advantage: Tensor, mask: Tensor, loss_type: str, tokens: int, steps: int = 1) -> Tensor:
    """The loss of a micro-batch whose old log-probs are 0, as part of a step of so many tokens and micro-batches."""
    self = object.__new__(Release("ms-swift", (GRPO,)).load(GRPO).GRPOTrainer)
    self.__dict__.update(
        beta=0.0, loss_type=loss_type, importance_sampling_level="token", epsilon_low=0.2, epsilon_high=0.2, tau_pos=1.0,
        tau_neg=1.05, max_completion_length=tokens, compute_entropy=False, overlong_filter=False, kl_in_reward=False,
        rollout_importance_sampling_mode=None, log_rollout_offpolicy_metrics=False,
        disable_rollout_importance_sampling=True, off_policy_sequence_mask_delta=None, sdar_loss_coef=0.0,
        chord_sft_iterator=None, model_accepts_loss_kwargs=False, compute_loss_func=None, _has_teacher=False,
        current_gradient_accumulation_steps=steps, model=SimpleNamespace(training=True),
        args=SimpleNamespace(delta=None, gradient_accumulation_steps=steps),
        accelerator=SimpleNamespace(num_processes=1, gather_for_metrics=lambda x: x),
        _get_per_token_logps_and_entropies=lambda *arguments, **named: (log_prob, None))
    zero = torch.zeros_like(log_prob)
    return self._compute_loss_and_metrics(None, None, SimpleNamespace(
        completion_mask=mask.bool(), truncated_mask=None, advantages=advantage, old_per_token_logps=zero,
        ref_per_token_logps=zero, rollout_per_token_logps=None, num_items_in_batch=torch.tensor(tokens)))[0]


def each_kind(given: list, mask: list, formula: str) -> Seen:
    """GRPO, DAPO and Dr. GRPO divide by the same here, one sequence with one token; SAPO's loss is another."""
    found = []
    for kind in ("grpo", "dapo", "dr_grpo", "sapo"):
        log_prob = leaf(given)
        loss = policy(log_prob, torch.ones(1, len(mask)), torch.tensor([mask]), kind, sum(mask))
        found.append(not_finite(loss, log_prob, formula))
    return Seen(all(seen.wrong for seen in found), f"{found[0].numbers}; SAPO: {found[-1].numbers.partition(';')[0]}")


@fault("swift.grpo.padding", "exp of a padded position's log-ratio of 100, then a product with the mask", NEWEST)
def padding() -> Seen:
    return each_kind([0.0, 100.0], [1, 0], "loss -1, gradient [-1, 0]")


@fault("swift.grpo.exponent", "a clipped token's log-ratio of 100: 0 * inf in the gradient", NEWEST)
def exponent() -> Seen:
    return each_kind([100.0, 0.0], [1, 0], "loss -1.2, gradient [0, 0]")


@fault("swift.dapo.split", "the tokens of the whole step are the divisor, and the trainer divides by the micro-batches again",
       "ms-swift==4.5.3", "ms-swift==4.6.0")
def dapo_split() -> Seen:
    def of(rows: slice, steps: int) -> Tensor:
        return policy(torch.zeros_like(TERMS[rows]), -TERMS[rows], MASK[rows], "dapo", 6, steps)

    return split(of(slice(0, 2), 1), halves(lambda rows: of(rows, 2)))
