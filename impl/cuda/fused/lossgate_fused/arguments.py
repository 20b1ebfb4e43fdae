# SPDX-License-Identifier: Apache-2.0
"""What a kernel may be given. Every refusal begins with the name of the argument at fault."""
from __future__ import annotations

from typing import Mapping, NoReturn

import torch

Tensors = Mapping[str, torch.Tensor]
FORMATS = (torch.float32, torch.bfloat16, torch.float16)
TOKENS = (torch.int64, torch.int32)
INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, *TOKENS)
IGNORED = -100


def refuse(argument: str, message: str) -> NoReturn:
    raise ValueError(f"{argument} {message}")


def check(leaf: str, tensors: Tensors, axes: Mapping[str, str], wide: tuple[str, ...]) -> None:
    """The argument `leaf` has the gradient: all others lie on its device and have its extents, and its
    format unless they are tokens, a mask, or `wide`, which the kernels read in float32."""
    model, rank = tensors[leaf], len(axes[leaf])
    if model.dim() != rank:
        refuse(leaf, f"has shape {list(model.shape)}, expected {rank} axes")
    if model.dtype not in FORMATS:
        refuse(leaf, f"is of {model.dtype}; fused losses take float32, bfloat16 and float16")
    if rank == 3 and model.shape[2] == 0:
        refuse(leaf, "has an empty vocabulary")
    sizes = dict(zip(axes[leaf], model.shape))
    for name, tensor in tensors.items():
        if tensor.device != model.device:
            refuse(name, f"lies on {tensor.device}, {leaf} on {model.device}")
        check_shape(name, tensor, axes[name], sizes)
        expected = {"mask": INTEGERS, "label": TOKENS, "support_token": TOKENS}.get(
            name, FORMATS if name in wide else (model.dtype,))
        if tensor.dtype not in expected:
            refuse(name, f"is of {tensor.dtype}, expected {' or '.join(str(dtype) for dtype in expected)}")


def check_shape(name: str, tensor: torch.Tensor, axes: str, sizes: dict[str, int]) -> None:
    if tensor.dim() == len(axes):
        for axis, size in zip(axes, tensor.shape):
            sizes.setdefault(axis, size)
    expected = [sizes.get(axis) for axis in axes]
    if list(tensor.shape) != expected:
        refuse(name, f"has shape {list(tensor.shape)}, expected {expected}")
    if len(axes) == 3 and tensor.shape[2] > 1 and tensor.stride(2) != 1:
        refuse(name, f"has stride {tensor.stride(2)} along its last axis, which must be dense: make it contiguous")


def check_values(tensors: Tensors, vocab: int, total_tokens: int, beta: float) -> None:
    """Asked of tensors in the host's memory alone: on a GPU it would have to be waited for. There the
    kernels read nothing outside of a row: a token that is not in the vocabulary makes the loss NaN."""
    mask, label = tensors.get("mask"), tensors.get("label")
    if mask is not None and bool(((mask != 0) & (mask != 1)).any()):
        refuse("mask", "must hold nothing but 0 and 1")
    valid = mask != 0 if mask is not None else label != IGNORED
    if total_tokens < 1 and bool(valid.any()):
        refuse("total_tokens", f"is {total_tokens}, and there are positions that count")
    for name in ("label", "support_token"):
        if name not in tensors:
            continue
        tokens = tensors[name]
        outside = (tokens < 0) | (tokens >= vocab)
        outside &= valid if tokens.dim() == 2 else valid.unsqueeze(-1)
        if bool(outside.any()):
            place = outside.nonzero()[0].tolist()
            refuse(name, f"is {int(tokens[tuple(place)])} at {place}, outside of a vocabulary of {vocab}")
    if beta > 0 and "teacher_log_prob" in tensors:
        missing = ~tensors["teacher_log_prob"].isfinite() & valid.unsqueeze(-1)
        if bool(missing.any()):
            refuse("teacher_log_prob", f"is not finite at {missing.nonzero()[0].tolist()}, which counts")


def prepared(tensors: Tensors, wide: tuple[str, ...]) -> dict[str, torch.Tensor]:
    """What costs one number a position in the format that the kernels read: nothing is rounded."""
    ready = dict(tensors)
    for name, tensor in tensors.items():
        if name in wide:
            ready[name] = tensor.float()
        elif name == "support_token":
            ready[name] = tensor.long()
        elif name == "mask" and tensor.dtype not in (torch.bool, torch.uint8):
            ready[name] = tensor != 0
    return ready
