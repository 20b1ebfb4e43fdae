# SPDX-License-Identifier: Apache-2.0
"""The line in which the first non-finite number of a step begins."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from lossgate.worker.backward import BackwardTrace, Passage, backward_text
from lossgate.worker.elements import bad_elements, coordinates
from lossgate.worker.forward import Tracer, place_key
from lossgate.worker.inputs import Inputs
from lossgate.worker.operation import Birth
from lossgate.worker.place import Place, place_of_node
from lossgate.worker.pytorch import torch
from lossgate.worker.result import gradients_of, loss_of, returned


class Guilt(NamedTuple):
    stage: str  # forward or backward
    place: Place
    operation: str
    text: str
    element: list[int]  # its coordinates in what the operation made


def _python_node(node: Any) -> bool:
    return hasattr(node, "apply") and isinstance(node, torch.autograd.function.FunctionCtx)


def _guilt_of(stage: str, birth: Birth, tracer: Tracer) -> Guilt:
    shape = tuple(birth.operation.results[birth.which].shape)
    return Guilt(stage, birth.operation.place, birth.operation.name, tracer.operand_text(birth),
                 coordinates(birth.at, shape))


def find_guilt(inputs: Inputs, outputs: list[str], subject: str, upstream: float) -> Optional[Guilt]:
    """Runs the step again with everything written down, and says where its first non-finite number begins."""
    names = {place_key(tensor): name for name, tensor in inputs.given.items() if tensor.numel()}
    tracer = Tracer(names)
    starts = {name: tensor.grad_fn for name, tensor in inputs.given.items() if name in inputs.leaves}
    kept = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    torch.autograd.set_detect_anomaly(True, check_nan=False)  # each node remembers its line
    try:
        with tracer:
            result = inputs.call()
    finally:
        torch.autograd.set_detect_anomaly(*kept)
    loss, holder = loss_of(result, subject, outputs, inputs.plan.differentiable, bool(inputs.leaves))

    def forward(tensor: torch.Tensor, passed_on: bool = True) -> Optional[Guilt]:
        elements = bad_elements(tensor)
        if not len(elements):
            return None
        key, at = place_key(tensor), int(elements[0])
        source = tracer.producers.get(key)
        birth = tracer.origin(source, key, at)
        if birth is None and passed_on:
            birth = tracer.passed_on(source, at)
        if birth is None or birth.operation.place is None:
            return None
        return _guilt_of("forward", birth, tracer)

    if loss is not None:
        # Infinities that were given may make an infinite loss that is right: then a NaN of the backward is guilty.
        infinite = bool(loss.isinf().any())
        guilt = forward(loss, passed_on=not infinite)
        if guilt is None and inputs.leaves and loss.requires_grad:
            guilt = _backward_guilt(inputs, loss, starts, tracer, upstream, nan_alone=infinite)
        guilt = guilt or forward(loss)
        if guilt is not None:
            return guilt
    for name in outputs:
        value = returned(holder, name)
        guilt = forward(value) if value is not None else None
        if guilt is not None:
            return guilt
    return None


def _backward_guilt(inputs: Inputs, loss: Any, starts: dict, tracer: Tracer, upstream: float,
                    nan_alone: bool) -> Optional[Guilt]:
    trace = BackwardTrace(loss.grad_fn)
    try:
        gradients = gradients_of(loss, tuple(inputs.leaves.values()), upstream, inputs.plan.accumulates, keep_graph=True)
    finally:
        trace.close()
    found: list = []
    for name, gradient in zip(inputs.leaves, gradients):
        if gradient is None or starts[name] not in trace.passages:
            continue
        elements = bad_elements(torch.where(gradient.isinf(), 0.0, gradient) if nan_alone else gradient)
        if len(elements):
            at, shift = int(elements[0]), inputs.plan.shifts.get(name)
            at = at if shift is None else shift.index(at, tuple(gradient.shape))
            found += trace.births(starts[name], 0, at)
    for _, node, outgoing, at in sorted(found, key=lambda birth: birth[0]):
        passage = trace.passages[node]
        if _python_node(node):
            guilt = _custom_guilt(node, passage, outgoing, at, tracer)
            if guilt is not None:
                return guilt
        place = place_of_node(node)
        if place is not None:
            operation, text = backward_text(node, passage, outgoing, at, tracer)
            return Guilt("backward", place, operation, text, coordinates(at, tuple(passage.outgoing[outgoing].shape)))
    return None


def _custom_guilt(node: Any, passage: Passage, outgoing: int, at: int, tracer: Tracer) -> Optional[Guilt]:
    """Inside the backward of a torch.autograd.Function of the subject's."""
    inner = Tracer({**tracer.names})
    inner.names.update({place_key(tensor): "upstream" for tensor in passage.incoming if tensor is not None})
    for tensor in getattr(node, "saved_tensors", ()):
        if isinstance(tensor, torch.Tensor):
            key = place_key(tensor)
            label = tracer.label(tracer.producers.get(key) or tracer.names.get(key))
            inner.names[key] = label or "saved"
            if key in tracer.producers and bool(tensor.isnan().any()):  # a gradient that was made ahead, in forward
                inner.producers[key] = tracer.producers[key]
    try:
        with inner:
            result = node.apply(*passage.incoming)
    except Exception:
        return None
    result = result if isinstance(result, tuple) else (result,)
    gradient = result[outgoing]
    if not isinstance(gradient, torch.Tensor):
        return None
    key = place_key(gradient)
    source = inner.producers.get(key)
    birth = inner.origin(source, key, at) or inner.passed_on(source, at)
    if birth is None or birth.operation.place is None:
        return None
    return _guilt_of("backward", birth, inner)
