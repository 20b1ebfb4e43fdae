# SPDX-License-Identifier: Apache-2.0
"""What the header of a step decides, worked out once for equal headers."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple, Optional

from lossgate.worker.binding import Binding
from lossgate.worker.conversion import number_of, option_value
from lossgate.worker.frames import DTYPES, ITEM_SIZES, Entry
from lossgate.worker.layout import place_of
from lossgate.worker.matching import Loss
from lossgate.worker.pytorch import torch
from lossgate.worker.reduction import Reduction
from lossgate.worker.trouble import Trouble
from lossgate.worker.weighing import Weighing

HISTORIES = ("alone", "evaluation", "two_forwards", "summed_losses", "backward_twice", "backward_by_rows", "updated",
             "autocast")


class FieldPlan(NamedTuple):
    name: str
    dtype: Any
    shape: tuple
    count: int
    start: int  # in the frame's data
    size: int  # bytes
    at: int  # in the buffer that the subject gets
    differentiable: bool
    mask_bits: bool  # u8, given as bool where it holds nothing but 0 and 1
    by_sequence: bool  # its first axis is that of the sequences


class FieldsPlan:
    """The fields of a step as its tensors lie; made once for equal tables."""

    def __init__(self, entries: list[Entry], loss: Loss) -> None:
        self.fields: list[FieldPlan] = []
        # Where the elements lie aligned already, the data are taken as they are.
        self.packed = all(entry.start % ITEM_SIZES[entry.dtype] == 0 for entry in entries)
        at = 0
        for entry in entries:
            field = loss.fields.get(entry.name)
            if field is None:
                raise Trouble(f"a step has the tensor {entry.name!r}, which is no field of {loss.id}")
            self.fields.append(FieldPlan(entry.name, DTYPES[entry.dtype], entry.shape, math.prod(entry.shape),
                                         entry.start, entry.end - entry.start,
                                         entry.start if self.packed else at,
                                         field["role"] == "differentiable",
                                         field["role"] == "mask" and entry.dtype == "U8",
                                         field["axes"][:1] == ["sequences"]))
            at += (entry.end - entry.start + 63) // 64 * 64
        given = {entry.name for entry in entries}
        for name in loss.fields:
            if name not in given:
                raise Trouble(f"a step lacks the field {name!r}")
        self.size = at
        floats = [field.dtype for field in self.fields if field.dtype.is_floating_point]
        # Beside 16 bits a subject's wide fields are f32, and a frame has these first.
        narrow = [dtype for dtype in floats if dtype in (torch.bfloat16, torch.float16)]
        self.compute = (narrow or floats or [torch.float32])[0]


class StepPlan:
    """Everything of a step request that its header decides; made once for equal headers."""

    def __init__(self, metadata: dict, fields: FieldsPlan, binding: Binding) -> None:
        self.fields = fields.fields
        self.size = fields.size
        self.by_sequence = {field.name for field in fields.fields if field.by_sequence}
        self.packed = fields.packed
        self.compute = fields.compute
        self.layout = metadata.get("layout", "contiguous")
        layouts = self.layout.split(",")  # of each field, or one of all
        if len(layouts) == 1:
            layouts *= len(self.fields)
        self.mixed = "," in self.layout
        self.shifts = binding.shifts
        self.places = [place_of(self._handed(field), layout, field.by_sequence)
                       for field, layout in zip(self.fields, layouts)]
        self.explain = metadata.get("explain") == "1"
        self.history = metadata.get("history", "alone")
        if self.history not in HISTORIES:
            raise Trouble(f"unknown history {self.history!r}; a step has one of {', '.join(HISTORIES)}")
        self.differentiable = any(field.differentiable for field in self.fields)
        self.asked = self._asked(metadata.get("gradients"))
        self.upstream = float(number_of(metadata.get("upstream", "1")))
        self.accumulates = False  # whether gradients must be read where a backward adds them up, as was seen
        self.valid_field = binding.valid_field
        per_token = binding.loss.returns == "per_token"
        self.reduction = Reduction(metadata, binding.subject.name, binding.loss.outputs,
                                   layouts[-1]) if per_token else None
        self.weighing = Weighing(binding.subject.name, binding.loss.weights, layouts[-1]) if binding.loss.weights else None
        constants = {}
        for source, key, kind in binding.constants:
            if key not in metadata:
                raise Trouble(f"a step lacks {key}")
            constants[source] = option_value(metadata[key], kind)
        self.call = binding.callee(constants)
        self.positional = [self._argument(source, value, constants, words)
                           for _, source, value, words in binding.recipes_positional]
        self.constants, self.plain_keywords, self.keywords = {}, [], []
        for name, source, value, words in binding.recipes_keywords:
            argument = self._argument(source, value, constants, words)
            if type(argument) is Tensorial and not argument.conversions:
                self.plain_keywords.append((name, argument.field))
            elif type(argument) is Tensorial:
                self.keywords.append((name, argument))
            else:
                self.constants[name] = argument

    def _handed(self, field: FieldPlan) -> tuple:
        """The shape that the function gets."""
        shift = self.shifts.get(field.name)
        return field.shape if shift is None else shift.longer(field.shape)

    def _asked(self, listed: Optional[str]) -> set:
        """The fields whose gradients the caller asks for."""
        differentiable = {field.name for field in self.fields if field.differentiable}
        if listed is None:
            return differentiable
        asked = set(json.loads(listed))
        for name in sorted(asked - differentiable):
            raise Trouble(f"a step asks for the gradient of {name!r}, which is no differentiable field")
        return asked

    @staticmethod
    def _argument(source: str, value: Any, constants: dict, conversions: list) -> Any:
        if source in ("json", "default"):
            return value
        if source == "field":
            return Tensorial(value, None, conversions)
        return Tensorial("", constants[source], conversions) if conversions else constants[source]


class Tensorial(NamedTuple):
    """An argument that is made anew in each step."""

    field: str
    constant: Any
    conversions: list
