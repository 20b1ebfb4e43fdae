# SPDX-License-Identifier: Apache-2.0
"""How fast losses run through the worker, beside the function and its backward alone.

    LOSSGATE_PROGRAM=build/default/bin/lossgate OMP_NUM_THREADS=1 .venv/bin/python impl/external/python/worker_speed.py

A gate asks for 300 cases and its steps are recorded; then the same steps are done by the function alone and by the
worker in turn. What counts is processor time, so others may use the machine meanwhile.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from typing import Callable, Iterable
from unittest import mock

import torch

import given_conversation as talk
from lossgate import live
from lossgate.worker.conversation import Worker

ROUNDS = 7
CLIP = ["clip_low", "clip_high"]
LOSSES: dict[str, tuple[list, dict]] = {  # options that reach the function, and those that it has none of
    "nothing": ([], {}),
    "ppo": (CLIP, {"kl_penalty": 0, "dual_clip": None, "log_ratio_clamp": None}),
    "grpo": ([*CLIP, "kl_penalty"], {"dual_clip": None}),
}


def nothing(log_prob, old_log_prob, ref_log_prob, advantage, mask):
    return log_prob.sum()


def ppo(log_prob, old_log_prob, advantage, mask, clip_low=0.2, clip_high=0.2):
    ratio = torch.exp(log_prob - old_log_prob)
    clipped = torch.clamp(ratio, 1 - clip_low, 1 + clip_high)
    per_token = -torch.min(ratio * advantage, clipped * advantage)
    keep = mask.float()
    return (per_token * keep).sum() / keep.sum().clamp(min=1)


def grpo(log_prob, old_log_prob, ref_log_prob, advantage, mask, clip_low=0.2, clip_high=0.2, kl_penalty=0.04):
    ratio = torch.exp(torch.clamp(log_prob - old_log_prob, -20, 20))
    clipped = torch.clamp(ratio, 1 - clip_low, 1 + clip_high)
    policy = -torch.min(ratio * advantage, clipped * advantage)
    x = torch.clamp(ref_log_prob - log_prob, -20, 20)
    per_token = policy + kl_penalty * (torch.expm1(x) - x)
    keep = mask.float()
    return (per_token * keep).sum() / keep.sum().clamp(min=1)


def recorded(loss: Callable, options: dict) -> list[bytes]:
    """The frames of a conversation: a hello, then steps."""
    frames: list[bytes] = []
    answer = Worker.answer

    def remembering(worker: Worker, frame: bytes) -> bytes:
        frames.append(bytes(frame))
        return answer(worker, frame)

    question = live.Question("grpo", loss.__name__, options, ["token_mean"])
    with mock.patch.object(Worker, "answer", remembering), tempfile.TemporaryDirectory() as folder:
        live.ask(loss, question, folder, ["--cases", "300"])
    return frames


def arguments_of(loss: Callable, frame: bytes, options: list) -> dict:
    metadata, tensors = talk.read_document(frame)
    names = loss.__code__.co_varnames[:loss.__code__.co_argcount]
    tensors = {**tensors, "mask": tensors["mask"].bool()}
    given = {name: tensors[name] for name in names if name in tensors}
    return {**given, **{name: float(metadata[f"option.{name}"]) for name in options}}


def alone(loss: Callable, given: dict) -> None:
    log_prob = given["log_prob"].clone().requires_grad_()
    torch.autograd.grad(loss(**{**given, "log_prob": log_prob}), [log_prob])


def seconds(work: Callable, items: Iterable) -> float:
    start = time.process_time()
    for item in items:
        work(item)
    return time.process_time() - start


def main() -> None:
    torch.set_num_threads(1)
    print("steps a second of processor time, and the worker's share of the function's own speed (medians)")
    for name, (options, fixed) in LOSSES.items():
        loss = globals()[name]
        hello, *steps = recorded(loss, fixed)
        given = [arguments_of(loss, step, options) for step in steps]
        worker = Worker(loss, contained=True)
        worker.answer(hello)
        rounds = [(seconds(lambda one: alone(loss, one), given), seconds(worker.answer, steps)) for _ in range(ROUNDS)]
        own, through = (len(steps) / statistics.median(column) for column in zip(*rounds))
        share = statistics.median(first / second for first, second in rounds)
        print(f"{name:8} {len(steps):6} steps   alone {own:7.0f}   through the worker {through:7.0f} ({share:.0%})")


if __name__ == "__main__":
    main()
