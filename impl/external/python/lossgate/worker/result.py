# SPDX-License-Identifier: Apache-2.0
"""The loss in what the subject returned, and what to write where there is none."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Optional

from lossgate.worker.aliases import ALIASES, plain_name
from lossgate.worker.frames import DTYPE_NAMES
from lossgate.worker.pytorch import torch
from lossgate.worker.trouble import BadResult, NotReduced


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {list(value.shape)} and {value.dtype}"
    kind = type(value)
    return f"a {kind.__name__}" if kind.__module__ == "builtins" else f"a {kind.__module__}.{kind.__name__}"


def _by_our_names(result: dict, subject: str, outputs: list[str]) -> dict:
    """Keys may be the names that trainers give, as parameters may."""
    found = {}
    for name in outputs:
        known = {plain_name(name)} | ALIASES.get(name, set())
        key = next((key for key in result if isinstance(key, str) and plain_name(key) in known), None)
        if key is None:
            raise BadResult(f"{subject} returned a dict without {name!r} (keys: {', '.join(map(str, list(result)[:8]))}); "
                            f"return {', '.join(outputs)}")
        found[name] = result[key]
    return found


def _named(result: Any) -> Optional[dict]:
    """What a dict, a named tuple or a dataclass holds, by name."""
    if isinstance(result, dict):
        return result
    if isinstance(result, tuple) and hasattr(result, "_asdict"):
        return result._asdict()
    return vars(result) if dataclasses.is_dataclass(result) and not isinstance(result, type) else None


def outputs_of(result: Any, subject: str, outputs: list[str]) -> Any:
    """By name: those of a tuple, or a tensor alone, are in the order in which the operation has them."""
    if isinstance(result, torch.Tensor):
        result = (result,)
    if (named := _named(result)) is not None:
        return _by_our_names(named, subject, outputs)
    if result is not None and not isinstance(result, (tuple, list)):
        return result
    result = () if result is None else result
    if len(result) < len(outputs) or not all(isinstance(value, torch.Tensor) for value in result[:len(outputs)]):
        raise BadResult(f"{subject} returned {', '.join(map(_described, result)) or 'nothing'}; return the tensors "
                        f"{', '.join(outputs)}, in this order or as a dict")
    return dict(zip(outputs, result))


def loss_of(result: Any, subject: str, outputs: list[str], has_loss: bool, wants_graph: bool) -> tuple[Any, Any]:
    """The loss in what the subject returned, and what may hold its outputs. An operation, tensors in, tensors out,
    has no loss."""
    if not has_loss:
        return None, outputs_of(result, subject, outputs)
    loss = result
    where = "returned"
    if not isinstance(result, torch.Tensor):
        if isinstance(getattr(result, "loss", None), torch.Tensor):
            loss, where = result.loss, f"returned {_described(result)} whose 'loss' is"
        elif isinstance(result, (tuple, list)):
            if not result:
                raise BadResult(f"{subject} returned an empty {type(result).__name__}; return the loss")
            loss, where = result[0], f"returned a {type(result).__name__} that begins with"
        elif isinstance(result, dict):
            if "loss" not in result:
                raise BadResult(f"{subject} returned a dict without the key 'loss' (keys: "
                                f"{', '.join(map(str, list(result)[:8]))}); return {{'loss': ...}} or the loss alone")
            loss, where = result["loss"], "returned a dict whose 'loss' is"
        elif hasattr(result, "loss"):
            loss, where = result.loss, f"returned {_described(result)} whose 'loss' is"
    if not isinstance(loss, torch.Tensor):
        if loss is None:
            raise BadResult(f"{subject} {where} None; end it with `return loss`")
        advice = "return the loss as a scalar torch.Tensor"
        if isinstance(loss, (int, float)):
            advice = "return the tensor itself, without .item() or float(): a Python number has no gradient"
        elif type(loss).__module__.split(".")[0] == "numpy":
            advice = "compute with torch and return the tensor itself, without .numpy()"
        raise BadResult(f"{subject} {where} {_described(loss)}; {advice}")
    if not loss.dtype.is_floating_point:
        raise BadResult(f"{subject} {where} {_described(loss)}; a loss is a floating-point scalar")
    if loss.dim() != 0:
        raise NotReduced(f"{subject} {where} {_described(loss)}, where a scalar is needed; reduce it, such as "
                        "`(per_token * mask).sum() / mask.sum().clamp(min=1)`"
                        + ("" if loss.numel() != 1 else ", or `.squeeze()` it"))
    if wants_graph and not loss.requires_grad:
        raise BadResult(f"{subject} {where} {_described(loss)} without a graph: no gradient can flow back; compute it "
                        "from the arguments, without detach(), .item(), torch.no_grad() or a fresh torch.tensor(...)")
    return loss, result


def place_of_loss(result: Any) -> str:
    """Where it is in what the subject returned, as Python goes there."""
    if isinstance(result, torch.Tensor):
        return ""
    if isinstance(getattr(result, "loss", None), torch.Tensor):
        return ".loss"
    return '["loss"]' if isinstance(result, dict) else "[0]"


def must_accumulate(error: Exception) -> bool:
    """Whether a graph goes back for all of its leaves at once alone, as a reentrant checkpoint does."""
    return isinstance(error, RuntimeError) and "heckpoint" in str(error) and ".grad()" in str(error)


def _captured(loss: Any, leaves: tuple, gradient: Any, keep_graph: bool) -> tuple:
    """torch.autograd.grad with what it does before it comes to the engine left away for a plain scalar."""
    engine = getattr(torch.autograd.Variable, "_execution_engine", None)
    if engine is None or type(loss) is not torch.Tensor:
        return torch.autograd.grad(loss, leaves, gradient, keep_graph, allow_unused=True)
    return engine.run_backward((loss,), (gradient,), keep_graph, False, leaves, True, accumulate_grad=False)


def _accumulated(loss: Any, leaves: tuple, gradient: Any, keep_graph: bool) -> tuple:
    loss.backward(gradient, retain_graph=keep_graph)
    gradients = tuple(leaf.grad for leaf in leaves)
    for leaf in leaves:
        leaf.grad = None
    return gradients


def gradients_of(loss: Any, leaves: tuple, upstream: float, accumulates: bool, keep_graph: bool = False) -> tuple:
    """Those of a backward with this incoming gradient: as it returns them, or from where it adds them up."""
    if not leaves:
        return ()
    if any(leaf.grad is not None for leaf in leaves):
        raise BadResult("the forward left a gradient in an argument's .grad, to which a trainer's backward is added: leave "
                        "backward() to the caller, or take what the forward needs by torch.autograd.grad")
    gradient = torch.full_like(loss, upstream)
    handed = gradient.item()
    gradients = (_accumulated if accumulates else _captured)(loss, leaves, gradient, keep_graph)
    if gradient.item() != handed and not (math.isnan(handed) and math.isnan(gradient.item())):
        raise BadResult(f"backward changed the gradient of the loss that it was handed, in place, from {handed:.9g} to "
                        f"{gradient.item():.9g}: whatever else was added to the loss gets that; make a new tensor")
    return gradients


def returned(result: Any, name: str) -> Any:
    """The tensor that the subject returned under this name, or None."""
    places = [result, *result] if isinstance(result, (tuple, list)) else [result]
    for place in places:
        if isinstance(place, torch.Tensor):
            continue
        value = place.get(name) if isinstance(place, dict) else getattr(place, name, None)
        if isinstance(value, torch.Tensor):
            return value
    return None


def sendable(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype in DTYPE_NAMES:
        return tensor
    if tensor.dtype.is_floating_point:
        return tensor.detach().to(torch.float32)
    if tensor.dtype.is_complex:
        raise BadResult(f"an output is {_described(tensor)}; return real numbers")
    return tensor.detach().to(torch.int64)


def finite(tensor: Any) -> bool:
    return tensor is None or not tensor.dtype.is_floating_point or bool(torch.isfinite(tensor).all())
