# SPDX-License-Identifier: Apache-2.0
"""`lossgate demo`: a finite loss over a gradient that is NaN, in this interpreter's torch, and what the gate says of it."""

from __future__ import annotations

import argparse
import inspect
import os
import shlex
import sys
import tempfile
import time
from typing import Any, Callable, Sequence

CASES = 100
_PADDING = float("-inf")


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="lossgate demo", description=__doc__)
    parser.add_argument("--out", help="folder to leave the case and run.json in")
    out = parser.parse_args(list(arguments)).out
    try:
        import torch
    except Exception as error:
        print(f"lossgate demo: torch cannot be imported by {sys.executable} ({error}); run it as "
              "`PYTHON -m lossgate.demo` with an interpreter that has torch", file=sys.stderr)
        return 2
    from lossgate import demo_loss
    from lossgate.command import NotInstalled
    try:
        return _show(torch, demo_loss, os.path.abspath(out) if out else None)
    except NotInstalled as error:
        print(f"lossgate demo: {error}", file=sys.stderr)
        return 3


def _show(torch: Any, demo_loss: Any, out: Any) -> int:
    started = time.monotonic()
    print("A distillation loss. The teacher knows its top tokens only; rows are padded with -inf:\n")
    _print_source(demo_loss.reverse_kl)
    _print_source(demo_loss.with_rest)
    loss, gradient = _step(torch, demo_loss.reverse_kl)
    bad = int((~torch.isfinite(gradient)).sum())
    print(f"One step of it in torch {torch.__version__}: loss {loss:.4f}, "
          f"gradient: {bad} of {gradient.numel()} entries are not finite.\n")
    with tempfile.TemporaryDirectory(prefix="lossgate-") as scratch:
        answer = _gate(demo_loss.reverse_kl, out or scratch)
        print(f"lossgate on {answer.record['cases_run']} cases, none of them written for it:\n")
        if not answer.red:
            print(answer.printed)
            return 1
        finding = min(answer.red, key=lambda each: each["property"] != "finite_backward")
        print(answer.text_of(finding, _replay(demo_loss.reverse_kl, out, finding) if out else
                             "lossgate demo --out FOLDER leaves the case and says how"))
    print("\nMended:\n")
    _print_source(demo_loss.mended)
    with tempfile.TemporaryDirectory(prefix="lossgate-") as scratch:
        answer = _gate(demo_loss.mended, scratch)
    verdicts = answer.verdicts()
    print(f"lossgate on {answer.record['cases_run']} cases: held {verdicts.get('held', 0)}, "
          f"violated {verdicts.get('violated', 0)}.  ({time.monotonic() - started:.1f} s in all)")
    print("\nYour own loss: lossgate identify FILE.py:FUNCTION, then lossgate gate --config lossgate.toml;\n"
          "or in pytest: def test_loss(lossgate): lossgate.check(\"ppo_clip\", my_loss, reduction=\"token_mean\")")
    return 0 if not answer.red and verdicts.get("held") else 1


def _print_source(function: Callable) -> None:
    lines, first = inspect.getsourcelines(function)
    for number, line in enumerate(lines, first):
        print(f"  {number:>3}  {line.rstrip()}")
    print()


def _step(torch: Any, loss: Callable) -> tuple[float, Any]:
    """One batch: two completions of different length."""
    generator = torch.Generator().manual_seed(1)
    student = torch.randn(2, 4, 5, generator=generator).requires_grad_(True)
    token = torch.tensor([[[1, 3], [2, 0], [4, 1], [0, 1]], [[0, 2], [3, 4], [0, 1], [0, 1]]])
    teacher = torch.tensor([[[-0.9, -1.4], [-0.6, -2.0], [-1.1, -1.3], [_PADDING, _PADDING]],
                            [[-0.8, -1.6], [-0.7, -1.2], [_PADDING, _PADDING], [_PADDING, _PADDING]]])
    label = torch.tensor([[1, 2, 4, -100], [0, 3, -100, -100]])
    value = loss(student, token, teacher, label)
    value.backward()
    return value.item(), student.grad


def _question(function: Callable) -> Any:
    from lossgate.live import Question, name_of

    return Question(loss="sparse_jsd", name=name_of(function), options={"beta": 1}, reductions=["token_mean"],
                    contract={"masked": {"default": 0, "teacher_log_prob": "-inf"}})


def _gate(function: Callable, folder: str) -> Any:
    """Drawn cases alone: among the stored ones is the bug report itself."""
    from lossgate.live import ask

    with tempfile.TemporaryDirectory(prefix="lossgate-") as empty:
        return ask(function, _question(function), folder,
                   ["--cases", str(CASES), "--corpus", empty, "--property", "finite_forward,finite_backward",
                    "--fail-on", "adversarial"])


def _replay(function: Callable, out: str, finding: dict) -> str:
    from lossgate.live import entry_of

    config = os.path.join(out, "lossgate.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(_question(function).toml(entry_of(function) or "", interpreter=sys.executable))
    case = os.path.join(out, finding["case_file"])
    return f"lossgate replay {shlex.quote(case)} --config {shlex.quote(config)} --property {finding['property']}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
