# SPDX-License-Identifier: Apache-2.0
"""What the watch costs where nothing is wrong, as a share of an eager GRPO step on 4 x 1024 tokens.

    PYTHONPATH=impl/external/python .venv/bin/python impl/external/python/watch_cost.py

A step is logits to log-probs, the clipped loss with its KL term, and the backward to the logits; beside it, the loss
alone on log-probs. Steps with and without a watch alternate, so that whatever else the machine does meets both; the
figures are medians of pairs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from typing import Any, Callable

import torch

from lossgate.watch import watch

ROWS, TOKENS = 4, 1024


def grpo(log_prob, old_log_prob, ref_log_prob, advantage, mask):
    ratio = torch.exp((log_prob - old_log_prob).clamp(-20, 20))
    gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
    x = (ref_log_prob - log_prob).clamp(-20, 20)
    return torch.where(mask, 0.04 * (torch.expm1(x) - x) - gain, 0.0).sum() / mask.sum().clamp(min=1)


def setting(vocabulary: int, device: str) -> tuple:
    generator = torch.Generator().manual_seed(1)
    draw = lambda *shape: torch.randn(*shape, generator=generator).to(device)
    old, mask = -draw(ROWS, TOKENS).abs(), torch.ones(ROWS, TOKENS, dtype=torch.bool, device=device)
    constant = {"old_log_prob": old, "ref_log_prob": old + 0.01 * draw(ROWS, TOKENS),
                "advantage": draw(ROWS, TOKENS), "mask": mask}
    leaf = draw(ROWS, TOKENS, vocabulary) if vocabulary else old.clone()
    label = torch.randint(max(1, vocabulary), (ROWS, TOKENS, 1), generator=generator).to(device)
    return leaf.requires_grad_(), label, constant


def step(leaf: Any, label: Any, constant: dict, folder: str, watched: bool) -> None:
    leaf.grad = None
    log_prob = leaf.log_softmax(-1).gather(-1, label).squeeze(-1) if leaf.dim() == 3 else leaf * 1.0
    if watched:
        with watch(loss="grpo", out=folder, log_prob=log_prob, **constant):
            grpo(log_prob, **constant).backward()
    else:
        grpo(log_prob, **constant).backward()
    if leaf.is_cuda:
        torch.cuda.synchronize()


def seconds(run: Callable) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def measured(vocabulary: int, pairs: int, device: str, folder: str) -> tuple:
    """Seconds of a step, and what the watch adds to it."""
    given = setting(vocabulary, device)
    for watched in (False, True) * 3:
        step(*given, folder, watched)
    plain, added = [], []
    for pair in range(pairs):
        order = (False, True) if pair % 2 else (True, False)
        took = {watched: seconds(lambda: step(*given, folder, watched)) for watched in order}
        plain.append(took[False])
        added.append(took[True] - took[False])
    return statistics.median(plain), statistics.median(added)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--pairs", type=int, default=31, help="steps with the logits; of the loss alone, 100 times as many")
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        alone, cost = measured(0, 100 * asked.pairs, asked.device, folder)
        whole, _ = measured(asked.vocabulary, asked.pairs, asked.device, folder)
    print(f"torch {torch.__version__}, {asked.device}, {torch.get_num_threads()} threads")
    print(f"watch                  {1e6 * cost:.1f} us a step")
    print(f"loss alone             {1e6 * alone:.1f} us a step: the watch is {cost / alone:.2%} of it")
    print(f"with {asked.vocabulary} logits      {1e6 * whole:.1f} us a step: the watch is {cost / whole:.3%} of it")


if __name__ == "__main__":
    main()
