# SPDX-License-Identifier: Apache-2.0
"""The gradients of a backward pass, and the node in which a non-finite one was born."""

from __future__ import annotations

import collections
import functools
import re
from typing import Any, NamedTuple, Optional

from lossgate.worker.elements import aligned, bad_elements, extent_text, number_text
from lossgate.worker.forward import Tracer, place_key
from lossgate.worker.pytorch import torch

# Node, outgoing gradient -> how its factor is written; names are those of the node's saved tensors.
FACTORS = {
    "Exp": ("x", "result", "exp"), "Expm1": ("x", "result", "expm1"), "Exp2": ("x", "result", "exp2"),
    "Log": ("/", "self", ""), "Log2": ("/", "self", ""), "Log10": ("/", "self", ""),
    "Log1P": ("/ 1 +", "self", ""), "Sqrt": ("/ 2 x", "result", "sqrt"),
    "Rsqrt": ("x -1/2 x", "result", "rsqrt cubed"), "Reciprocal": ("x -", "result", "reciprocal squared"),
    "Tanh": ("x 1 -", "result", "tanh squared"), "Pow": ("through a power of", "self", ""),
}


class Passage(NamedTuple):
    """A node as the backward went through it."""

    order: int
    incoming: tuple
    outgoing: tuple


class BackwardTrace:
    """The autograd graph of one loss, with the gradients that went along its edges."""

    def __init__(self, root: Any) -> None:
        self.passages: dict = {}
        self.above: dict = collections.defaultdict(list)  # node -> (node nearer to the loss, outgoing, incoming)
        self._handles = []
        waiting, seen = [root], {root}
        while waiting:
            node = waiting.pop()
            self._handles.append(node.register_hook(functools.partial(self._passed, node)))
            for outgoing, (following, incoming) in enumerate(node.next_functions):
                if following is None:
                    continue
                self.above[following].append((node, outgoing, incoming))
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)

    def _passed(self, node: Any, outgoing: tuple, incoming: tuple) -> None:
        keep = lambda tensors: tuple(None if tensor is None else tensor.detach().clone() for tensor in tensors)
        self.passages[node] = Passage(len(self.passages), keep(incoming), keep(outgoing))

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()

    def births(self, node: Any, incoming: int, at: int) -> list[tuple]:
        """(order, node, outgoing, element) of the nodes in which a bad incoming gradient of `node` was born."""
        found, seen, waiting = [], set(), [(node, incoming, at)]
        while waiting:
            lower, number, at = waiting.pop()
            received = self.passages[lower].incoming[number]
            for upper, outgoing, lands in self.above[lower]:
                passage = self.passages.get(upper)
                if lands != number or passage is None or passage.outgoing[outgoing] is None:
                    continue
                element = self._same_element(passage.outgoing[outgoing], received, at)
                if element is None or (upper, outgoing) in seen:
                    continue
                seen.add((upper, outgoing))
                guilty = self._responsible(upper, passage, outgoing, element)
                if not guilty:
                    found.append((passage.order, upper, outgoing, element))
                waiting += [(upper, *pair) for pair in guilty]
        return found

    @staticmethod
    def _same_element(gradient: torch.Tensor, received: Any, at: int) -> Optional[int]:
        """The element of an outgoing gradient that goes into a received one, which may have been summed."""
        if received is None or gradient.shape == received.shape:
            flat = gradient.reshape(-1)
            return at if at < flat.numel() and not bool(torch.isfinite(flat[at])) else None
        for element in bad_elements(gradient).tolist()[:4096]:
            if aligned(element, tuple(gradient.shape), received) == at:
                return element
        return None

    @staticmethod
    def _responsible(node: Any, passage: Passage, outgoing: int, at: int) -> list[tuple[int, int]]:
        """The bad incoming elements without which the outgoing one would be finite."""
        bad = [(number, element) for number, tensor in enumerate(passage.incoming) if tensor is not None
               for element in bad_elements(tensor).tolist()[:4096]]
        if not bad:
            return []

        def spoils(kept: Optional[tuple]) -> bool:
            given = []
            for number, tensor in enumerate(passage.incoming):
                if tensor is None:
                    raise ValueError("an undefined gradient cannot be passed")
                whole = torch.where(torch.isfinite(tensor), tensor, torch.ones_like(tensor)).contiguous()
                if kept is not None and kept[0] == number:
                    whole.view(-1)[kept[1]] = tensor.reshape(-1)[kept[1]]
                given.append(whole)
            result = (node.apply if hasattr(node, "apply") else node)(*given)
            result = result if isinstance(result, tuple) else (result,)
            return not bool(torch.isfinite(result[outgoing].detach().reshape(-1)[at]))

        try:
            if spoils(None):
                return []
            same = [pair for pair in bad if passage.incoming[pair[0]].shape == passage.outgoing[outgoing].shape
                    and pair[1] == at]
            found = [pair for pair in (same or bad[:64]) if spoils(pair)]
            return found or bad[:1]
        except Exception:  # a node that cannot be asked twice
            return bad[:1]


def backward_text(node: Any, passage: Passage, outgoing: int, at: int, tracer: Tracer) -> tuple[str, str]:
    """The name of the operation, and its backward at the bad element."""
    name = re.sub(r"(Backward)?\d*$", "", node.name().split("::")[-1])
    gradient = passage.outgoing[outgoing]
    shape = tuple(gradient.shape)
    incoming = passage.incoming[0]
    upstream = ""
    if incoming is not None:
        near = aligned(at, shape, incoming)
        upstream = f"{number_text(incoming.reshape(-1)[near])} (upstream)" if near is not None else \
            "upstream " + extent_text(incoming)

    def saved(attribute: str) -> Any:
        try:
            value = getattr(node, "_saved_" + attribute)
        except Exception:
            return None
        return value

    def at_element(value: Any, what: str = "") -> str:
        if not isinstance(value, torch.Tensor):
            return number_text(value)
        label = what or tracer.label(tracer.producers.get(place_key(value)) or tracer.names.get(place_key(value)))
        near = aligned(at, shape, value)
        text = number_text(value.detach().reshape(-1)[near]) if near is not None else extent_text(value.detach())
        return text + (f" ({label})" if label else "")

    outcome = f" = {number_text(gradient.reshape(-1)[at])}"
    if name in FACTORS and saved(FACTORS[name][1]) is not None:
        symbol, attribute, what = FACTORS[name]
        return name.lower(), f"{upstream} {symbol} {at_element(saved(attribute), what)}{outcome}"
    if name == "Mul" and saved("self" if outgoing else "other") is not None:
        return "mul", f"{upstream} x {at_element(saved('self' if outgoing else 'other'))}{outcome}"
    if name == "Div" and saved("other") is not None:
        if outgoing == 0:
            return "div", f"{upstream} / {at_element(saved('other'))}{outcome}"
        if saved("self") is not None:
            return "div", f"{upstream} x -{at_element(saved('self'))} / {at_element(saved('other'))} squared{outcome}"
    operands = []
    for attribute in sorted(entry[len("_saved_"):] for entry in dir(node) if entry.startswith("_saved_")):
        value = saved(attribute)
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point or isinstance(value, float):
            operands.append(f"{attribute} {at_element(value)}")
    label = {"LogSoftmax": "log_softmax"}.get(name, name.lower())
    return label, f"{upstream} through {label}" + (f" with {', '.join(operands[:3])}" if operands else "") + outcome
