# SPDX-License-Identifier: Apache-2.0
"""Frames: a length, then one safetensors document, read strictly and written to the byte."""

from __future__ import annotations

import ctypes
import io
import json
import math
import os
import struct
from typing import NamedTuple, Optional

from lossgate.worker.pytorch import torch
from lossgate.worker.remembering import remember
from lossgate.worker.trouble import Trouble

LONGEST_FRAME = 1 << 34
DTYPES = {} if torch is None else {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "U8": torch.uint8, "BOOL": torch.bool}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
ITEM_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}


class Entry(NamedTuple):
    name: str
    dtype: str
    shape: tuple
    start: int
    end: int


def no_twice(pairs: list) -> dict:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise Trouble("a name occurs twice in the header of a frame")
    return result


# A decoder costs more to make than a header to read.
read_json = json.JSONDecoder(object_pairs_hook=no_twice).decode


def parse_header(header: bytes, data_size: int) -> tuple[dict, list[Entry]]:
    """Metadata and tensors of a safetensors header, strictly; entries in the order of the data."""
    try:
        document = read_json(header.decode("utf-8"))
        metadata = document.pop("__metadata__", {})
        if not all(isinstance(value, str) for value in metadata.values()):
            raise Trouble("metadata of a frame must be strings")
        entries = []
        for name, value in document.items():
            shape = tuple(value["shape"])
            start, end = value["data_offsets"]
            if any(type(extent) is not int or extent < 0 for extent in shape):
                raise Trouble(f"tensor {name}: bad shape {list(shape)}")
            if end - start != math.prod(shape) * ITEM_SIZES[value["dtype"]]:
                raise Trouble(f"tensor {name}: {end - start} bytes do not make {value['dtype']} {list(shape)}")
            entries.append(Entry(name, value["dtype"], shape, start, end))
    except Trouble:
        raise
    except Exception as error:
        raise Trouble(f"a frame is no safetensors document: {type(error).__name__}: {error}") from None
    entries.sort(key=lambda entry: (entry.start, entry.end))
    at = 0
    for entry in entries:
        if entry.start != at:
            raise Trouble(f"tensor {entry.name}: its data leave a hole or overlap")
        at = entry.end
    if at != data_size:
        raise Trouble(f"a frame has {data_size} bytes of data, its tensors {at}")
    return metadata, entries


def header_end(frame: bytes) -> int:
    if len(frame) < 8 or 8 + int.from_bytes(frame[:8], "little") > len(frame):
        raise Trouble("a frame ends within its header")
    return 8 + int.from_bytes(frame[:8], "little")


def bits(tensor: torch.Tensor) -> bytes:
    """The elements as they lie in a safetensors document."""
    if tensor.layout is not torch.strided:
        tensor = tensor.detach().to_dense()
    if not tensor.is_cpu:
        tensor = tensor.detach().cpu()
    if tensor.is_neg():
        tensor = tensor.detach().resolve_neg()
    if not tensor.is_contiguous():
        tensor = tensor.detach().contiguous()
    count = tensor.numel() * tensor.element_size()
    return ctypes.string_at(tensor.data_ptr(), count) if count else b""


class Encoder:
    """Writes reply frames; what does not change between replies is written once."""

    def __init__(self) -> None:
        self._known: dict = {}

    def frame(self, op: str, identity: Optional[str], metadata: tuple, tensors: list) -> bytes:
        key = (op, metadata, tuple([(name, tensor.dtype, tensor.shape) for name, tensor in tensors]))
        parts = self._known.get(key)
        if parts is None:
            parts = remember(self._known, key, self._parts(op, metadata, tensors))
        before, after, size = parts
        identity_text = b"" if identity is None else b',"id":' + json.dumps(identity).encode()
        header = before + identity_text + after
        header += b" " * (-len(header) % 8)
        return b"".join([struct.pack("<QQ", 8 + len(header) + size, len(header)), header,
                         *[bits(tensor) for _, tensor in tensors]])

    @staticmethod
    def _parts(op: str, metadata: tuple, tensors: list) -> tuple[bytes, bytes, int]:
        text = lambda value: json.dumps(value, separators=(",", ":"))
        before = '{"__metadata__":{"op":' + text(op)
        after = "".join(f",{text(key)}:{text(value)}" for key, value in metadata) + "}"
        at = 0
        for name, tensor in tensors:
            end = at + tensor.numel() * tensor.element_size()
            after += "," + text(name) + ":" + text({"dtype": DTYPE_NAMES[tensor.dtype],
                                                    "shape": list(tensor.shape),
                                                    "data_offsets": [at, end]})
            at = end
        return before.encode(), (after + "}").encode(), at


def read_frame(stream: io.BufferedReader) -> Optional[bytes]:
    head = stream.read(8)
    if len(head) < 8:
        return None
    size = int.from_bytes(head, "little")
    if size > LONGEST_FRAME:
        raise Trouble(f"a frame of {size} bytes is too long")
    frame = stream.read(size)
    return frame if len(frame) == size else None


def write_all(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])
