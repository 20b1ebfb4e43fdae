# SPDX-License-Identifier: Apache-2.0
"""What the losses take, by the names of their parameters, and inputs as tests draw them."""

from __future__ import annotations

import inspect
import math
from typing import Callable, NamedTuple

import torch

Batch = dict[str, torch.Tensor]
ROWS, TOKENS, VOCAB = 4, 8, 5


class Field(NamedTuple):
    name: str
    kind: str  # log_prob, advantage, value, logit, mask, label
    differentiable: bool = False

    @property
    def range(self) -> tuple[float, float]:
        """That a careful engineer calls possible."""
        return {"log_prob": (-100.0, 0.0), "advantage": (-10.0, 10.0), "value": (-100.0, 100.0),
                "logit": (-100.0, 100.0)}[self.kind]

    @property
    def shape(self) -> tuple[int, ...]:
        return (ROWS, TOKENS, VOCAB) if self.kind == "logit" else (ROWS, TOKENS)


FIELDS = {field.name: field for field in (
    Field("log_prob", "log_prob", True), Field("old_log_prob", "log_prob"), Field("ref_log_prob", "log_prob"),
    Field("advantage", "advantage"), Field("mask", "mask"), Field("student_logits", "logit", True),
    Field("teacher_logits", "logit"), Field("label", "label"), Field("value", "value", True),
    Field("old_value", "value"), Field("returns", "value"))}


def fields_of(function: Callable) -> list[Field]:
    return [FIELDS[name] for name in inspect.signature(function).parameters]


def draw_mask(generator: torch.Generator) -> torch.Tensor:
    """Rows of different lengths, none of them empty."""
    lengths = torch.randint(1, TOKENS + 1, (ROWS, 1), generator=generator)
    return torch.arange(TOKENS) < lengths


def draw(fields: list[Field], generator: torch.Generator, values: Callable[[Field], torch.Tensor]) -> Batch:
    mask = draw_mask(generator)
    batch: Batch = {}
    for field in fields:
        if field.kind == "mask":
            batch[field.name] = mask
        elif field.kind == "label":
            chosen = torch.randint(0, VOCAB, (ROWS, TOKENS), generator=generator)
            batch[field.name] = torch.where(mask, chosen, -100)
        else:
            batch[field.name] = values(field)
    return batch


def draw_benign(fields: list[Field], generator: torch.Generator) -> Batch:
    """Normal numbers; log-probs that are negative and near each other."""
    centre = -torch.rand(ROWS, TOKENS, generator=generator) * 3

    def values(field: Field) -> torch.Tensor:
        noise = torch.randn(field.shape, generator=generator)
        return (centre + 0.1 * noise).clamp(max=-1e-3) if field.kind == "log_prob" else noise
    return draw(fields, generator, values)


def draw_uniform(fields: list[Field], generator: torch.Generator, adversarial: bool = False) -> Batch:
    specials = torch.tensor([math.nan, math.inf, -math.inf, 3.4e38, -3.4e38, 1e-45, 0.0])

    def values(field: Field) -> torch.Tensor:
        numbers = torch.rand(field.shape, generator=generator) * 20 - 10
        if not adversarial:
            return numbers
        special = specials[torch.randint(0, len(specials), field.shape, generator=generator)]
        return torch.where(torch.rand(field.shape, generator=generator) < 0.1, special, numbers)
    return draw(fields, generator, values)


def evaluate(function: Callable[..., torch.Tensor], batch: Batch, dtype: torch.dtype) -> list[torch.Tensor]:
    """The loss and the gradient of each differentiable field."""
    given = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in batch.items()}
    moving = [given[name].requires_grad_() for name in batch if FIELDS[name].differentiable]
    loss = function(**given)
    gradients = torch.autograd.grad(loss, moving, allow_unused=True)
    return [loss.detach(), *(torch.zeros_like(m) if g is None else g for g, m in zip(gradients, moving))]
