# SPDX-License-Identifier: Apache-2.0
"""Which field, option or fact a parameter stands for, by its name."""

from __future__ import annotations

import inspect
import json
from typing import Any, Iterator, Optional

from lossgate.worker.aliases import ALIASES, SUMMARIES, SYMMETRIC, WEAK, plain_name
from lossgate.worker.conversion import CONVERSIONS
from lossgate.worker.shift import SHIFTED, is_shifted, shift_of
from lossgate.worker.trouble import Trouble

FACTS = ("total_tokens", "total_sequences", "total_rows", "rank_tokens", "rank_sequences", "rank_rows", "rank",
         "world", "micro_batch", "micro_batches")


REQUIRED = inspect.Parameter.empty  # the default of a parameter that has none


def _guards_a_divisor(plain: str, others: set[str], default: Any) -> bool:
    """A bare epsilon is no clip distance where it is tiny, or stands beside one that says so."""
    if plain not in ("eps", "epsilon"):
        return False
    distances = (SYMMETRIC["clip_low"] | ALIASES["clip_low"] | ALIASES["value_clip"]) - {"eps", "epsilon"}
    tiny = isinstance(default, float) and abs(default) < 1e-3
    return tiny or not distances.isdisjoint(others)


class Loss:
    """What hello says of the loss."""

    def __init__(self, metadata: dict) -> None:
        self.id = metadata.get("loss", "")
        self.fields = {field["name"]: field for field in json.loads(metadata.get("fields", "[]"))}
        self.options = {option["name"]: option for option in json.loads(metadata.get("options", "[]"))}
        outputs = json.loads(metadata.get("outputs", "[]"))
        self.outputs = [output["name"] for output in outputs]
        of_fields = {axis for field in self.fields.values() for axis in field["axes"]}
        of_outputs = dict.fromkeys(axis for output in outputs for axis in output["axes"])
        self.facts = (*FACTS, *(f"extent_{axis}" for axis in of_outputs if axis not in of_fields))
        self.reductions = json.loads(metadata.get("reductions", "null"))
        self.returns = metadata.get("returns", "loss")
        if self.returns not in ("loss", "per_token", "outputs"):
            raise Trouble(f"what a function returns is its loss, per_token or outputs, not {self.returns!r}")
        self.weights = {name: f"{name}_weight" for name in self.outputs} if self.returns == "outputs" else {}
        for weight in self.weights.values():
            if self.fields.get(weight, {}).get("role") != "weight":
                raise Trouble(f"{self.id} has no {weight}: of a loss whose outputs are weighed a function returns outputs")
        self.differentiable = [name for name, field in self.fields.items() if field["role"] == "differentiable"]

    def sources(self) -> Iterator[tuple[str, str]]:
        """Every source with its name, in the order of precedence."""
        yield from ((name, f"field:{name}") for name in self.fields)
        yield from ((name, f"option:{name}") for name in self.options)
        if self.reductions != []:
            yield "reduction", "reduction"
        yield from ((name, f"fact:{name}") for name in self.facts)

    def source_of(self, name: str, others: set[str], default: Any = REQUIRED) -> Optional[str]:
        """Where the parameter `name` gets its argument from; `others` are the plain names beside it."""
        plain, required = plain_name(name), default is REQUIRED
        sources = list(self.sources())
        for target, source in sources:
            if plain == plain_name(target):
                return source
        # `values` are the critic's of before where the new ones have a name of their own.
        if plain == "values" and "old_value" in self.fields and others & {"vpred", "vpreds", "valuepreds"}:
            return "field:old_value"
        for target, source in sources:
            if plain in ALIASES.get(target, ()) and not (target == "value_clip" and _guards_a_divisor(plain, others, default)):
                return source
            for (field, word), names in SUMMARIES.items():
                if source == f"field:{field}" and plain in names:
                    return f"{source} as {word}"
        for low, names in SYMMETRIC.items():
            if plain in names and low in self.options and not _guards_a_divisor(plain, others, default):
                both = any(other in ALIASES[low] | {plain_name(low)} for other in others)
                return None if both and not required else f"option:{low}"
        if required:
            for target, source in sources:
                if plain in WEAK.get(target, ()):
                    return source
        return None

    def check(self, parameter: str, source: str) -> None:
        kind, _, name = source.split(" as ")[0].partition(":")
        known = {"field": self.fields, "option": self.options, "fact": self.facts}
        if kind in known and name not in known[kind]:
            raise Trouble(f"arguments: {parameter}: {self.id} has no {kind} {name!r}; it has "
                          f"{', '.join(known[kind]) or 'none'}")
        if kind == "json":
            try:
                json.loads(source[len("json:"):])
            except ValueError:
                raise Trouble(f"arguments: {parameter}: {source[5:]!r} is no JSON; a word needs quotes: "
                              'json:"token-mean"') from None
        elif kind not in known and source.split(" as ")[0] not in ("reduction", "default"):
            raise Trouble(f"arguments: {parameter}: {source!r} is no source; write field:NAME, option:NAME, "
                          "reduction, fact:NAME, json:VALUE or default")
        if kind != "json":
            for word in source.split(" as ")[1:]:
                if word.strip() not in (*CONVERSIONS, SHIFTED):
                    raise Trouble(f"arguments: {parameter}: unknown conversion 'as {word}'; there are "
                                  f"{', '.join((*CONVERSIONS, SHIFTED))}")
            if is_shifted(source):
                self._check_shifted(parameter, source)
            if " as size" in source and self.fields.get(name, {}).get("role") != "group":
                raise Trouble(f"arguments: {parameter}: 'as size' is of a field that numbers groups, which {name!r} does not")
            if " as lengths" in source and self.fields.get(name, {}).get("role") not in ("mask", "label"):
                raise Trouble(f"arguments: {parameter}: 'as lengths' is of a mask or a label, which {name!r} is not")
            for word in ("rows", "expanded"):
                if f" as {word}" in source and not any(f["role"] in ("mask", "label") for f in self.fields.values()):
                    raise Trouble(f"arguments: {parameter}: 'as {word}' needs a mask or a label, which {self.id} has not")

    def _check_shifted(self, parameter: str, source: str) -> None:
        base, first, *others = source.split(" as ")
        if first.strip() != SHIFTED or is_shifted(" as ".join([base, *others])):
            raise Trouble(f"arguments: {parameter}: 'as shifted' comes first, and once: {base} as shifted as ...")
        field = self.fields[base[6:]] if base.startswith("field:") else None
        if field is None or shift_of(field) is None:
            raise Trouble(f"arguments: {parameter}: 'as shifted' is of a field along sequences and tokens, which {base!r} is not")
        for word in ("rows", "expanded"):  # what a sequence has once lies nowhere
            if word in [other.strip() for other in others]:
                raise Trouble(f"arguments: {parameter}: 'as {word}' goes without 'as shifted'; write {base} as {word}")
