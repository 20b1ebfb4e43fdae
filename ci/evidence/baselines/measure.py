# SPDX-License-Identifier: Apache-2.0
"""Writes FOLDER/baselines.json: what is used today, and the gate, over losses that are wrong on purpose and over their
sound twins.

  measure.py --out FOLDER --evidence COMMAND --lossgate COMMAND --commit COMMIT --command TEXT [--full] [--seed N]
"""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from pathlib import Path
from typing import Callable, Iterator

HERE = Path(__file__).resolve().parent
FAULTY = HERE.parents[2] / "impl" / "external" / "python"
sys.path[:0] = [str(HERE), str(HERE.parent), str(FAULTY)]

import torch

import given_faulty_losses
import sound_twins
from fields import draw_benign, evaluate, fields_of
from kept_record import Record, arguments
from oracles import ORACLES, Subject
from ours import Asked, gate, gate_compiled

STATEMENT = ("What people use to test a loss today, and the gate, over the same faulty losses in Python and over their "
             "sound twins.")


def computes_any_shape(function: Callable) -> bool:
    try:
        evaluate(function, draw_benign(fields_of(function), torch.Generator().manual_seed(0)), torch.float32)
    except RuntimeError:
        return False
    return True


def pairs(every: int) -> Iterator[tuple[Callable, Callable]]:
    """A faulty loss and its twin; every so many of those that compute any shape."""
    numbered = 0
    for given in given_faulty_losses.FAULTY:
        twin = getattr(sound_twins, given.function.__name__)
        if list(inspect.signature(twin).parameters) != list(inspect.signature(given.function).parameters):
            raise TypeError(f"{given.function.__name__} and its twin take other parameters")
        if not computes_any_shape(given.function):
            continue
        if numbered % every == 0:
            yield given.function, twin
        numbered += 1


def ask_oracles(record: Record, asked: list[tuple[Callable, Callable]], seeds: list[int]) -> None:
    for number, (name, oracle) in enumerate(ORACLES.items()):
        print(f"baselines: {name}, {number + 1} of {len(ORACLES)}", file=sys.stderr, flush=True)
        for seed in seeds:
            units = {}
            for faulty, twin in asked:
                for function, kind in ((faulty, "faulty"), (twin, "sound")):
                    key = f"{name}/{faulty.__name__}/{kind}/{seed}"
                    if key in record:
                        continue
                    start = time.monotonic()
                    answer = oracle(Subject(faulty.__name__, function, twin, fields_of(faulty)), seed)
                    units[key] = {"oracle": name, "loss": faulty.__name__, "sound": kind == "sound",
                                  "alarm": answer.alarm, "cases": answer.cases, "seconds": time.monotonic() - start,
                                  "why": answer.why}
            record.add(units)


def ask_gate(command: Path, folder: Path, asked: list[tuple[Callable, Callable]], effort: list[str]) -> dict[str, dict]:
    print("baselines: lossgate", file=sys.stderr, flush=True)
    subjects = []
    for faulty, _ in asked:
        fields = fields_of(faulty)
        subjects += [Asked(f"faulty_{faulty.__name__}", "given_faulty_losses", faulty.__name__, fields),
                     Asked(f"sound_{faulty.__name__}", "sound_twins", faulty.__name__, fields)]
    units = {}
    for name, gated in gate(command, folder, subjects, [HERE, FAULTY], effort).items():
        kind, loss = name.split("_", 1)
        units[f"lossgate/{loss}/{kind}"] = {"oracle": "lossgate, hostile cases, without a formula", "loss": loss,
                                            "sound": kind == "sound", **gated._asdict()}
    return units


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--evidence", type=Path, required=True)
    parser.add_argument("--lossgate", type=Path, required=True)
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    record = Record("baselines", STATEMENT, given, torch.backends.cpu.get_cpu_capability().lower())
    asked = list(pairs(every=1 if given.full else 3))
    ask_oracles(record, asked, [given.seed + i for i in range(20 if given.full else 1)])
    effort = ["--full" if given.full else "--quick", "--seed", str(given.seed)]
    record.add(ask_gate(given.evidence.resolve(), given.out / "baselines", asked, effort))
    cases, seconds = gate_compiled(given.lossgate.resolve(), given.out / "baselines", 20000 if given.full else 8000, given.seed)
    record.add({"compiled": {"oracle": "lossgate, the questions of the Hypothesis harness, a compiled loss", "loss": "grpo",
                             "sound": True, "alarm": False, "cases": cases, "seconds": seconds, "why": ""}})
    print(record.file)


if __name__ == "__main__":
    main()
