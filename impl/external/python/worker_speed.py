# SPDX-License-Identifier: Apache-2.0
"""How fast losses run through the worker, beside the function and its backward alone.

    python worker_speed.py
"""

from __future__ import annotations

import os
import struct
import time
from typing import Callable

import torch

import given_conversation as talk

HERE = os.path.dirname(os.path.abspath(__file__))
SEQUENCES, TOKENS = 4, 32


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


def tensors() -> dict:
    torch.manual_seed(1)
    result = {name: torch.randn(SEQUENCES, TOKENS) * 0.1
              for name in ("log_prob", "old_log_prob", "ref_log_prob", "advantage")}
    result["mask"] = (torch.rand(SEQUENCES, TOKENS) > 0.3).to(torch.uint8)
    return result


def seconds(run: Callable, count: int, times: int = 15) -> float:
    """Per call, the best of several rounds: the machine may be busy."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        for index in range(count):
            run(index)
        best = min(best, (time.perf_counter() - start) / count)
    return best


def alone(loss: Callable) -> float:
    given = {**tensors(), "mask": tensors()["mask"].bool()}
    names = loss.__code__.co_varnames[:loss.__code__.co_argcount]
    given = {name: given[name] for name in names if name in given}

    def run(_: int) -> None:
        log_prob = given["log_prob"].clone().requires_grad_()
        loss(**{**given, "log_prob": log_prob}).backward()

    return seconds(run, 300)


def through(loss: Callable, fresh: bool) -> float:
    """`fresh`: every step has options that were never seen before."""
    process = talk.Process(folder=HERE)
    said, _ = process.ask(talk.hello("grpo", f"py:worker_speed.py:{loss.__name__}", ["."]))
    assert said["op"] == "hello", said
    rounds, count = 10, 300
    frames = [talk.write_frame(talk.step("grpo", str(index),
                                         option__clip_low=0.1 + (index * 1e-6 if fresh else 0)), tensors())
              for index in range(rounds * count if fresh else count)]
    request, reply = process.process.stdin.fileno(), process.process.stdout.fileno()
    sent = iter(frames)

    def run(index: int) -> None:
        os.write(request, next(sent) if fresh else frames[index])
        got = os.read(reply, 1 << 16)
        assert len(got) == 8 + struct.unpack("<Q", got[:8])[0]

    result = seconds(run, count, rounds)
    process.close()
    return result


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(f"steps per second on [{SEQUENCES}, {TOKENS}] f32, and their share of the function's own speed")
    for subject in (nothing, ppo, grpo):
        own, repeated, new = alone(subject), through(subject, False), through(subject, True)
        print(f"{subject.__name__:8} alone {1 / own:7.0f}   equal options {1 / repeated:6.0f} ({own / repeated:.0%})"
              f"   new options in each step {1 / new:6.0f} ({own / new:.0%})")
