# SPDX-License-Identifier: Apache-2.0
"""torch.ops.lossgate.fused_LOSS, and fused_LOSS_gradient, which is its backward."""
from __future__ import annotations

from functools import partial
from typing import Any, Optional

import torch

from .arguments import check, check_values, prepared, refuse
from .library import memory_of, run
from .losses import LOSSES, NAMES, Loss

Tensors = dict[str, torch.Tensor]


def bound(loss: Loss, operator: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensors, dict[str, Any]]:
    """Tensors and options by name. The dispatcher hands over no argument that equals its default."""
    schema = getattr(torch.ops.lossgate, operator).default._schema
    given = {argument.name: argument.default_value for argument in schema.arguments if argument.has_default_value()}
    given |= dict(zip((argument.name for argument in schema.arguments), args)) | kwargs
    tensors = {name: given.pop(name) for name in schema_tensors(loss) if name in given}
    if tensors.get("ref_log_prob", True) is None:
        if given["kl_penalty"] != 0:
            refuse("ref_log_prob", "is missing, and kl_penalty is not 0")
        tensors["ref_log_prob"] = tensors["old_log_prob"]  # is not asked for
    return tensors, given


def schema_tensors(loss: Loss) -> tuple[str, ...]:
    return (*loss.upstreams, *loss.tensors)


def checked(loss: Loss, tensors: Tensors) -> torch.Tensor:
    """The tensor that has a gradient."""
    upstream = {name: "" if name == "upstream" else "ST" for name in loss.upstreams}
    check(loss.leaf, tensors, {**loss.tensors, **upstream}, (*loss.wide, *loss.upstreams))
    return tensors[loss.leaf]


def empty(name: str, like: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    try:
        return torch.empty(shape, dtype=dtype, device=like.device)
    except RuntimeError as error:
        raise type(error)(f"{name} of shape {list(shape)} finds no memory: {error}") from None


def outputs_of(loss: Loss, leaf: torch.Tensor) -> Tensors:
    positions = tuple(leaf.shape[:2])
    return {name: empty(name, leaf, () if name == "loss" else positions, torch.float32) for name in loss.outputs}


def gradient_of(loss: Loss, leaf: torch.Tensor) -> torch.Tensor:
    return empty(f"the gradient of {loss.leaf},", leaf, tuple(leaf.shape), leaf.dtype)


def computed(loss: Loss, tensors: Tensors, options: dict[str, Any], gradient: Optional[torch.Tensor]) -> Tensors:
    """The outputs, and the gradient into its memory."""
    leaf = tensors[loss.leaf]
    positions = tuple(leaf.shape[:2])
    extents = {"sequences": positions[0], "tokens": positions[1], "vocab": leaf.shape[2] if leaf.dim() == 3 else 0,
               "support": tensors["support_token"].shape[2] if "support_token" in tensors else 0}
    totals = {"total_tokens": options.pop("total_tokens", 1), "total_sequences": options.pop("total_sequences", 0)}
    if leaf.device.type == "cpu":
        check_values(tensors, extents["vocab"], totals["total_tokens"], options.get("beta", 0.0))
    outputs = outputs_of(loss, leaf)
    ready = prepared(tensors, (*loss.wide, *loss.upstreams))
    arrays = {NAMES.get(name, name): tensor for name, tensor in ready.items()} | outputs
    for name in ("weighted", *memory_of(loss.name)):
        arrays[name] = empty(name, leaf, positions, torch.float32)
    arrays["row_tokens"] = empty("row_tokens", leaf, positions[:1], torch.int64)
    if "loss" not in arrays:
        arrays["loss"] = empty("loss", leaf, (), torch.float32)
    if gradient is not None:
        arrays[f"gradient.{NAMES.get(loss.leaf, loss.leaf)}"] = gradient
    run(loss.name, options.pop("reduction", "sum"), extents, totals, arrays, options)
    return outputs


def forward(loss: Loss, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
    tensors, options = bound(loss, f"fused_{loss.name}", args, kwargs)
    checked(loss, tensors)
    return tuple(computed(loss, tensors, options, None).values())


def forward_shapes(loss: Loss, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
    tensors, _ = bound(loss, f"fused_{loss.name}", args, kwargs)
    return tuple(outputs_of(loss, checked(loss, tensors)).values())


def backward(loss: Loss, *args: Any, **kwargs: Any) -> torch.Tensor:
    tensors, options = bound(loss, f"fused_{loss.name}_gradient", args, kwargs)
    gradient = gradient_of(loss, checked(loss, tensors))
    computed(loss, tensors, options, gradient)
    return gradient


def backward_shapes(loss: Loss, *args: Any, **kwargs: Any) -> torch.Tensor:
    tensors, _ = bound(loss, f"fused_{loss.name}_gradient", args, kwargs)
    return gradient_of(loss, checked(loss, tensors))


def keep(loss: Loss, ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any) -> None:
    ctx.save_for_backward(*inputs)
    ctx.options = keyword_only_inputs
    if loss.outputs[0] == "loss":
        ctx.mark_non_differentiable(*output[1:])


def give_back(loss: Loss, ctx: Any, *upstream: torch.Tensor) -> tuple[Optional[torch.Tensor], ...]:
    """The kernels read the upstream gradient where it lies, so that it meets the terms before they are
    rounded, and nobody waits for it."""
    operator = getattr(torch.ops.lossgate, f"fused_{loss.name}_gradient")
    asked = upstream[:len(loss.upstreams)]
    gradient = operator(*asked, *ctx.saved_tensors, **ctx.options) if ctx.needs_input_grad[0] else None
    return (gradient, *[None] * (len(loss.tensors) - 1))


def refuse_second(ctx: Any, *upstream: torch.Tensor) -> None:
    raise RuntimeError("a fused loss is differentiated once: its gradient has none of its own")


def register(loss: Loss) -> None:
    name, devices = f"lossgate::fused_{loss.name}", ("cpu", "cuda")
    outputs = ", ".join(f"Tensor {output}" for output in loss.outputs)
    upstreams = ", ".join(f"Tensor {upstream}" for upstream in loss.upstreams)
    for operator, schema, kernel, shapes in (
            (name, f"({loss.schema}) -> ({outputs})", forward, forward_shapes),
            (f"{name}_gradient", f"({upstreams}, {loss.schema}) -> Tensor", backward, backward_shapes)):
        torch.library.define(operator, schema, tags=torch.Tag.pt2_compliant_tag)
        torch.library.impl(operator, devices, partial(kernel, loss))
        torch.library.register_fake(operator, partial(shapes, loss))
    torch.library.register_autograd(name, partial(give_back, loss), setup_context=partial(keep, loss))
    torch.library.register_autograd(f"{name}_gradient", refuse_second)


for each in LOSSES:
    register(each)
