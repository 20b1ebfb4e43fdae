# SPDX-License-Identifier: Apache-2.0
"""The operations of a forward pass, and the one in which a non-finite number was born."""

from __future__ import annotations

import sys
from typing import Any, Optional

from lossgate.worker.elements import aligned, bad_elements, number_text
from lossgate.worker.operation import Birth, Operation, tensors_in
from lossgate.worker.place import place_here
from lossgate.worker.pytorch import TorchDispatchMode, torch

SYMBOLS = {"mul": "x", "div": "/", "true_divide": "/", "add": "+", "sub": "-"}
# Operations that only carry values on: an operand is named after what stands before them.
CARRIERS = {"view", "to_copy", "expand", "unsqueeze", "squeeze", "clone", "slice", "select", "transpose", "t",
            "permute", "unsafe_view", "detach", "alias", "lift_fresh"}
POINTWISE = {"add", "sub", "mul", "div", "where", "pow", "clamp", "minimum", "maximum", "masked_fill", "xlogy",
             "lerp", "addcmul", "addcdiv", "logaddexp", "rsub"}
ROWWISE = {"softmax", "log_softmax", "logsumexp", "cumsum", "logcumsumexp", "cumprod"}


def place_key(tensor: torch.Tensor) -> tuple:
    return (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tuple(tensor.shape), tensor.stride(),
            tensor.dtype)


class Tracer(TorchDispatchMode):
    """Writes down every operation below autograd, with its values."""

    def __init__(self, names: dict) -> None:
        super().__init__()
        self.names = names  # of tensors that come from outside
        self.producers: dict = {}
        self.in_storage: dict = {}
        self.count = 0

    def __enter__(self) -> Any:
        # torch has its compiler leave alone what a mode does, and imports it for that, which takes seconds: where nobody
        # has imported it, nothing is compiled. The attribute is where it keeps the function that is left alone.
        written = getattr(Tracer.__torch_dispatch__, "__wrapped__", Tracer.__torch_dispatch__)
        vars(written).pop("__dynamo_disable", None)
        if "torch._dynamo" not in sys.modules:
            vars(written)["__dynamo_disable"] = written
        return super().__enter__()

    def __torch_dispatch__(self, function: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        arguments = (args, kwargs or {})
        read = [place_key(tensor) for tensor in tensors_in(arguments)]
        operation = Operation(function, arguments, [self.producers.get(key) or self.names.get(key) for key in read],
                              place_here())
        result = function(*args, **(kwargs or {}))
        writes = function._schema.is_mutable
        operation.kept = result
        for tensor in tensors_in(result):
            key = place_key(tensor)
            if not writes and key in read and operation.name in CARRIERS:
                continue  # another name for the same elements
            operation.results.append(tensor.detach().clone())
            operation.keys.append(key)
            concerned = {key}
            if writes:  # whoever looks at this memory sees the change
                concerned |= self.in_storage.get(key[0], set())
                operation.before = {other: self.producers.get(other) for other in concerned}
            for other in concerned:
                self.producers[other] = (operation, len(operation.results) - 1)
            self.in_storage.setdefault(key[0], set()).add(key)
        return result

    def origin(self, source: Any, key: Optional[tuple], at: int) -> Optional[Birth]:
        """Where the non-finite element came into being; None where it came from outside."""
        seen: set = set()
        stack: list = []  # (birth, if it is made of sentinels; the guilty operands not looked into yet)
        waiting: Any = (source, key, at)
        while waiting or stack:
            if waiting:
                entered = self._enter(*waiting, seen)
                waiting = None
                if isinstance(entered, Birth):
                    return entered
                if entered is not None:
                    stack.append(entered)
                continue
            birth, made_of_sentinels, guilty = stack[-1]
            if guilty:
                index, element = guilty.pop(0)
                waiting = (birth.operation.sources[index], None, element)
                continue
            stack.pop()
            if made_of_sentinels:
                return birth
        return None

    @staticmethod
    def _enter(source: Any, key: Optional[tuple], at: int, seen: set) -> Any:
        """A birth, or where to go on looking: (this operation, whether sentinels became NaN here, operands)."""
        while isinstance(source, tuple):
            operation, which = source
            value = operation.results[which].reshape(-1)
            if operation.before is not None and key is not None and key != operation.keys[which]:
                # Written through another view: this one's element may be older.
                elements = bad_elements(operation.results[which])
                if not len(elements):
                    source = operation.before.get(key)
                    continue
                at = int(elements[0])
            if (id(operation), which, at) in seen or at >= value.numel() or bool(torch.isfinite(value[at])):
                return None
            seen.add((id(operation), which, at))
            birth = Birth(operation, which, at)
            guilty = operation.responsible(which, at)
            if not guilty:
                return None if operation.makes_sentinels() else birth
            was_nan = any(bool(operation.operands[index].reshape(-1)[element].isnan()) for index, element in guilty)
            return birth, bool(value[at].isnan()) and not was_nan, guilty
        return None

    def passed_on(self, source: Any, at: int) -> Optional[Birth]:
        """The first operation that a non-finite input went through."""
        last = None
        while isinstance(source, tuple):
            operation, which = source
            last = Birth(operation, which, at)
            guilty = operation.responsible(which, at)
            if not guilty:
                break
            source, at = operation.sources[guilty[0][0]], guilty[0][1]
        return last

    def label(self, source: Any) -> str:
        while isinstance(source, tuple) and source[0].name in CARRIERS and source[0].sources:
            source = source[0].sources[0]
        if isinstance(source, tuple):
            return source[0].name
        return source or ""

    def operand_text(self, birth: Birth) -> str:
        """The operation at its bad element: `0 (mask) x inf (exp) = nan`."""
        operation, which, at = birth
        result = operation.results[which]
        texts = []
        operands = iter(range(len(operation.operands)))
        flat = [*operation.arguments[0], *operation.arguments[1].values()]
        for argument in flat:
            if isinstance(argument, torch.Tensor):
                texts.append(self._element(operation, next(operands), result, at))
            elif isinstance(argument, (list, tuple)) and any(True for _ in tensors_in(argument)):
                texts += [self._element(operation, next(operands), result, at) for _ in tensors_in(argument)]
            elif isinstance(argument, (int, float)) and not isinstance(argument, bool) and operation.name in POINTWISE:
                texts.append(number_text(argument))
        outcome = number_text(result.reshape(-1)[at])
        symbol = SYMBOLS.get(operation.name)
        if symbol and len(texts) >= 2:
            return f"{texts[0]} {symbol} {texts[1]} = {outcome}"
        return f"{operation.name}({', '.join(texts[:3])}) = {outcome}"

    def _element(self, operation: Operation, index: int, result: torch.Tensor, at: int) -> str:
        operand = operation.operands[index]
        name = self.label(operation.sources[index])
        name = f" ({name})" if name else ""
        near = aligned(at, tuple(result.shape), operand)
        same = near is not None and (operand.shape == result.shape or operation.name in POINTWISE)
        if same and operation.name not in ROWWISE:
            return number_text(operand.reshape(-1)[near]) + name
        values = operand.detach().reshape(-1)
        if operation.name in ROWWISE and same and operand.dim():
            values = operand.reshape(-1, operand.shape[-1])[near // operand.shape[-1]]
        if values.numel() == 0:
            return "no element" + name
        if not values.dtype.is_floating_point:
            return f"{values.numel()} values{name}"
        shown = [number_text(value) for value in values[:3].tolist()]
        if values.numel() > 3:
            least, most = number_text(values.min()), number_text(values.max())
            shown = [f"{values.numel()} values" + (f" of {least}" if least == most else f" from {least} to {most}")]
        return ", ".join(shown) + name
