# SPDX-License-Identifier: Apache-2.0
"""A small training run that dies of a founding bug, under the watch: python training.py BUG OUT.

The model is a table of logits; step 3 brings the batch that does it."""

from __future__ import annotations

import sys

import founding
import torch
from lossgate.watch import watch
from teacher_answers import answers

STEPS, FATAL = 5, 3
PAYLOAD = ('{"prompt_lengths":[2,3],"sequence_lengths":[4,5],"logprobs":[[[-0.5],[-0.25]],[[-1],[-2]]],'
           '"logprob_token_ids":[[[1],[2]],[[3],[1]]],"actual_logprobs":[[[-0.5],[-2.5]],[[-7],[-1]]],'
           '"actual_token_ids":[[[1],[2]],[[3],[1]]]}')
ONLY_LISTS = ('{"prompt_lengths":[2],"sequence_lengths":[4],"logprobs":[[[-0.5],[-0.25]]],'
              '"logprob_token_ids":[[[1],[2]]]}')
EMPTY = ('{"prompt_lengths":[2,4],"sequence_lengths":[4,4],"logprobs":[[[-0.5],[-0.25]],[]],'
         '"logprob_token_ids":[[[1],[2]],[]],"actual_logprobs":[[[-0.5],[-2.5]],[]],'
         '"actual_token_ids":[[[1],[2]],[]]}')


def payload(*responses: str) -> torch.Tensor:
    width = max(map(len, responses))
    return torch.tensor([list(response.ljust(width).encode()) for response in responses], dtype=torch.uint8)


def sampled_kl(log_prob, teacher_log_prob, mask):
    """A sound loss: whatever is not finite in it was given."""
    difference = torch.where(mask, log_prob - torch.where(mask, teacher_log_prob, 0.0), 0.0)
    return (0.5 * difference * difference).sum() / mask.sum().clamp(min=1)


def policy(step: int, table: torch.Tensor) -> dict:
    log_prob = table.log_softmax(-1)[:, :4]
    old = log_prob.detach().clone()
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[2, 3] = False
    ref = old.clone()
    if step == FATAL:
        ref[2, 3] = 100.0  # what the padding holds
    return {"log_prob": log_prob, "old_log_prob": old, "ref_log_prob": ref, "advantage": torch.tensor([[1.0], [-1.0], [0.5], [2.0]]).repeat(1, 4), "mask": mask}


def distillation(step: int, table: torch.Tensor) -> dict:
    logits = table.unsqueeze(0).expand(2, -1, -1) * 1.0
    teacher = torch.full((2, 4, 1), -0.5)
    label = torch.ones(2, 4, dtype=torch.int64)
    if step == FATAL:
        teacher[1, 2:], label[1, 2:] = float("-inf"), -100
    return {"student_logits": logits, "support_token": torch.ones(2, 4, 1, dtype=torch.int64), "teacher_log_prob": teacher,
            "label": label}


def from_payload(bug: str, responses: tuple):
    def batch(step: int, table: torch.Tensor) -> dict:
        log_prob = table.log_softmax(-1)[:2, :2]
        read = getattr(founding, bug) if step == FATAL else answers
        teacher = read(payload(*(responses if step == FATAL else (PAYLOAD,))))["actual_log_prob"][-2:]
        return {"log_prob": log_prob, "teacher_log_prob": teacher, "mask": torch.ones(2, 2, dtype=torch.bool)}
    return batch


def scored_prompts(step: int, table: torch.Tensor) -> dict:
    """Each prompt is scored once; what was never scored is NaN."""
    prompt = torch.tensor([0, 0, 1, 1] if step != FATAL else [0, 1, 1, 2])  # a micro-batch border cuts two groups
    scores = {int(number): -0.5 for number in founding.every_nth_prompt(prompt, 2).unique()}
    teacher = torch.tensor([[scores.get(int(number), float("nan"))] * 4 for number in prompt])
    return {"log_prob": table.log_softmax(-1)[:, :4], "teacher_log_prob": teacher, "mask": torch.ones(4, 4, dtype=torch.bool)}


RUNS = {"unclamped_exp": (founding.unclamped_exp, policy, {}),
        "sparse_reverse_kl": (founding.sparse_reverse_kl, distillation, {}),
        "merged_where_present": (sampled_kl, from_payload("merged_where_present", (ONLY_LISTS, ONLY_LISTS)), {}),
        "prompt_unchecked": (sampled_kl, from_payload("prompt_unchecked", (EMPTY,)), {}),
        "json_lacks_actual": (sampled_kl, from_payload("json_lacks_actual", (PAYLOAD,)), {}),
        "every_nth_prompt": (sampled_kl, scored_prompts, {}),
        "mean_of_means": (founding.mean_of_means, policy, {"total_tokens": 30, "micro_batches": 2})}


def train(bug: str, out: str) -> None:
    loss, batch, told = RUNS[bug]
    named = {"loss": "grpo", "reduction": "token_mean", "kl_penalty": 0} if bug == "mean_of_means" else {}
    table = torch.randn(4, 6, generator=torch.Generator().manual_seed(1)).requires_grad_()
    optimizer = torch.optim.SGD([table], lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        tensors = batch(step, table)
        with watch(out=out, step=step, rows="all" if named else "offending", **named, **told, **tensors) as seen:
            if bug == "mean_of_means":
                tensors.pop("ref_log_prob")
            value = loss(**tensors, **told)
            value.backward()
        if bug == "mean_of_means" and step == FATAL:
            seen.save("the loss does not go down")
        if not torch.isfinite(table.grad).all() or not torch.isfinite(value):
            raise SystemExit(f"step {step}: loss {float(value)}, gradient not finite")
        optimizer.step()


if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        try:
            train(name, f"{sys.argv[2]}/{name}")
        except SystemExit as died:
            print(name, died)
