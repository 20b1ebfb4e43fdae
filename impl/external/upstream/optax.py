# SPDX-License-Identifier: Apache-2.0
"""Optax: https://github.com/google-deepmind/optax. Its losses are JAX's, whose gradients are handed to torch."""
from __future__ import annotations

from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np
import torch
from release import Release
from torch import Tensor

CLASSIFICATION, SMOOTHING = "optax.losses._classification", "optax.losses._smoothing"
release = Release("optax", (CLASSIFICATION, SMOOTHING), also=("jax",))
losses, smoothing = release.load(CLASSIFICATION), release.load(SMOOTHING)


class ThroughJax(torch.autograd.Function):
    """function(leaf) with the gradient that JAX has for it."""

    @staticmethod
    def forward(context, function: Callable, leaf: Tensor) -> Tensor:
        value, context.pull_back = jax.vjp(function, jnp.asarray(leaf.numpy()))
        return torch.from_numpy(np.array(value))

    @staticmethod
    def backward(context, upstream: Tensor) -> tuple:
        (gradient,) = context.pull_back(jnp.asarray(upstream.numpy()))
        return None, torch.from_numpy(np.array(gradient))


def integer_labels(logits: Tensor, label: Tensor, total_tokens: int) -> Tensor:
    ids, valid = jnp.asarray(label.clamp(min=0).int().numpy()), jnp.asarray((label != -100).numpy())
    loss = losses.softmax_cross_entropy_with_integer_labels
    return ThroughJax.apply(lambda x: loss(x, ids, where=valid).sum() / max(total_tokens, 1), logits)


def smoothed_labels(logits: Tensor, label: Tensor, label_smoothing: float, total_tokens: int) -> Tensor:
    ids, valid = jnp.asarray(label.clamp(min=0).int().numpy()), jnp.asarray((label != -100).numpy())
    target = smoothing.smooth_labels(jax.nn.one_hot(ids, logits.shape[-1]), label_smoothing)
    loss = losses.safe_softmax_cross_entropy
    return ThroughJax.apply(lambda x: loss(x, target).sum(where=valid) / max(total_tokens, 1), logits)
