# SPDX-License-Identifier: Apache-2.0
"""liblossgate_fused.so: one call for all losses (impl/cuda/fused/fused.h)."""
from __future__ import annotations

import ctypes as c
import functools
import math
import os
from pathlib import Path
from typing import Mapping, Optional, Union

import torch

Number = Union[float, int, bool, str, None]

# The numbers that fused.h gives to formats.
DTYPES = {torch.float64: 0, torch.float32: 1, torch.float16: 2, torch.bfloat16: 3,
          torch.int64: 4, torch.int32: 5, torch.uint8: 6, torch.bool: 7}


class Array(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_void_p), ("dtype", c.c_int32),
                ("sequence_stride", c.c_int64), ("token_stride", c.c_int64)]


class Option(c.Structure):
    _fields_ = [("name", c.c_char_p), ("choice", c.c_char_p), ("number", c.c_double)]


class Call(c.Structure):
    _fields_ = [("loss", c.c_char_p), ("reduction", c.c_char_p),
                ("sequences", c.c_int64), ("tokens", c.c_int64), ("vocab", c.c_int64), ("support", c.c_int64),
                ("total_tokens", c.c_int64), ("total_sequences", c.c_int64),
                ("arrays", c.POINTER(Array)), ("array_count", c.c_size_t),
                ("options", c.POINTER(Option)), ("option_count", c.c_size_t),
                ("device", c.c_int32), ("stream", c.c_void_p), ("message", c.c_char * 256)]


@functools.lru_cache(maxsize=None)
def library() -> c.CDLL:
    """Beside this file, or where LOSSGATE_FUSED says."""
    path = os.environ.get("LOSSGATE_FUSED") or Path(__file__).with_name("liblossgate_fused.so")
    try:
        loaded = c.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{error}; LOSSGATE_FUSED names the file liblossgate_fused.so") from None
    loaded.lossgate_fused.argtypes = [c.POINTER(Call)]
    loaded.lossgate_fused_memory.argtypes = [c.c_char_p]
    loaded.lossgate_fused_memory.restype = c.c_char_p
    return loaded


def has_device_form() -> bool:
    return bool(library().lossgate_fused_has_device_form())


@functools.lru_cache(maxsize=None)
def memory_of(loss: str) -> tuple[str, ...]:
    """The arrays that the loss needs for the time of a call."""
    return tuple(library().lossgate_fused_memory(loss.encode()).decode().split())


def strides(tensor: torch.Tensor) -> tuple[int, int]:
    return (tensor.stride(0) if tensor.dim() > 0 else 0), (tensor.stride(1) if tensor.dim() > 1 else 0)


def run(loss: str, reduction: str, extents: Mapping[str, int], totals: Mapping[str, int],
        arrays: Mapping[str, torch.Tensor], options: Mapping[str, Number]) -> None:
    """Computes on the host, or starts the kernels on the current stream of the tensors' GPU. Memory is
    the caching allocator's, which hands it out again in the order of that stream."""
    some = next(iter(arrays.values()))
    call = Call(loss=loss.encode(), reduction=reduction.encode(), device=-1, **extents, **totals)
    call.arrays = (Array * len(arrays))(
        *(Array(name.encode(), tensor.data_ptr(), DTYPES[tensor.dtype], *strides(tensor)) for name, tensor in arrays.items()))
    call.array_count = len(arrays)
    call.options = (Option * len(options))(*(option(*item) for item in options.items()))
    call.option_count = len(options)
    if some.is_cuda:
        call.device = some.get_device()
        call.stream = torch.cuda.current_stream(some.device).cuda_stream
    if library().lossgate_fused(c.byref(call)) != 0:
        raise RuntimeError(call.message.decode(errors="replace"))


def option(name: str, value: Number) -> Option:
    if isinstance(value, str):
        return Option(name.encode(), value.encode(), 0.0)
    if value is not None and math.isnan(value):  # which stands for None in the call
        raise ValueError(f"{name} is NaN")
    return Option(name.encode(), None, math.nan if value is None else float(value))
