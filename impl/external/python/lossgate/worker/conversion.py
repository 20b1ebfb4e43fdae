# SPDX-License-Identifier: Apache-2.0
"""Values on their way into an argument: words of a request to Python, and `SOURCE as WORD`."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from lossgate.worker.pytorch import torch

IGNORED_LABEL = -100


class Surroundings(NamedTuple):
    """What a conversion may look at besides the value."""

    compute: Any  # dtype that `float` stands for
    device: Any
    valid: Callable  # () -> bool tensor (sequences, tokens)


def is_valid(value: Any) -> Any:
    if value.dtype in (torch.int64, torch.int32):
        return value != IGNORED_LABEL
    return value != 0


def _rows(value: Any, around: Surroundings) -> Any:
    """(sequences, tokens) -> (sequences,): the first valid column of each row."""
    if value.dim() < 2 or value.shape[1] == 0:
        return value.new_zeros(value.shape[:1])
    first = around.valid().to(torch.uint8).argmax(dim=1, keepdim=True)
    return value.gather(1, first).squeeze(1)


def _expanded(value: Any, around: Surroundings) -> Any:
    """(sequences, tokens): that one number of each row at all of its positions. Where it stands there already the field
    stays as it is, and where it lies."""
    if value.dim() < 2 or value.shape[1] == 0:
        return value
    row = _rows(value, around).unsqueeze(1)
    same = (value == row) | (value.isnan() & row.isnan())
    return value if bool(same.all()) else torch.where(same, value, row)


def _size(value: Any, around: Surroundings) -> int:
    """How many have the number of the first: the members of each group, where all have as many."""
    return int((value == value[0]).sum()) if value.numel() else 1


def _lengths(value: Any, around: Surroundings) -> Any:
    """(sequences, tokens) -> (sequences,): how many count, where those that do come first."""
    return is_valid(value).sum(dim=1)


def _as_tensor(value: Any, around: Surroundings) -> Any:
    wide = isinstance(value, float) and around.compute == torch.float64
    return _in_dtype(value, torch.float64 if wide else None, around)


def _in_dtype(value: Any, dtype: Any, around: Surroundings) -> Any:
    """A number is rounded to it once; none stays none."""
    if value is None:
        return None
    if isinstance(value, torch.Tensor):
        return value if dtype is None else value.to(dtype)
    return torch.tensor(value, dtype=dtype, device=around.device)


def _as_dtype(name: str) -> Callable:
    return lambda value, around: _in_dtype(value, getattr(torch, name), around)


CONVERSIONS: dict[str, Callable] = {
    "float": lambda value, around: _in_dtype(value, around.compute, around),
    **{name: _as_dtype(name) for name in ("float64", "float32", "float16", "bfloat16", "int64", "int32",
                                          "uint8", "bool")},
    "valid": lambda value, around: is_valid(value),
    "padding": lambda value, around: ~is_valid(value),
    "ids": lambda value, around: value.clamp(min=0),
    "rows": _rows,
    "expanded": _expanded,
    "size": _size,
    "lengths": _lengths,
    "tensor": _as_tensor,
}


def number_of(text: str) -> Any:
    """A number as a case file or a metadata string has it."""
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        return float.fromhex(text) if "0x" in text else float(text)


def option_value(text: str, kind: str) -> Any:
    if text == "none":
        return None
    if kind == "choice":
        return text
    number = number_of(text)
    return {"flag": bool, "integer": int}.get(kind, float)(number)
