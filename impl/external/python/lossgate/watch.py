# SPDX-License-Identifier: 0BSD
"""Keeps what a loss was given at the step that makes it, or its gradient, no number. Needs torch alone; copy it freely.

    with watch(loss="ppo_clip", out="dumps", step=step, log_prob=lp, old_log_prob=old, advantage=adv, mask=mask,
               reduction="token_mean", clip_low=0.2):
        my_loss(lp, old, adv, mask).backward()

Tensors are named as the loss names them (`lossgate describe LOSS`), or as you like without `loss`. It keeps references
while the block lasts, and writes one .safetensors file where the loss or the gradient of a tensor that was given is not
finite, or beyond a limit. Then: lossgate explain FILE --fn my_losses.py:my_loss
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import math
import os
import platform
import re
import sys
import threading
import types
import warnings
from typing import Any, Mapping, Optional

import torch

VERSION = "1"
_NAMES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
          torch.int32: "I32", torch.uint8: "U8", torch.bool: "BOOL"}
_steps: dict = {}  # loss to the number of its blocks, for trainers that say no step
_written: dict = {}  # loss to the number of its dumps


class watch:  # noqa: N801  reads as a verb
    """A block around a loss and its backward.

    loss            name of the loss, such as "grpo" or "ppo_clip"; None: tensors have the caller's own names
    out             folder of the dumps
    step, rank      counted, and asked of torch.distributed, unless said
    loss_limit, gradient_limit
                    write also where the loss, or an entry of a gradient, is larger in magnitude
    rows            "offending": those alone whose gradients or inputs are at fault; "all"
    megabytes       a larger dump keeps fewer rows, then fewer tokens
    dumps           at most so many for each loss and process
    given           further tensors and numbers, whose names are taken above
    """

    def __init__(self, *, loss: Optional[str] = None, out: Any = "lossgate-dumps", step: Optional[int] = None,
                 rank: Optional[int] = None, loss_limit: float = math.inf, gradient_limit: float = math.inf,
                 rows: str = "offending", megabytes: float = 256, dumps: int = 8,
                 given: Optional[Mapping[str, Any]] = None, **named: Any) -> None:
        self._name, self._out, self._step, self._rank = loss, out, step, rank
        self._limits = loss_limit, gradient_limit
        self._rows, self._bytes, self._dumps = rows, megabytes * 1e6, dumps
        self._given = {**named, **given} if given else named
        self._gradients: dict = {}
        self._root: Any = None  # what backward was called on, and with which gradient
        self._loss: Any = None  # what the block said is the loss
        self._upstream: Any = None

    def __enter__(self) -> watch:
        self._told = _steps[self._name] = _steps.get(self._name, -1) + 1
        self._autocast = _autocast()
        self._handles = [value.register_hook(_keeper(self._gradients, name)) for name, value in self._given.items()
                         if isinstance(value, torch.Tensor) and value.requires_grad]
        self._versions = [value.is_inference() or value._version for value in self._tensors().values()]
        _open(self)
        return self

    def loss(self, loss: torch.Tensor) -> torch.Tensor:
        """Says which tensor is the loss, where it is scaled or added to others before backward."""
        self._loss = loss
        self._autocast = self._autocast or _autocast()
        if loss.requires_grad:
            self._handles.append(loss.register_hook(_keeper(vars(self), "_upstream")))
        return loss

    def save(self, reason: str = "asked for") -> Optional[str]:
        """Writes a dump in any case, such as when the norm of the model's gradient is NaN; returns its path."""
        try:
            return self._save(reason)
        except Exception as error:  # a training run must not die of its watch
            warnings.warn(f"lossgate.watch wrote nothing: {type(error).__name__}: {error}", stacklevel=2)
            return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        _close(self)
        for handle in self._handles:
            handle.remove()
        try:
            reason = self._reason()
        except Exception as problem:
            reason = None
            warnings.warn(f"lossgate.watch saw nothing: {type(problem).__name__}: {problem}", stacklevel=2)
        if reason:
            self.save(reason)
        self._handles.clear()

    def _tensors(self) -> dict:
        return {name: value for name, value in self._given.items() if isinstance(value, torch.Tensor)}

    def _observed(self) -> tuple:
        """The loss, and the gradient of the training objective with respect to it."""
        if self._loss is not None:
            return self._loss, 1.0 if self._upstream is None else float(_local(self._upstream))
        if self._root is None:
            return None, 1.0
        loss, gradient, factor = self._root
        scale = _scale_of(factor)
        return loss if scale == 1 else loss.detach() / scale, scale * (1.0 if gradient is None else float(_local(gradient)))

    def _reason(self) -> str:
        """Why this block is worth a file; empty where it is not."""
        loss = self._loss if self._loss is not None else self._root[0] if self._root else None
        if loss is not None and loss.numel() == 1:
            value = float(_local(loss.detach()))
            if not math.isfinite(value):
                return f"loss {value}"
            if abs(value) > self._limits[0]:
                return f"loss {value} beyond {self._limits[0]}"
        for name, gradient in self._gradients.items():
            gradient = _local(gradient)
            # A sum is the cheapest kernel that no NaN and no infinity leaves finite.
            if not math.isfinite(gradient.sum()) and not bool(torch.isfinite(gradient).all()):
                return f"gradient of {name} is not finite"
            if self._limits[1] != math.inf and gradient.numel() and float(gradient.abs().max()) > self._limits[1]:
                return f"gradient of {name} beyond {self._limits[1]}"
        return ""

    def _save(self, reason: str) -> Optional[str]:
        _written[self._name] = _written.get(self._name, 0) + 1
        if _written[self._name] > self._dumps:
            return None
        fields = {name: _local(value.detach()) for name, value in self._tensors().items()}
        gradients = {name: _local(gradient.detach()) for name, gradient in self._gradients.items()}
        rows, columns, shape = self._kept(fields, gradients)
        loss, upstream = self._observed()
        tensors = {name: _cut(field, rows, columns, shape) for name, field in fields.items()}
        tensors.update((f"observed.gradient.{name}", _cut(gradient, rows, columns, shape))
                       for name, gradient in gradients.items())
        if loss is not None:
            tensors["observed.loss"] = _local(loss.detach()).reshape(())
        rank, world = _rank()
        run = {"reason": reason, "step": self._told if self._step is None else int(self._step),
               "rank": rank if self._rank is None else self._rank, "world": world, "device": _devices(fields),
               "autocast": self._autocast, "torch": torch.__version__, "python": platform.python_version(),
               "cuda": torch.version.cuda or "", **self._remarks()}
        counts = {name: _count(field) for name, field in fields.items() if name not in gradients}
        numbers = {name: value for name, value in self._given.items() if not isinstance(value, torch.Tensor)}
        metadata = {"lossgate-dump": VERSION, "upstream": repr(upstream),
                    **({"loss": self._name} if self._name else {}),
                    **{f"given.{name}": json.dumps(_spelt(value), default=str) for name, value in numbers.items()},
                    "kept.rows": json.dumps(rows), "kept.tokens": json.dumps(columns), "kept.of": json.dumps(shape),
                    "kept.counts": json.dumps({name: count for name, count in counts.items() if count is not None}),
                    **{f"run.{name}": str(value) for name, value in run.items()}}
        return _write(self._path(run["step"], run["rank"]), tensors, metadata)

    def _remarks(self) -> dict:
        """What else is to be known of the tensors."""
        tensors = self._tensors()
        shards = {name: str(value.placements) for name, value in tensors.items() if hasattr(value, "placements")}
        pairs = zip(tensors.items(), self._versions)
        return {"differentiable": json.dumps([name for name, value in tensors.items() if value.requires_grad]),
                "shards": json.dumps(shards),
                "changed": json.dumps([name for (name, value), version in pairs
                                       if (value.is_inference() or value._version) != version])}

    def _path(self, step: int, rank: int) -> str:
        os.makedirs(self._out, exist_ok=True)
        name = re.sub(r"[^\w.-]+", "_", self._name or "loss")
        stem = os.path.join(self._out, f"{name}-step{step:08d}-rank{rank:04d}")
        more = itertools.chain([""], (f"-{again}" for again in itertools.count(2)))
        return next(path for path in (f"{stem}{end}.safetensors" for end in more) if not os.path.exists(path))

    def _kept(self, fields: dict, gradients: dict) -> tuple:
        """The rows and tokens that are written, and the (rows, tokens) of the whole batch."""
        like = next(iter(gradients.values()), next(iter(fields.values()), None))
        shape = [] if like is None else list(like.shape[:2])
        if not shape:
            return [], [], []
        guilty = _places(gradients.values(), shape)
        inputs = _places((field for field in fields.values() if field.dtype.is_floating_point), shape)
        guilty = guilty if bool(guilty.any()) else inputs
        rows, columns = range(shape[0]), range(shape[1] if len(shape) > 1 else 0)
        if self._rows == "offending" and bool(guilty.any()):
            rows = guilty.reshape(shape[0], -1).any(1).nonzero().flatten().tolist()
        sizes = {True: 0, False: 0}  # bytes of what has rows, and of what has none
        for tensor in [*fields.values(), *gradients.values()]:
            sizes[tensor.dim() > 0 and tensor.shape[0] == shape[0]] += tensor.numel() * tensor.element_size()
        most = (self._bytes - sizes[False]) * shape[0] / max(1, sizes[True])  # rows that fit
        if most < len(rows):  # those whose inputs are at fault first, then those with most that is not finite
            worth = (inputs * guilty.numel() + guilty.int()).reshape(shape[0], -1)
            rows = sorted(sorted(rows, key=lambda row: -int(worth[row].sum()))[:max(1, int(most))])
            if most < 1:
                best = sorted(columns, key=lambda column: -int(worth[rows, column].sum()))
                columns = sorted(best[:max(1, int(most * len(best)))])
        return list(rows), list(columns), shape


_blocks: list = []  # (thread, block), the innermost last
_lock = threading.Lock()
_backward: Any = None


def _open(block: watch) -> None:
    """While a block lasts, torch.autograd.backward says what it is called on: Tensor.backward goes through it."""
    global _backward
    with _lock:
        if not _blocks:
            _backward, torch.autograd.backward = torch.autograd.backward, _watched
        _blocks.append((threading.get_ident(), block))


def _close(block: watch) -> None:
    with _lock:
        _blocks[:] = [pair for pair in _blocks if pair[1] is not block]
        if not _blocks and torch.autograd.backward is _watched:
            torch.autograd.backward = _backward


def _watched(tensors: Any, grad_tensors: Any = None, *more: Any, **named: Any) -> None:
    for thread, block in _blocks:
        if thread == threading.get_ident():
            first = lambda given: given if given is None or isinstance(given, torch.Tensor) else given[0]
            block._root = first(tensors), first(grad_tensors), _factor_of(first(tensors))
    _backward(tensors, grad_tensors, *more, **named)


def _count(field: torch.Tensor) -> Optional[int]:
    """Of what a mask lets count, or of labels beside -100: the divisors of the whole batch, whatever rows are kept."""
    if field.dim() and not field.dtype.is_floating_point and bool((field == -100).any()):
        return int((field != -100).sum())
    return int((field != 0).sum()) if field.dim() and bool(((field == 0) | (field == 1)).all()) else None


def _places(tensors: Any, shape: list) -> torch.Tensor:
    """Where one of the tensors is not finite."""
    found = torch.zeros(shape, dtype=torch.bool)
    for tensor in tensors:
        if list(tensor.shape[:len(shape)]) == shape:
            found |= (~torch.isfinite(tensor)).reshape(*shape, -1).any(-1).cpu()
        elif tensor.dim() == 1 and list(tensor.shape) == shape[:1]:
            found |= (~torch.isfinite(tensor)).cpu().reshape(-1, *[1] * (len(shape) - 1))
    return found


def _spelt(value: Any) -> Any:
    """JSON has no infinity and no NaN: these are words, as float() reads them."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    if isinstance(value, dict):
        return {str(key): _spelt(each) for key, each in value.items()}
    return [_spelt(each) for each in value] if isinstance(value, (list, tuple)) else value


def _cut(tensor: torch.Tensor, rows: list, columns: list, shape: list) -> torch.Tensor:
    if shape and tensor.dim() and tensor.shape[0] == shape[0] and len(rows) < shape[0]:
        tensor = tensor[rows]
    if len(shape) == 2 and tensor.dim() > 1 and tensor.shape[1] == shape[1] and len(columns) < shape[1]:
        tensor = tensor[:, columns]
    return tensor


def _write(path: str, tensors: dict, metadata: dict) -> str:
    """The safetensors framing, byte for byte as the tensors lie in memory; whole or not at all."""
    stored = {name: _storable(tensor) for name, tensor in tensors.items()}
    order = sorted(stored, key=lambda name: -stored[name].element_size())  # each is aligned then
    header: dict = {"__metadata__": metadata}
    end = 0
    for name in order:
        begin, end = end, end + stored[name].numel() * stored[name].element_size()
        header[name] = {"dtype": _NAMES[stored[name].dtype], "shape": list(stored[name].shape),
                        "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    beside = f"{path}.{os.getpid()}"
    try:
        with open(beside, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name in order:
                size = stored[name].numel() * stored[name].element_size()
                if size:
                    file.write((ctypes.c_char * size).from_address(stored[name].data_ptr()))
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.remove(beside)
    return path


def _storable(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype not in _NAMES:
        tensor = tensor.to(torch.float32 if tensor.dtype.is_floating_point else torch.int64)
    return tensor.cpu().contiguous()


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's shard of a sharded tensor."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _keeper(kept: dict, name: str) -> Any:
    return lambda gradient: kept.__setitem__(name, gradient)


def _factor_of(root: Any) -> Any:
    """What the root was multiplied by last, if that has no gradient: a backward frees it."""
    node = getattr(root, "grad_fn", None)
    if node is None or node.name() != "MulBackward0" or len(node.next_functions) != 2 or node.next_functions[1][0]:
        return None
    with contextlib.suppress(RuntimeError):  # an earlier backward did
        return getattr(node, "_saved_other", None)


def _scale_of(factor: Any) -> float:
    """A loss scale: a power of two."""
    scale = float(factor) if isinstance(factor, torch.Tensor) and factor.numel() == 1 else 1.0
    return scale if scale >= 2 and math.frexp(scale)[0] == 0.5 else 1.0


def _devices(fields: dict) -> str:
    return ", ".join(sorted({f"{field.device} ({torch.cuda.get_device_name(field.device)})" if field.is_cuda
                             else str(field.device) for field in fields.values()}))


def _autocast() -> str:
    if not hasattr(torch, "get_autocast_dtype"):  # before torch 2.4
        return str(torch.get_autocast_gpu_dtype())[6:] if torch.is_autocast_enabled() else ""
    return next((str(torch.get_autocast_dtype(kind))[6:] for kind in ("cuda", "cpu")
                 if torch.is_autocast_enabled(kind)), "")


def _rank() -> tuple:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


class _Callable(types.ModuleType):
    """`import lossgate` and `lossgate.watch(...)`, where this file lies in the package."""

    def __call__(self, **arguments: Any) -> watch:
        return watch(**arguments)


sys.modules[__name__].__class__ = _Callable
