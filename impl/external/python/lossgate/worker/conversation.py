# SPDX-License-Identifier: Apache-2.0
"""Requests and their answers; PROTOCOL.md describes both."""

from __future__ import annotations

import gc
import json
import os
import platform
import re
import sys
import traceback
from typing import Any, NamedTuple, Optional, Sequence

from lossgate.worker.binding import Binding
from lossgate.worker.frames import Encoder, header_end, parse_header, read_json
from lossgate.worker.guilty import find_guilt
from lossgate.worker.history import answer
from lossgate.worker.inputs import Inputs
from lossgate.worker.loading import load
from lossgate.worker.matching import Loss
from lossgate.worker.place import foreign, own
from lossgate.worker.plan import FieldsPlan, StepPlan
from lossgate.worker.pytorch import check_torch, torch, usable_device, works
from lossgate.worker.remembering import remember
from lossgate.worker.result import finite, loss_of, place_of_loss, returned, sendable
from lossgate.worker.settings import Settings
from lossgate.worker.subject import Subject, source_line
from lossgate.worker.trouble import BadResult, StrayGradient, Trouble, Unmatched, one_line

PROTOCOL = 1

_IDENTITY = re.compile(rb'"id":"([^"\\]*)"')
_METADATA = re.compile(rb'\{"__metadata__":(\{"[^{}]*"\})([,}])')


class Bound(NamedTuple):
    """A subject that a hello has named, as the loss that it is asked for."""

    name: str
    binding: Binding
    loss: Loss
    device: Any


class Worker:
    """Answers requests."""

    def __init__(self, entry: Any = None, contained: bool = False) -> None:
        self._entry = entry  # a live callable, or the text of an entry
        self._contained = contained  # own process: even an interrupt raised inside the subject is an answer
        self._encoder = Encoder()
        self._plans: dict = {}
        self._fields: dict = {}
        self._subjects: dict[str, Bound] = {}
        self._process = os.getpid()
        self._folder = os.getcwd()  # where paths begin, wherever what is brought goes

    def answer(self, frame: bytes) -> bytes:
        identity = None
        more: tuple = ()
        try:
            end = header_end(frame)
            header = frame[8:end]
            key = header
            match = _IDENTITY.search(header)
            if match is not None:
                identity = match.group(1).decode()
                key = header[:match.start()] + header[match.end():]
            bound, plan, size = self._plans.get(key, (None, None, 0))
            if plan is None or len(frame) - end != size:
                size = len(frame) - end
                metadata, table = self._read(header, size)
                identity = metadata.get("id")
                operation = metadata.get("op")
                if operation == "hello":
                    return self._hello(metadata)
                if operation != "step":
                    raise Trouble(f"unknown op {operation!r}; protocol {PROTOCOL} has hello and step")
                bound = self._subjects.get(metadata.get("subject", ""))
                if bound is None:
                    raise Trouble("a step came before a successful hello")
                try:
                    plan = StepPlan(metadata, self._laid_out(bound, table, size), bound.binding)
                except Trouble:
                    raise
                except Exception as error:  # the constructor of a subject that is a class
                    return self._raised(bound, identity, error)
                remember(self._plans, key, (bound, plan, size))
            return self._step(bound, plan, identity, memoryview(frame)[end:])
        except Trouble as error:
            message = one_line(error)
            if isinstance(error, Unmatched):
                more = ("taken", json.dumps(error.taken)), ("lacking", json.dumps(error.lacking))
        except Exception as error:  # nothing may end the conversation without a word
            message = f"the worker itself failed: {type(error).__name__}: {one_line(error)}"
        return self._encoder.frame("trouble", identity, (("message", message), *more), [])

    @staticmethod
    def _read(header: bytes, size: int) -> tuple[dict, bytes]:
        """Metadata, and the header without them: tensors often lie as they did in an earlier step."""
        match = _METADATA.match(header)
        if match is not None:
            try:
                metadata = read_json(match.group(1).decode("utf-8"))
                if b'"__metadata__"' not in header[match.end():]:
                    return metadata, b"{" + header[match.end():] if match.group(2) == b"," else b"{}"
            except ValueError:  # a brace inside a string
                pass
        return parse_header(header, size)[0], header

    def _laid_out(self, bound: Bound, table: bytes, size: int) -> FieldsPlan:
        key = (bound.name, table, size)
        return self._fields.get(key) or remember(self._fields, key, FieldsPlan(parse_header(table, size)[1], bound.loss))

    def _hello(self, metadata: dict) -> bytes:
        self._plans.clear()
        self._fields.clear()
        told = metadata.get("subject", "")
        self._subjects.pop(told, None)
        if metadata.get("protocol") != str(PROTOCOL):
            raise Trouble(f"protocol {metadata.get('protocol')!r} is not spoken here; this worker speaks {PROTOCOL}")
        check_torch()
        torch.set_num_threads(max(1, int(metadata.get("threads", "1"))))
        device = None if metadata.get("device", "cpu") == "cpu" else usable_device(metadata["device"])
        paths = [os.path.abspath(os.path.join(self._folder, folder)) for folder in json.loads(metadata.get("path", "[]"))]
        for folder in reversed(paths):
            if folder not in sys.path:
                sys.path.insert(0, folder)
        loss = Loss(metadata)
        entry, versions = self._entry, {}
        if entry is None or isinstance(entry, str):
            entry, name, versions = load(entry or metadata.get("entry", ""), paths)
        else:
            name = getattr(entry, "__name__", type(entry).__name__)
        subject = Subject(entry, name, paths)
        binding = Binding(subject, loss, json.loads(metadata.get("arguments", "{}")), device)
        self._subjects[told] = Bound(told, binding, loss, device)
        text = lambda value: json.dumps(value)
        reply = [("protocol", str(PROTOCOL)),
                 ("versions", text({"python": platform.python_version(), "torch": torch.__version__, **versions})),
                 ("file", subject.shown(subject.file)), ("line", str(subject.line)), ("code", subject.code),
                 ("arguments", text(binding.sources())), ("options", text(binding.reaching("option:"))),
                 ("reduction", str(int(loss.returns == "per_token" or
                                       any(source == "reduction" for source in binding.sources().values())))),
                 ("facts", text(binding.reaching("fact:")))]
        if binding.tied():
            reply.append(("tied", text(binding.tied())))
        if binding.defaults():
            reply.append(("defaults", text(binding.defaults())))
        if binding.omissible():
            reply.append(("omissible", text(binding.omissible())))
        if binding.left():
            reply.append(("left", text(binding.left())))
        if self._contained:
            gc.collect()
            gc.freeze()  # what was imported stays; looking through it again and again would cost time
        return self._encoder.frame("hello", None, tuple(reply), [])

    def _step(self, bound: Bound, plan: StepPlan, identity: Optional[str], data: memoryview) -> bytes:
        torch.set_grad_enabled(bool(plan.asked) or not plan.differentiable)
        settings = Settings()
        try:
            subject = bound.binding.subject.name
            inputs, loss, holder, gradients, begun_anew = answer(plan, data, bound.device, lambda result: loss_of(
                result, subject, bound.loss.outputs, plan.differentiable, bool(plan.asked)))
            inputs.check_stray()
            tensors = [] if loss is None else [("loss", sendable(loss))]
            if holder is not loss:
                for name in bound.loss.outputs:
                    value = returned(holder, name)
                    if value is not None:
                        tensors.append((name, sendable(value)))
            without = []
            for name, gradient in zip(inputs.leaves, gradients):
                if gradient is None:
                    without.append(name)
                else:
                    tensors.append((f"gradient.{name}", gradient))
            metadata = [("mutated", _names(inputs.mutated())), ("without_gradient", _names(without))]
            if loss is not None and holder is not loss:
                metadata.append(("loss_in", place_of_loss(holder)))
            changed = [*settings.restore(lambda: self._again(bound, plan, data)), *inputs.unfrozen(), *begun_anew]
            if changed:
                metadata.append(("changed_settings", _names(changed)))
            if plan.explain and not all(finite(tensor) for _, tensor in tensors):
                guilt = self._guilt(bound, plan, data)
                if guilt is not None:
                    metadata.append(("guilty", guilt))
            reply = self._encoder.frame("result", identity, tuple(metadata), tensors)
        except BaseException as error:
            self._same_process()
            if isinstance(error, KeyboardInterrupt) and not self._contained:
                raise
            # Whoever catches it goes on under what the call left.
            return self._raised(bound, identity, error, settings.restore(lambda: self._again(bound, plan, data)))
        finally:
            settings.restore()
        self._same_process()
        return reply

    def _again(self, bound: Bound, plan: StepPlan, data: memoryview) -> None:
        """The same call, whatever it raises; made where it is asked for, hardly ever."""
        try:
            Inputs(plan, data, bound.device).call()
        except BaseException as error:
            self._same_process()
            if isinstance(error, KeyboardInterrupt) and not self._contained:
                raise

    @staticmethod
    def _guilt(bound: Bound, plan: StepPlan, data: memoryview) -> Optional[str]:
        subject = bound.binding.subject
        try:
            guilt = find_guilt(Inputs(plan, data, bound.device), bound.loss.outputs, subject.name, plan.upstream)
        except Exception as error:
            print(f"the guilty line was not found: {type(error).__name__}: {error}", file=sys.stderr)
            return None
        if guilt is None:
            return None
        file = subject.shown(guilt.place.file)
        code = source_line(guilt.place.file, guilt.place.line)
        where = f"{os.path.basename(file)}:{guilt.place.line}"
        return json.dumps({"pass": guilt.stage, "file": file, "line": guilt.place.line, "code": code,
                           "operation": guilt.operation, "element": guilt.element,
                           "text": f"{guilt.text} at {where}: {code}"})

    def _same_process(self) -> None:
        if os.getpid() != self._process:  # a child that the subject forked and let return
            os._exit(0)

    def _raised(self, bound: Bound, identity: Optional[str], error: BaseException, changed: Sequence[str] = ()) -> bytes:
        subject = bound.binding.subject
        file, line = subject.file, subject.line
        if not isinstance(error, BadResult):
            frames = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(error.__traceback__)]
            theirs = [frame for frame in frames if not own(frame[0]) and not foreign(frame[0])]
            innermost = [frame for frame in theirs if frame[0] == subject.file]
            if innermost or theirs:
                file, line = (innermost or theirs)[-1]
        metadata = [("type", type(error).__name__), ("message", one_line(error)), ("file", subject.shown(file)),
                    ("line", str(line)), ("code", source_line(file, line))]
        if isinstance(error, StrayGradient):
            metadata.append(("output", error.output))
        if changed:
            metadata.append(("changed_settings", _names(changed)))
        if bound.device is not None and not isinstance(error, BadResult) and not works(bound.device):
            metadata.append(("device_lost", "1"))
        return self._encoder.frame("raised", identity, tuple(metadata), [])


def _names(names: Sequence[str]) -> str:
    return json.dumps(list(names)) if names else "[]"
