# SPDX-License-Identifier: Apache-2.0
"""The tensors of one step: laid out as asked, given to the subject, looked at afterwards."""

from __future__ import annotations

from typing import Any, Optional

from lossgate.worker.conversion import Surroundings, is_valid
from lossgate.worker.frames import bits
from lossgate.worker.layout import expanded, laid_out
from lossgate.worker.plan import FieldPlan, StepPlan, Tensorial
from lossgate.worker.pytorch import torch
from lossgate.worker.trouble import StrayGradient


class Inputs:
    """The fields of one step: leaves that receive gradients, and what the subject is given. With a row, all sequences
    are as that one is: another batch of the same shape, which counts as much only where all count alike."""

    def __init__(self, plan: StepPlan, data: memoryview, device: Any, row: Optional[int] = None) -> None:
        self.plan = plan
        self.device = device
        if plan.packed:
            work, pristine = bytearray(data), data
        else:
            work = bytearray(plan.size)
            for field in plan.fields:
                work[field.at:field.at + field.size] = data[field.start:field.start + field.size]
            pristine = bytes(work)
        self._work, self._pristine = work, pristine
        moved = plan.layout != "contiguous"
        self._elsewhere = device is not None or moved
        self.leaves: dict[str, torch.Tensor] = {}
        self._stray: dict[str, tuple[int, float]] = {}  # gradients at positions that a shift added
        self.given: dict[str, torch.Tensor] = {}
        for field, place in zip(plan.fields, plan.places):
            name, dtype, shape, count, _, size, at, _, mask_bits, by_sequence = field
            if mask_bits and not bytes(pristine[at:at + size]).strip(b"\0\1"):
                dtype = torch.bool
            # resize_ gives the shape without making a view: each field has a version of its own.
            tensor = torch.frombuffer(work, dtype=dtype, count=count, offset=at).resize_(shape) if count else \
                torch.empty(shape, dtype=dtype)
            if device is not None:
                tensor = tensor.to(device)
            if row is not None and by_sequence:
                tensor = tensor[row:row + 1].repeat(shape[0], *(1 for _ in shape[1:]))
            if name in plan.asked:
                tensor.requires_grad_()
                self.leaves[name] = tensor
                # A trainer's log-probs are no leaves: writing into them works there, so it does here.
                tensor = laid_out(self._shifted(name, tensor), place)
            else:
                tensor = self._shifted(name, tensor)
            if moved and name not in self.leaves:
                shared = self._shared(field, tensor) if plan.mixed else None
                tensor = laid_out(tensor, place) if shared is None else shared
            self.given[name] = tensor

    def _shifted(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """From the leaf, which gets the gradient of its own positions; that of the one behind them is looked at."""
        shift = self.plan.shifts.get(name)
        if shift is None:
            return tensor
        tensor = shift(tensor)
        if tensor.requires_grad:
            tensor.register_hook(lambda gradient: self._note_stray(name, shift.stray(gradient)))
        return tensor

    def _note_stray(self, name: str, stray: Optional[tuple[int, float]]) -> None:
        if stray is not None:
            self._stray.setdefault(name, stray)

    def check_stray(self) -> None:
        for name, (sequence, slope) in self._stray.items():
            raise StrayGradient(name, f"the gradient of {name!r} is {slope:.6g} in sequence {sequence} at "
                                f"{self.plan.shifts[name].left_out()}, before it flattens, rolls or counts anything")

    def own(self, name: str) -> torch.Tensor:
        """What the subject is given of a field, at the positions that the field has."""
        shift = self.plan.shifts.get(name)
        return self.given[name] if shift is None else shift.own(self.given[name])

    def _shared(self, field: FieldPlan, tensor: torch.Tensor) -> Optional[torch.Tensor]:
        """A field on memory of which there is less, as callers make it: of log-probs that were detached for old ones,
        and of one number for each row."""
        for like in self.plan.fields:
            if like.name in self.leaves and (like.dtype, like.shape) == (field.dtype, field.shape) \
                    and self.given[like.name].shape == tensor.shape and self._data(like) == self._data(field):
                return self.given[like.name].detach()
        return expanded(tensor)

    def _data(self, field: FieldPlan) -> bytes:
        return self._pristine[field.at:field.at + field.size]

    def mutated(self) -> list[str]:
        """The fields whose bits are no longer those of the request."""
        found = []
        quiet = not self._elsewhere and self._work == self._pristine
        for name, _, shape, _, _, size, at, *_ in self.plan.fields:
            tensor, shift = self.given[name], self.plan.shifts.get(name)
            if shift is not None:
                if tensor.shape != shift.longer(shape) or not shift.kept(tensor):
                    found.append(name)
                    continue
                tensor = shift.own(tensor)
            if tensor.shape != shape:
                found.append(name)
            elif name in self.leaves or shift is not None or not quiet:
                if bits(tensor) != self._pristine[at:at + size]:
                    found.append(name)
        return found

    def unfrozen(self) -> list[str]:
        """Of which fields the function had a gradient made that nobody asked for: they are the caller's tensors."""
        return [f"{name}.requires_grad is True" for name, tensor in self.given.items()
                if tensor.requires_grad and name not in self.leaves]

    def valid(self) -> torch.Tensor:
        """Which positions count; all of them where nothing says so."""
        if self.plan.valid_field is None:
            first = self.own(next((name for name in self.given if name in self.plan.by_sequence), next(iter(self.given))))
            return torch.ones(first.shape, dtype=torch.bool, device=first.device)
        return is_valid(self.own(self.plan.valid_field))

    def fullest_row(self) -> Optional[int]:
        """The last of the sequences in which most counts; none where there is no sequence."""
        valid = self.valid()
        if valid.dim() == 0 or valid.shape[0] == 0:
            return None
        counts = valid.reshape(valid.shape[0], -1).sum(1).tolist()
        return max(range(len(counts)), key=lambda row: (counts[row], row))

    def _argument(self, argument: Any) -> Any:
        if type(argument) is not Tensorial:
            return argument
        value = self.given[argument.field] if argument.field else argument.constant
        if argument.conversions:
            numbers = argument.field and value.is_floating_point()  # of a wide field they have a dtype of their own
            around = Surroundings(value.dtype if numbers else self.plan.compute, self.device, self.valid)
            for conversion in argument.conversions:
                value = conversion(value, around)
        return value

    def call(self) -> Any:
        """What the subject returns; of terms and of outputs, the loss that is made of them."""
        result = self.called()
        if self.plan.weighing is not None:
            return self.plan.weighing(result, self.valid(), self.own)
        return result if self.plan.reduction is None else self.plan.reduction(result, self.valid())

    def called(self) -> Any:
        """What the subject returns, as it is."""
        plan = self.plan
        keywords = dict(plan.constants)
        for name, field in plan.plain_keywords:
            keywords[name] = self.given[field]
        for name, argument in plan.keywords:
            keywords[name] = self._argument(argument)
        if plan.positional:
            return plan.call(*[self._argument(argument) for argument in plan.positional], **keywords)
        return plan.call(**keywords)
