# SPDX-License-Identifier: Apache-2.0
"""Runs the gate on a callable of this process: the program asks, this process answers."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from lossgate.command import environment, program

# Names from papers: the loss of the catalogue, and the options that make it this one.
NAMED_LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "ppo_clip": ("grpo", {"kl_penalty": 0, "dual_clip": None, "log_ratio_clamp": None}),
    "gpg": ("reinforce", {}),
    "gspo": ("grpo", {"level": "sequence"}),
    "forward_kl": ("jsd", {"beta": 0}),
    "reverse_kl": ("jsd", {"beta": 1}),
    "value_loss": ("value_clip", {}),
}


class MistakeInCall(ValueError):
    """What was asked for cannot be done; the message says what can."""


@dataclass
class Question:
    """What is asked of a function. The fields are keys of a lossgate.toml, or flags of `lossgate gate`."""

    loss: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    reductions: Sequence[str] = ()
    dtypes: Sequence[Any] = ("f32",)
    outputs: Sequence[str] = ()
    contract: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)  # arithmetic, device, micro_batches, ranks

    def toml(self, entry: str, **more: Any) -> str:
        loss, fixed = NAMED_LOSSES.get(self.loss, (self.loss, {}))
        keys = {"name": self.name, "loss": loss, "entry": entry, "options": {**fixed, **self.options},
                "reductions": list(self.reductions), "dtypes": [dtype_name(dtype) for dtype in self.dtypes],
                "outputs": list(self.outputs), "contract": dict(self.contract), "arguments": dict(self.arguments),
                **self.more, **more}
        lines = [f"{key} = {toml_value(value)}" for key, value in keys.items() if value not in (None, [], {})]
        return "[[subject]]\n" + "\n".join(lines) + "\n"


@dataclass
class Answer:
    """What the gate said."""

    status: int
    printed: str
    record: dict

    @property
    def red(self) -> list[dict]:
        return [finding for finding in self.record["findings"]
                if finding["state"] in ("red", "expired waiver")]

    def verdicts(self) -> dict[str, int]:
        """How often each verdict was given, over all properties."""
        sums: dict[str, int] = {}
        for cell in self.record["cells"]:
            for verdict, count in cell["verdicts"].items():
                sums[verdict] = sums.get(verdict, 0) + count
        return sums

    def text_of(self, finding: dict, replay: Optional[str] = None) -> str:
        """The finding as the gate printed it, with another line on how to see it again."""
        first = f"{finding['property']} VIOLATED by {finding['implementation']} "
        places = [f"{finding['place']}:", finding["place"]]
        for block in self.printed.split("\n\n"):
            block = block.strip("\n")
            if block.startswith(first) and f"{finding['case']}.case" in block and any(
                    f"\n  place     {place}" in block for place in places):
                break
        else:  # the gate prints the first few only
            block = "\n".join([first.strip(), *(f"  {key:<9} {finding[key]}" for key in
                                                ("source_text", "place", "actual", "expected", "cause"))])
        if replay is None:
            return block
        return re.sub(r"(?m)^  replay    .*$", lambda match: f"  replay    {replay}", block)


def dtype_name(dtype: Any) -> str:
    """f32 for "f32", "float32" and torch.float32."""
    text = str(dtype).replace("torch.", "")
    return {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}.get(text, text)


def toml_value(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)  # NumPy's own one tells its type
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml_value(str(key))} = {toml_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    raise MistakeInCall(f"{value!r} cannot be an option: write a number, a word, True, False or None")


def name_of(function: Callable) -> str:
    while hasattr(function, "func") and not hasattr(function, "__name__"):  # functools.partial
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    return re.sub(r"\W+", "_", name).strip("_") or "loss"


def entry_of(function: Callable) -> Optional[str]:
    """How another process would load the function; None where it cannot."""
    name = getattr(function, "__qualname__", "")
    try:
        file = os.path.abspath(inspect.getsourcefile(function) or "")
    except TypeError:
        return None
    found: Any = sys.modules.get(getattr(function, "__module__", ""))
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"py:{file}:{name}" if found is function and file.endswith(".py") else None


def ask(function: Callable, question: Question, folder: str, flags: Sequence[str] = (),
        case: Union[str, os.PathLike, None] = None) -> Answer:
    """Runs `lossgate gate` on the function; what it writes lies in `folder`. Answers in the calling thread, where
    the function meets the settings, patches and debugger of its caller."""
    __tracebackhide__ = True
    with tempfile.TemporaryDirectory(prefix="lossgate-") as scratch:
        requests, asked = os.pipe()
        answered, replies = os.pipe()
        ours, theirs = [requests, replies], [asked, answered]
        try:
            # The function is awaited for as long as it takes: a hang is the caller's to interrupt.
            config = os.path.join(scratch, "lossgate.toml")
            with open(config, "w", encoding="utf-8") as file:
                file.write(question.toml(f"fd:{asked}:{answered}", seconds=1e6))
            command = [program(), "gate", "--config", config, "--out", folder, "--jobs", "0", *flags]
            if case is not None:
                stored = os.path.join(scratch, "cases")
                os.mkdir(stored)
                shutil.copy(case, stored)
                command += ["--corpus", stored, "--cases", "0"]  # what is said last counts
            return _asked(function, question, command, scratch, folder, ours, theirs)
        finally:
            for descriptor in ours + theirs:
                os.close(descriptor)


def _asked(function: Callable, question: Question, command: list[str], scratch: str, folder: str, ours: list[int],
           theirs: list[int]) -> Answer:
    __tracebackhide__ = True
    import torch

    from lossgate.worker.serving import serve

    said, complained = os.path.join(scratch, "stdout"), os.path.join(scratch, "stderr")
    with open(said, "wb") as out, open(complained, "wb") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=theirs,
                                   env=environment())
    try:
        for descriptor in theirs:  # or its end would not be noticed
            os.close(descriptor)
        theirs.clear()
        with torch.enable_grad():  # what the caller had comes back
            serve(function, *ours)
        process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    with open(said, encoding="utf-8", errors="replace") as file:
        printed = file.read()
    with open(complained, encoding="utf-8", errors="replace") as file:
        complaint = file.read().strip()
    if process.returncode == 2:
        raise MistakeInCall(_in_words_of_the_call(complaint, question.name))
    if process.returncode not in (0, 1):
        raise RuntimeError(f"lossgate ended with status {process.returncode}: {complaint or printed}")
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
        return Answer(process.returncode, printed, json.load(file))


def _in_words_of_the_call(complaint: str, name: str) -> str:
    """The complaint without the file that the caller has not written."""
    text = re.sub(r"^lossgate: ", "", complaint)
    text = re.sub(r"^\S*lossgate\.toml(:\d+:\d+)?: ", "", text)
    found = re.search(r'say which one it computes: reductions = .*, one of (.*)$', text)
    if found:
        return f"{name} takes no reduction, so say which one it computes: reduction=\"...\", one of {found.group(1)}"
    return text
