# SPDX-License-Identifier: Apache-2.0
"""What people use today to test a loss, each as its own documentation has it. An oracle looks at one function and says
whether it raised an alarm, and after how many cases.

* allclose: the function in f32 against the same code in f64 on inputs as a unit test draws them, with the default
  tolerances of torch.testing.assert_close for f32.
* gradcheck: torch.autograd.gradcheck in f64, with its defaults.
* Hypothesis: a property-based test as a careful engineer would write it: floats over a range that includes the limits,
  padding by the usual sentinels, loss and gradients finite, close to f64, and 0 where masked.
* gpuemu (github.com/Skelf-Research/gpuemu): outputs of a correct implementation in f64 are expected; the absolute
  tolerance is 1.5 x the 95th percentile of the errors of a correct f32 one, case by case, on uniform inputs in
  [-10, 10]; whatever is not finite fails. Its adversarial inputs hold NaN, infinities and limits in place of some elements.
"""

from __future__ import annotations

import math
from typing import Callable, NamedTuple, Optional

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from fields import Batch, Field, draw_benign, draw_uniform, evaluate

Loss = Callable[..., torch.Tensor]


class Answer(NamedTuple):
    alarm: bool
    cases: int
    why: str = ""


class Subject(NamedTuple):
    name: str
    function: Loss
    twin: Loss  # a correct implementation, the same function where that is asked
    fields: list[Field]


RTOL, ATOL = 1.3e-6, 1e-5  # torch.testing.assert_close, f32


def differs(actual: list[torch.Tensor], expected: list[torch.Tensor], rtol: float, atol: float) -> str:
    for a, e in zip(actual, expected):
        if not torch.allclose(a.double(), e.double(), rtol=rtol, atol=atol):
            return "not finite" if not torch.isfinite(a).all() else "not close"
    return ""


def allclose(count: int) -> Callable[[Subject, int], Answer]:
    def ask(subject: Subject, number: int) -> Answer:
        generator = torch.Generator().manual_seed(number)
        for case in range(count):
            batch = draw_benign(subject.fields, generator)
            why = differs(evaluate(subject.function, batch, torch.float32),
                          evaluate(subject.function, batch, torch.float64), RTOL, ATOL)
            if why:
                return Answer(True, case + 1, why)
        return Answer(False, count)
    return ask


def gradcheck(subject: Subject, number: int) -> Answer:
    generator = torch.Generator().manual_seed(number)
    for case in range(5):
        batch = draw_benign(subject.fields, generator)
        moving = [f.name for f in subject.fields if f.differentiable]

        def function(*values: torch.Tensor) -> torch.Tensor:
            return subject.function(**{**widened, **dict(zip(moving, values))})

        widened = {name: t.double() if t.is_floating_point() else t for name, t in batch.items()}
        try:
            torch.autograd.gradcheck(function, [widened[name].requires_grad_() for name in moving])
        except (RuntimeError, AssertionError) as error:
            return Answer(True, case + 1, str(error).splitlines()[0])
    return Answer(False, 5)


@st.composite
def batches(draw: Callable, fields: list[Field]) -> Batch:
    rows, tokens, vocab = draw(st.integers(1, 3)), draw(st.integers(1, 4)), 3
    mask = draw(st.lists(st.booleans(), min_size=rows * tokens, max_size=rows * tokens))
    kept = torch.tensor(mask).reshape(rows, tokens)
    batch: Batch = {}
    for field in fields:
        if field.kind == "mask":
            batch[field.name] = kept
        elif field.kind == "label":
            batch[field.name] = torch.where(kept, torch.ones(rows, tokens, dtype=torch.int64), -100)
        else:
            shape = (rows, tokens, vocab) if field.kind == "logit" else (rows, tokens)
            floats = st.floats(*field.range, width=32)
            values = draw(st.lists(floats, min_size=math.prod(shape), max_size=math.prod(shape)))
            padding = draw(st.sampled_from([0.0, 1.0, -1e9, -math.inf]))
            keep = kept.unsqueeze(-1) if field.kind == "logit" else kept
            batch[field.name] = torch.where(keep, torch.tensor(values, dtype=torch.float32).reshape(shape), padding)
    return batch


class Alarm(Exception):
    pass


def hypothesis(subject: Subject, number: int) -> Answer:
    cases = 0
    answer: Optional[Answer] = None

    @seed(number)
    @settings(max_examples=200, deadline=None, database=None, phases=(Phase.explicit, Phase.generate),
              suppress_health_check=list(HealthCheck))
    @given(batches(subject.fields))
    def test(batch: Batch) -> None:
        nonlocal cases
        cases += 1
        actual = evaluate(subject.function, batch, torch.float32)
        if not all(torch.isfinite(tensor).all() for tensor in actual):
            raise Alarm("not finite")
        if why := differs(actual, evaluate(subject.function, batch, torch.float64), 1e-4, 1e-5):
            raise Alarm(why)
        kept = next((batch[f.name].bool() for f in subject.fields if f.kind == "mask"), None)
        if kept is None:
            kept = next(batch[f.name] != -100 for f in subject.fields if f.kind == "label")
        for gradient in actual[1:]:
            if (gradient[~kept] != 0).any():
                raise Alarm("gradient at a masked position")

    try:
        test()
    except Alarm as alarm:
        answer = Answer(True, cases, str(alarm))
    except Exception as error:  # whatever the function throws is a failed test
        answer = Answer(True, cases, type(error).__name__)
    return answer or Answer(False, cases)


LEARNING, ITERATIONS = 30, 8


def gpuemu(adversarial: bool) -> Callable[[Subject, int], Answer]:
    def errors_of(subject: Subject, batch: Batch) -> tuple[torch.Tensor, bool]:
        actual = evaluate(subject.function, batch, torch.float32)
        expected = evaluate(subject.twin, batch, torch.float64)
        error = torch.cat([(a.double() - e).abs().reshape(-1) for a, e in zip(actual, expected)])
        return error, all(bool(torch.isfinite(tensor).all()) for tensor in actual)

    def ask(subject: Subject, number: int) -> Answer:
        generator = torch.Generator().manual_seed(number)
        correct = subject._replace(function=subject.twin)
        learnt = [float(errors_of(correct, draw_uniform(subject.fields, generator))[0].max()) for _ in range(LEARNING)]
        tolerance = 1.5 * float(torch.quantile(torch.tensor(learnt), 0.95))
        for case in range(ITERATIONS):
            error, finite = errors_of(subject, draw_uniform(subject.fields, generator, adversarial))
            if not finite or bool((error > tolerance).any()):
                return Answer(True, case + 1, "not finite" if not finite else "beyond the learnt tolerance")
        return Answer(False, ITERATIONS)
    return ask


ORACLES: dict[str, Callable[[Subject, int], Answer]] = {
    "allclose, 5 random inputs": allclose(5),
    "allclose, 100 random inputs": allclose(100),
    "gradcheck, 5 random inputs": gradcheck,
    "Hypothesis + float64, 200 examples": hypothesis,
    "gpuemu's rule, default inputs": gpuemu(False),
    "gpuemu's rule, adversarial inputs": gpuemu(True),
}
