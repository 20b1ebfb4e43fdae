# SPDX-License-Identifier: Apache-2.0
"""What a caller does around the forward and the backward of a step, on the same function; PROTOCOL.md names it."""

from __future__ import annotations

from typing import Any, Callable, Iterable, NamedTuple, Sequence

from lossgate.worker.generators import Generators
from lossgate.worker.inputs import Inputs
from lossgate.worker.plan import StepPlan
from lossgate.worker.pytorch import torch
from lossgate.worker.result import gradients_of, must_accumulate


class Answer(NamedTuple):
    inputs: Inputs
    loss: Any
    holder: Any  # what may hold the outputs
    gradients: tuple  # of the leaves, in their order
    begun_anew: Sequence[str] = ()  # generators of random numbers


# The loss in what the subject returned, and what may hold its outputs.
LossIn = Callable[[Any], tuple]


def answer(plan: StepPlan, data: memoryview, device: Any, loss_in: LossIn) -> Answer:
    try:
        return _ANSWERS[plan.history](plan, data, device, loss_in)
    except Exception as error:
        if plan.accumulates or not must_accumulate(error):
            raise
    plan.accumulates = True
    return _ANSWERS[plan.history](plan, data, device, loss_in)


def _gradients(plan: StepPlan, loss: Any, leaves: Iterable, keep_graph: bool = False) -> tuple:
    return gradients_of(loss, tuple(leaves), plan.upstream, plan.accumulates, keep_graph)


def _alone(plan: StepPlan, data: memoryview, device: Any, loss_in: LossIn) -> Answer:
    inputs = Inputs(plan, data, device)
    loss, holder = loss_in(inputs.call())
    return Answer(inputs, loss, holder, _gradients(plan, loss, inputs.leaves.values()))


def _with_calls_between(plan: StepPlan, data: memoryview, device: Any, loss_in: LossIn) -> Answer:
    inputs = Inputs(plan, data, device)
    row = inputs.fullest_row()
    loss, holder = loss_in(inputs.call())
    begun_anew: list[str] = []
    # What the calls between return is kept for as long as a caller may want their backward.
    if plan.history == "evaluation":
        with torch.no_grad():
            others = [Inputs(plan, data, device, row).call()]
    else:
        generators = Generators()
        others = [generators.called(Inputs(plan, data, device, row).call) for _ in range(2)]
        begun_anew = generators.begun_anew()
    gradients = _gradients(plan, loss, inputs.leaves.values())
    del others
    return Answer(inputs, loss, holder, gradients, begun_anew)


def _summed_losses(plan: StepPlan, data: memoryview, device: Any, loss_in: LossIn) -> Answer:
    inputs = Inputs(plan, data, device)
    other = Inputs(plan, data, device, inputs.fullest_row())
    # Of two forwards the later one goes back first: what its backward returned is there while the other one's runs.
    added, _ = loss_in(other.call())
    loss, holder = loss_in(inputs.call())
    # A backward is run for the leaves that it is asked for, so those of the other data must be among them.
    leaves = (*inputs.leaves.values(), *other.leaves.values())
    gradients = _gradients(plan, loss + added, leaves)
    return Answer(inputs, loss, holder, gradients[:len(inputs.leaves)])


def _backward_twice(plan: StepPlan, data: memoryview, device: Any, loss_in: LossIn) -> Answer:
    inputs = Inputs(plan, data, device)
    loss, holder = loss_in(inputs.call())
    leaves = tuple(inputs.leaves.values())
    try:
        _gradients(plan, loss, leaves, keep_graph=True)
        return Answer(inputs, loss, holder, _gradients(plan, loss, leaves))
    except Exception:  # a graph that goes back once only, and says so, is sound
        return _alone(plan, data, device, loss_in)


def _backward_by_rows(plan: StepPlan, data: memoryview, device: Any, loss_in: LossIn) -> Answer:
    inputs = Inputs(plan, data, device)
    terms, counts = inputs.called(), inputs.valid()
    loss, holder = loss_in(plan.reduction(terms, counts))
    halves = [loss_in(plan.reduction(terms, counts, rows))[0] for rows in (slice(0, None, 2), slice(1, None, 2))]
    leaves = tuple(inputs.leaves.values())
    try:
        parts = [_gradients(plan, part, leaves, keep_graph=True) for part in (*halves, loss)]
    except Exception:  # as in a second backward
        return _alone(plan, data, device, loss_in)
    gradients = []
    for name, even, odd, whole in zip(inputs.leaves, *parts):
        if name in plan.by_sequence and even is not None and odd is not None:
            # Each its own: whoever hears of one sequence alone has the rest of it in the other half.
            whole = even.clone()
            whole[1::2] = odd[1::2]
        gradients.append(whole)
    return Answer(inputs, loss, holder, tuple(gradients))


def _after_an_update(plan: StepPlan, data: memoryview, device: Any, loss_in: LossIn) -> Answer:
    inputs = Inputs(plan, data, device)
    other = Inputs(plan, data, device, inputs.fullest_row())
    parameters = {name: leaf for name, leaf in inputs.leaves.items() if name not in plan.by_sequence}
    for each in (inputs, other):  # the leaves themselves, which an optimizer changes
        each.leaves.update(parameters)
        each.given.update(parameters)
    meant = {name: leaf.detach().clone() for name, leaf in parameters.items()}
    with torch.no_grad():
        for leaf in parameters.values():
            leaf.copy_(leaf.flip(0))
    earlier, _ = loss_in(other.call())
    _gradients(plan, earlier, other.leaves.values())
    with torch.no_grad():
        for name, leaf in parameters.items():
            leaf.copy_(meant[name])
    loss, holder = loss_in(inputs.call())
    return Answer(inputs, loss, holder, _gradients(plan, loss, inputs.leaves.values()))


def _under_autocast(plan: StepPlan, data: memoryview, device: Any, loss_in: LossIn) -> Answer:
    inputs = Inputs(plan, data, device)
    with torch.autocast("cpu" if device is None else device.type, dtype=torch.bfloat16):
        loss, holder = loss_in(inputs.call())
    return Answer(inputs, loss, holder, _gradients(plan, loss, inputs.leaves.values()))


_ANSWERS = {"alone": _alone, "evaluation": _with_calls_between, "two_forwards": _with_calls_between,
            "summed_losses": _summed_losses, "backward_twice": _backward_twice,
            "backward_by_rows": _backward_by_rows, "updated": _after_an_update,
            "autocast": _under_autocast}
