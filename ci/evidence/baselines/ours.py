# SPDX-License-Identifier: Apache-2.0
"""What a gate asks, of the same functions. They have no formula in the catalog, so each brings a signature: what is asked is
what needs no reference, which is the weakest way to ask."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from fields import Field

QUANTITIES = {"log_prob": "log_prob", "advantage": "advantage", "value": "value", "logit": "logit"}


class Asked(NamedTuple):
    name: str
    module: str
    function: str
    fields: list[Field]


class Gated(NamedTuple):
    alarm: bool
    cases: int
    seconds: float
    why: str


def field_table(field: Field) -> str:
    axes = ["sequences", "tokens"] + (["vocab"] if field.kind == "logit" else [])
    role = field.kind if field.kind in ("mask", "label") else "differentiable" if field.differentiable else "constant"
    lines = ["[[field]]", f'name = "{field.name}"', f'role = "{role}"', f"axes = {json.dumps(axes)}"]
    if field.kind in QUANTITIES:
        lines.append(f'quantity = "{QUANTITIES[field.kind]}"')
    return "\n".join(lines)


def signature(name: str, fields: list[Field]) -> str:
    head = [f'id = "{name}"']
    if any(field.kind == "label" for field in fields):
        head.append('ignore_label = "label"')
    return "\n".join(head) + "\n\n" + "\n\n".join(field_table(field) for field in fields) + "\n"


def subject(asked: Asked, paths: list[Path]) -> str:
    return "\n".join(["[[subject]]", f'name = "{asked.name}"', f'signature = "{asked.name}.toml"',
                      f'entry = "py:{asked.module}:{asked.function}"', f"interpreter = {json.dumps(sys.executable)}",
                      f"path = {json.dumps([str(path) for path in paths])}",
                      "[subject.contract]", 'masked = "any"']) + "\n"


def compiled_run(command: Path, folder: Path, cases: int, seed: int) -> tuple[int, float]:
    nothing_stored = folder / "no_cases"
    nothing_stored.mkdir(parents=True, exist_ok=True)
    subprocess.run([str(command), "gate", "--loss", "grpo", "--impl", "host", "--dtype", "f32", "--jobs", "0", "--cases",
                    str(cases), "--seed", str(seed), "--corpus", str(nothing_stored), "--out", str(folder / "compiled"),
                    "--property", "finite_forward,finite_backward,reference_agreement"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    record = json.loads((folder / "compiled" / "run.json").read_text(encoding="utf-8"))
    return record["cases_run"], record["seconds"]


def gate_compiled(command: Path, folder: Path, cases: int, seed: int) -> tuple[int, float]:
    """Cases and seconds of a compiled loss in the gate's own process, asked no more than the Hypothesis harness asks:
    finite numbers, agreement with what is expected, 0 at masked positions. What a gate does once, however many cases it
    draws, is in neither: its start, and long cases, of which that harness has none."""
    few = compiled_run(command, folder, 200, seed)
    many = compiled_run(command, folder, 200 + cases, seed)
    return many[0] - few[0], many[1] - few[1]


def gate(command: Path, folder: Path, subjects: list[Asked], paths: list[Path], effort: list[str]) -> dict[str, Gated]:
    """By name, what hostile cases showed until the first violation."""
    folder.mkdir(parents=True, exist_ok=True)
    for asked in subjects:
        (folder / f"{asked.name}.toml").write_text(signature(asked.name, asked.fields), encoding="utf-8")
    config = folder / "lossgate.toml"
    config.write_text("\n".join(subject(asked, paths) for asked in subjects), encoding="utf-8")
    subprocess.run([str(command), *effort, "--out", str(folder), "--config", str(config), "gated"], check=True,
                   stdout=subprocess.DEVNULL)
    units = json.loads((folder / "gated.json").read_text(encoding="utf-8"))["units"]
    return {name: Gated(unit["alarm"], unit["cases"], unit["seconds"], unit["why"]) for name, unit in units.items()}
