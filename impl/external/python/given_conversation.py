# SPDX-License-Identifier: Apache-2.0
"""The other side of a conversation with a worker, written apart from it: frames in and out."""

from __future__ import annotations

import glob
import json
import os
import struct
import subprocess
import sys
from typing import Any, Optional

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}
NAMES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
         torch.int64: "I64", torch.int32: "I32", torch.uint8: "U8", torch.bool: "BOOL"}
DTYPES = {name: dtype for dtype, name in NAMES.items()}


def field(name: str, role: str = "constant", quantity: str = "log_prob", axes: Any = ("sequences", "tokens")) -> dict:
    return {"name": name, "role": role, "quantity": quantity, "axes": list(axes)}


def option(name: str, kind: str = "real", standard: Any = 0.2) -> dict:
    return {"name": name, "kind": kind, "standard": standard}


FIELDS = {
    "grpo": [field("log_prob", "differentiable"), field("old_log_prob"), field("ref_log_prob"),
             field("advantage", quantity="advantage"), field("mask", "mask", "mask")],
    "reinforce": [field("log_prob", "differentiable"), field("advantage", quantity="advantage"),
                  field("importance_weight", "weight", "weight"), field("mask", "mask", "mask")],
    "dppo": [field("log_prob", "differentiable"), field("old_log_prob"), field("advantage", quantity="advantage"),
             field("mask", "mask", "mask")],
    "dro": [field("log_prob", "differentiable"), field("old_log_prob"), field("advantage", quantity="advantage"),
            field("importance_weight", "weight", "weight"), field("mask", "mask", "mask")],
    "sapo": [field("log_prob", "differentiable"), field("old_log_prob"), field("advantage", quantity="advantage"),
             field("mask", "mask", "mask")],
    "vespo": [field("log_prob", "differentiable"), field("old_log_prob"), field("advantage", quantity="advantage"),
              field("mask", "mask", "mask")],
    "kl_penalty": [field("log_prob", "differentiable"), field("ref_log_prob"), field("old_log_prob"),
                   field("mask", "mask", "mask")],
    "value_clip": [field("value", "differentiable", "value"), field("old_value", quantity="value"),
                   field("return", quantity="value"), field("mask", "mask", "mask")],
    "jsd": [field("student_logits", "differentiable", "logit", ("sequences", "tokens", "vocab")),
            field("teacher_logits", "constant", "logit", ("sequences", "tokens", "vocab")),
            field("label", "label", "label")],
    "linear_grpo": [field("hidden", "differentiable", "hidden_state", ("sequences", "tokens", "hidden")),
                    field("weight", "differentiable", "weight", ("vocab", "hidden")),
                    field("bias", "differentiable", "weight", ("vocab",)), field("label", "label", "label"),
                    field("old_log_prob"), field("ref_log_prob"), field("advantage", quantity="advantage")],
    "linear_jsd": [field("student_hidden", "differentiable"), field("student_weight", "differentiable"),
                   field("teacher_hidden"), field("teacher_weight"), field("label", "label", "label")],
    "log_prob": [field("logits", "differentiable", "logit", ("sequences", "tokens", "vocab")),
                 field("label", "label", "label"), field("log_prob_weight", "weight", "upstream"),
                 field("entropy_weight", "weight", "upstream")],
    "dft": [field("logits", "differentiable", "logit", ("sequences", "tokens", "vocab")), field("label", "label", "label")],
    "sparse_jsd": [field("student_logits", "differentiable", "logit", ("sequences", "tokens", "vocab")),
                   field("support_token", quantity="label"), field("teacher_log_prob"),
                   field("label", "label", "label")],
    "dpo": [field("chosen_log_prob", "differentiable", axes=("sequences",)),
            field("rejected_log_prob", "differentiable", axes=("sequences",)),
            field("ref_chosen_log_prob", axes=("sequences",)), field("ref_rejected_log_prob", axes=("sequences",))],
    "kto": [field("log_prob", "differentiable", axes=("sequences",)), field("ref_log_prob", axes=("sequences",)),
            field("desirable", quantity="mask", axes=("sequences",))],
    "orpo": [field("chosen_log_prob", "differentiable", axes=("sequences",)),
             field("rejected_log_prob", "differentiable", axes=("sequences",))],
    "advantage_scaling": [field("advantage", quantity="advantage"), field("mask", "mask", "mask")],
    "group_advantage": [field("reward", quantity="reward", axes=("sequences",)),
                        field("group", "group", "group", ("sequences",))],
    "gae": [field("reward", quantity="reward"), field("value", quantity="value"), field("mask", "mask", "mask")],
    "rollout_correction": [field("old_log_prob"), field("sampler_log_prob"), field("mask", "mask", "mask")],
}
CLIP = [option("clip_low"), option("clip_high"), option("dual_clip", standard=None),
        option("log_ratio_clamp", standard=20), option("level", "choice", "token"), option("kl_penalty", standard=0.04)]
KL = [option("kl_estimator", "choice", "k3"), option("kl_input_clamp", standard=20),
      option("kl_output_clamp", standard=10), option("kl_weighted", "flag", 0)]
LENGTH = [option("max_length", "integer", 16)]
DISTILL = [option("beta", standard=0.5), option("temperature", standard=1), option("num_items", "integer", 8)]
OPTIONS = {
    "grpo": CLIP + KL + LENGTH,
    "kl_penalty": KL + [option("kl_straight_through", "flag", 0), option("log_ratio_clamp", standard=20)] + LENGTH,
    "reinforce": LENGTH,
    "dppo": [option("divergence", "choice", "tv"), option("divergence_low"), option("divergence_high"),
             option("epsilon", standard=1e-8), option("surrogate", "choice", "log_prob"),
             option("weight_high", standard=20), option("log_ratio_clamp", standard=20)] + LENGTH,
    "dro": [option("beta", standard=0.05)] + LENGTH,
    "sapo": [option("tau_positive", standard=1), option("tau_negative", standard=1.05)] + LENGTH,
    "vespo": [option("k_positive", standard=2), option("lambda_positive", standard=3), option("k_negative", standard=3),
              option("lambda_negative", standard=2), option("log_ratio_clamp", standard=20)] + LENGTH,
    "value_clip": [option("value_clip"), option("clip_form", "choice", "around_old")] + LENGTH,
    "jsd": DISTILL, "linear_jsd": DISTILL,
    "sparse_jsd": DISTILL + [option("tail", "flag", 1), option("tail_floor", standard=1e-7)],
    "linear_grpo": CLIP + KL + LENGTH + [option("temperature", standard=1)],
    "log_prob": [option("temperature", standard=1)],
    "dft": [option("num_items", "integer", 8)],
    "dpo": [option("loss_type", "choice", "sigmoid"), option("beta", standard=0.1), option("label_smoothing", standard=0),
            option("margin", standard=0)],
    "kto": [option("beta", standard=0.1), option("kl", standard=0), option("desirable_weight", standard=1),
            option("undesirable_weight", standard=1)],
    "orpo": [option("beta", standard=0.1)],
    "advantage_scaling": [option("normalisation", "choice", "token_mean")] + LENGTH,
    "group_advantage": [option("baseline", "choice", "mean"), option("scale", "choice", "std"),
                        option("epsilon", standard=1e-6), option("singleton", "choice", "zero")],
    "gae": [option("gamma", standard=1), option("lambda", standard=0.95), option("whiten", "flag", 0),
            option("epsilon", standard=1e-8)],
    "rollout_correction": [option("level", "choice", "token"), option("beyond", "choice", "truncate"),
                           option("weight_low", standard=0), option("weight_high", standard=2),
                           option("log_ratio_clamp", standard=20)],
}
OUTPUTS = {"log_prob": ["log_prob", "entropy"], "advantage_scaling": ["scaled_advantage"], "group_advantage": ["advantage"],
           "gae": ["advantage", "return"], "rollout_correction": ["weight"]}


def worker_modules() -> dict[str, str]:
    """Each module of the worker with its text."""
    texts = {}
    for pattern in ("lossgate/__init__.py", "lossgate/worker/*.py"):
        for path in glob.glob(os.path.join(HERE, pattern)):
            name = os.path.relpath(path, HERE)[:-len(".py")].replace(os.sep, ".")
            with open(path, encoding="utf-8") as file:
                texts[name[:-len(".__init__")] if name.endswith(".__init__") else name] = file.read()
    return texts


def write_frame(metadata: dict, tensors: Optional[dict] = None) -> bytes:
    header: dict = {"__metadata__": metadata}
    data = b""
    for name, tensor in (tensors or {}).items():
        bits = tensor.detach().contiguous().view(torch.uint8) if tensor.dim() else tensor.detach().reshape(1).view(torch.uint8)
        content = bytes(bits.reshape(-1).tolist())
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<QQ", 8 + len(text) + len(data), len(text)) + text + data


def read_document(frame: bytes) -> tuple[dict, dict]:
    """Metadata and tensors of a frame without its length."""
    size = struct.unpack("<Q", frame[:8])[0]
    header = json.loads(frame[8:8 + size])
    data = frame[8 + size:]
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        flat = torch.tensor(list(data[start:end]), dtype=torch.uint8).view(DTYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return metadata, tensors


def hello(loss: str, entry: str = "", paths: Any = (), arguments: Optional[dict] = None, **more: str) -> dict:
    outputs = [{"name": name, "axes": ["sequences", "tokens"]} for name in OUTPUTS.get(loss, ["per_token"])]
    return {"op": "hello", "protocol": "1", "entry": entry, "path": json.dumps(list(paths)), "device": "cpu",
            "threads": "1", "loss": loss, "fields": json.dumps(FIELDS[loss]), "outputs": json.dumps(outputs),
            "options": json.dumps(OPTIONS[loss]), "arguments": json.dumps(arguments or {}), **more}


def step(loss: str, identity: str = "1", **more: Any) -> dict:
    facts = {"total_tokens": "5", "total_sequences": "2", "total_rows": "3", "rank_tokens": "5", "rank_sequences": "2",
             "rank_rows": "3", "rank": "0", "world": "1", "micro_batch": "0", "micro_batches": "1"}
    options = {f"option.{entry['name']}": "none" if entry["standard"] is None else str(entry["standard"])
               for entry in OPTIONS[loss]}
    return {"op": "step", "id": identity, "reduction": "token_mean", **options, **facts, "upstream": "1",
            "explain": "0", **{key.replace("__", "."): str(value) for key, value in more.items()}}


class Process:
    """A worker as lossgate starts it: boot.py on the command line, the modules in the first frame."""

    def __init__(self, python: str = sys.executable, folder: Optional[str] = None, environment: Optional[dict] = None,
                 flags: tuple = (), modules: Optional[dict] = None) -> None:
        with open(os.path.join(HERE, "boot.py"), encoding="utf-8") as file:
            boot = file.read()
        self.process = subprocess.Popen([python, *flags, "-c", boot], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, cwd=folder,
                                        env=None if environment is None else {**os.environ, **environment})
        text = json.dumps(worker_modules() if modules is None else modules).encode()
        self.process.stdin.write(struct.pack("<Q", len(text)) + text)
        self.process.stdin.flush()

    def send(self, frame: bytes) -> bytes:
        """The reply's bytes, length included."""
        self.process.stdin.write(frame)
        self.process.stdin.flush()
        head = self.process.stdout.read(8)
        if len(head) < 8:
            raise EOFError(self.process.stderr.read().decode())
        return head + self.process.stdout.read(struct.unpack("<Q", head)[0])

    def ask(self, metadata: dict, tensors: Optional[dict] = None) -> tuple[dict, dict]:
        return read_document(self.send(write_frame(metadata, tensors))[8:])

    def close(self) -> tuple[int, str]:
        """Exit status and what was printed."""
        self.process.stdin.close()
        self.process.stdin = None
        printed = self.process.communicate(timeout=60)[1].decode()
        return self.process.returncode, printed

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
