# SPDX-License-Identifier: Apache-2.0
"""Which source each parameter gets."""

from __future__ import annotations

import inspect
import json
import math
import reprlib
from typing import Any, Callable

from lossgate.worker.aliases import SYMMETRIC, plain_name
from lossgate.worker.conversion import CONVERSIONS
from lossgate.worker.matching import Loss
from lossgate.worker.pytorch import torch
from lossgate.worker.remembering import remember
from lossgate.worker.shift import SHIFTED, Shift, is_shifted, shift_of
from lossgate.worker.subject import Subject
from lossgate.worker.trouble import Trouble, Unmatched


class Binding:
    """Which source each parameter gets, and the arguments of a step made from that."""

    def __init__(self, subject: Subject, loss: Loss, overrides: dict, device: Any = None) -> None:
        self.subject = subject
        self.loss = loss
        self.positional: list[tuple[str, str]] = []
        self.keywords: list[tuple[str, str]] = []
        self.construction: list[tuple[str, str]] = []
        self._lacking: list[str] = []  # parameters that have no source, and no default
        self._instances: dict = {}
        self._device = device or "cpu"
        unused = dict(overrides)
        for name, source in overrides.items():
            if not isinstance(source, str):
                raise Trouble(f"arguments: {name}: write a source, such as field:{name}")
            loss.check(name, source)
        everything = subject.constructor + subject.parameters
        names = {plain_name(parameter.name) for parameter in everything}
        for parameter in subject.constructor:
            self._bind(parameter, names, unused, building=True)
        for parameter in subject.parameters:
            self._bind(parameter, names, unused, building=False)
        if self._lacking:
            raise self._unknown(self._lacking[0])
        rest = [parameter for parameter in subject.parameters if parameter.kind is parameter.VAR_KEYWORD]
        if rest:
            self._bind_rest(rest[0].name, unused)
        if unused:
            raise Trouble(f"arguments: {subject.name} has no parameter {next(iter(unused))!r}; it has "
                          f"{', '.join(parameter.name for parameter in everything)}")
        if loss.fields and not any(source.startswith("field:") for _, source in self.positional + self.keywords):
            raise Unmatched(f"no parameter of {subject.name} is a field of {loss.id} ({', '.join(loss.fields)}); say "
                            f"which is which, such as arguments.NAME = \"field:{next(iter(loss.fields))}\"",
                            [], [parameter.name for parameter in everything])
        self.recipes_positional = [self._recipe(*pair) for pair in self.positional]
        self.recipes_keywords = [self._recipe(*pair) for pair in self.keywords]
        self.constants = self._constants()
        self.shifts = self._shifts()
        self.valid_field = next((name for role in ("mask", "label") for name, field in loss.fields.items()
                                 if field["role"] == role), None)

    def _recipe(self, name: str, source: str) -> tuple[str, str, Any, list]:
        """(parameter, kind or source, value, conversions) of one argument."""
        if source == "default":
            return name, "default", next(p.default for p in self.subject.parameters if p.name == name), []
        if source.startswith("json:"):
            return name, "json", json.loads(source[5:]), []
        base, *words = [part.strip() for part in source.split(" as ")]
        conversions = [CONVERSIONS[word] for word in words if word != SHIFTED]  # the field itself is
        return (name, "field", base[6:], conversions) if base.startswith("field:") else (name, base, None, conversions)

    def _shifts(self) -> dict[str, Shift]:
        """Fields that have one position more. Each is one tensor, which a function that writes into it shares."""
        sources = [source for source in self.sources().values() if source.startswith("field:")]
        shifts = {source.split(" as ")[0][6:]: None for source in sources if is_shifted(source)}
        for source in sources:
            if source.split(" as ")[0][6:] in shifts and not is_shifted(source):
                raise Trouble(f"arguments: {source!r} is shifted for another parameter: it is so for all or for none")
        return {name: shift_of(self.loss.fields[name]) for name in shifts}

    def _constants(self) -> list[tuple[str, str, str]]:
        """(source, key of the metadata, kind) of what is no tensor and is passed."""
        result = {}
        for _, source in self.construction + self.positional + self.keywords:
            base = source.split(" as ")[0].strip()
            if base.startswith("option:"):
                result[base] = (base, f"option.{base[7:]}", self.loss.options[base[7:]]["kind"])
            elif base.startswith("fact:"):
                result[base] = (base, base[5:], "integer")
            elif base == "reduction":
                result[base] = (base, base, "choice")
        return list(result.values())

    def _bind(self, parameter: inspect.Parameter, names: set, unused: dict, building: bool) -> None:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return
        required = parameter.default is parameter.empty
        source = unused.pop(parameter.name, None)
        if source is None and parameter.name not in self.subject.bound:
            source = self.loss.source_of(parameter.name, names - {plain_name(parameter.name)}, parameter.default)
            if building and source is not None and not source.startswith("option:"):
                source = None  # a constructor knows the options, not the step
            if source == "reduction" and self._speaks_otherwise(parameter.default):
                source = None
        if source is None or source == "default":
            if required and parameter.name not in self.subject.bound:
                self._lacking.append(parameter.name)
            return
        if building:
            self.construction.append((parameter.name, source))
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            at = [p.name for p in self.subject.parameters].index(parameter.name)
            for skipped in self.subject.parameters[len(self.positional):at]:
                self.positional.append((skipped.name, "default"))  # must be passed to come to this one
            self.positional.append((parameter.name, source))
        else:
            self.keywords.append((parameter.name, source))

    def _speaks_otherwise(self, default: Any) -> bool:
        """A default such as "token-mean" or "batchmean": ours would not be understood."""
        return isinstance(default, str) and self.loss.reductions is not None and default not in self.loss.reductions

    def _bind_rest(self, rest: str, unused: dict) -> None:
        if unused.pop(rest, None) == "default":
            return
        bound = [source for _, source in self.positional + self.keywords + self.construction] + list(unused.values())
        taken = {source.split(" as ")[0] for source in bound}
        given = {name for name, _ in self.positional + self.keywords} | self.subject.bound
        for name, source in self.loss.sources():
            if name in unused or source.startswith("fact:") or source in taken or name in given:
                continue
            self.keywords.append((name, source))
        self.keywords += [(name, unused.pop(name)) for name in list(unused)]

    def _unknown(self, name: str) -> Trouble:
        loss = self.loss
        if name == "self":
            return Trouble(f"{self.subject.name} is a method, and nobody made the object: bring a function that makes "
                           "one and calls it, or a functools.partial that holds it")
        return Unmatched(f"{self.subject.name} wants {name!r}, which is no field, option or fact of {loss.id}: give it "
                         f"a default, or write arguments.{name} = \"field:...\" ({', '.join(loss.fields)}), "
                         f"\"option:...\" ({', '.join(loss.options)}), \"reduction\", \"fact:...\" "
                         f"({', '.join(loss.facts)}) or \"json:...\"; or bring a function of your own "
                         f"that takes the tensors and makes {name!r} of them", self.sources(), self._lacking)

    def sources(self) -> dict[str, str]:
        pairs = self.construction + self.positional + self.keywords
        return {name: source for name, source in pairs if source != "default"}

    def reaching(self, kind: str) -> list[str]:
        found = [source.split(" as ")[0][len(kind):] for source in self.sources().values() if source.startswith(kind)]
        return list(dict.fromkeys(found))

    def tied(self) -> dict[str, str]:
        """Options that one parameter stands for together with another."""
        tied = {}
        for low, names in SYMMETRIC.items():
            one = any(plain_name(name) in names and source.split(" as ")[0] == f"option:{low}"
                      for name, source in self.sources().items())
            high = low.replace("low", "high")
            if one and high in self.loss.options and high not in self.reaching("option:"):
                tied[high] = low
        return tied

    def defaults(self) -> dict[str, Any]:
        """What parameters that stand for options are where nobody gives them, as far as JSON has it."""
        own = {parameter.name: parameter.default for parameter in self.subject.constructor + self.subject.parameters}
        plain = lambda value: value is None or isinstance(value, (bool, int, str)) or \
            isinstance(value, float) and math.isfinite(value)
        return {source.split(" as ")[0][7:]: own[name] for name, source in self.sources().items()
                if source.startswith("option:") and plain(own.get(name, inspect.Parameter.empty))}

    def omissible(self) -> list[str]:
        """Parameters of fields that stand at None by themselves: callers may leave them out."""
        own = {parameter.name: parameter.default for parameter in self.subject.parameters}
        return [name for name, source in self.sources().items()
                if source.startswith("field:") and own.get(name, inspect.Parameter.empty) is None]

    def left(self) -> dict[str, str]:
        """Parameters that nothing reaches, and their defaults in a few letters."""
        reached = set(self.sources()) | self.subject.bound
        return {parameter.name: " ".join(reprlib.repr(parameter.default).split())
                for parameter in self.subject.constructor + self.subject.parameters
                if parameter.default is not parameter.empty and parameter.name not in reached}

    def callee(self, constants: dict) -> Callable:
        """The function; where the subject is a class, its instance for these options, where its inputs are."""
        if not self.subject.constructed:
            return self.subject.call
        key = repr([constants.get(source) for _, source in self.construction])
        if key not in self._instances:
            given = {name: constant_of(source, constants) for name, source in self.construction
                     if source != "default"}
            made = self.subject.target(**given)
            remember(self._instances, key, made.to(self._device) if isinstance(made, torch.nn.Module) else made)
        return self._instances[key]


def constant_of(source: str, constants: dict) -> Any:
    return json.loads(source[5:]) if source.startswith("json:") else constants[source]
