# SPDX-License-Identifier: Apache-2.0
"""What of torch other code computes by, which a call leaves as it was."""

from __future__ import annotations

import functools
from typing import Any, Callable, NamedTuple, Optional

from lossgate.worker.pytorch import torch


class Setting(NamedTuple):
    shown: str  # the call that reads it
    read: Callable[[], Any]
    write: Callable[[Any], Any]
    loading: bool = False  # so does a library once, when it is loaded


def _autocast() -> list[Setting]:
    """Of CPUs and of GPUs, under the names that they have since torch 2.4."""
    def of(device: str) -> Setting:
        return Setting(f'torch.is_autocast_enabled("{device}")', lambda: torch.is_autocast_enabled(device),
                       lambda value: torch.set_autocast_enabled(device, value))
    try:
        torch.is_autocast_enabled("cpu")
    except TypeError:
        return []
    return [of("cpu"), of("cuda")]


def _default_device() -> Setting:
    def read() -> torch.device:
        return torch.empty(0).device  # a quarter of what torch.get_default_device() takes
    # One that is set, be it the CPU, is looked at in every call from then on.
    return Setting("torch.get_default_device()", read,
                   lambda value: torch.set_default_device(None if value.type == "cpu" else value))


_SMALLEST, _ONE = 5e-324, 1.0  # by name, or Python multiplies them before the processor does


def _flushing() -> Setting:
    """Whether the processor takes subnormal numbers for 0, of which torch does not say."""
    return Setting("5e-324 * 1 == 0", lambda: _SMALLEST * _ONE == 0.0, torch.set_flush_denormal, loading=True)


@functools.lru_cache(maxsize=None)  # of the process; torch may be absent where this is imported
def _settings() -> tuple[Setting, ...]:
    # Reading the generator's whole state takes longer than a small step; a seed says who has begun anew, drawing is legal.
    pristine = torch.get_rng_state()
    return (
        Setting("torch.get_default_dtype()", torch.get_default_dtype, torch.set_default_dtype),
        Setting("torch.is_grad_enabled()", torch.is_grad_enabled, torch.set_grad_enabled),
        Setting("torch.initial_seed()", torch.initial_seed, lambda _: torch.set_rng_state(pristine)),
        Setting("torch.get_num_threads()", torch.get_num_threads, torch.set_num_threads),
        Setting("torch.get_float32_matmul_precision()", torch.get_float32_matmul_precision,
                torch.set_float32_matmul_precision),
        Setting("torch.are_deterministic_algorithms_enabled()", torch.are_deterministic_algorithms_enabled,
                torch.use_deterministic_algorithms),
        Setting("torch.is_anomaly_enabled()", torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        _flushing(),
        *_autocast(),
        _default_device(),
    )


def _read(setting: Setting) -> Any:
    """What it is, or why torch does not say: the precision of matrix products, after it was set for each backend."""
    try:
        return setting.read()
    except RuntimeError as error:
        return f"not to be read: {str(error).splitlines()[0]}"


def _write(setting: Setting, value: Any) -> None:
    try:
        setting.write(value)
    except RuntimeError:  # it was no value
        pass


class Settings:
    """As they are now, until they are restored."""

    def __init__(self) -> None:
        self._values = [_read(setting) for setting in _settings()]

    def restore(self, again: Optional[Callable[[], Any]] = None) -> list[str]:
        """What had been changed, and how: `torch.get_default_dtype() is torch.float64`. What a library may change when it
        is loaded, only where it is changed `again`: kernels that are compiled in the call are loaded once."""
        changed = []
        for setting, value in zip(_settings(), self._values):
            now = _read(setting)
            if now == value:
                continue
            _write(setting, value)
            if not setting.loading or self._changes(setting, value, again):
                changed.append(f"{setting.shown} is {now}")
        return changed

    @staticmethod
    def _changes(setting: Setting, value: Any, again: Optional[Callable[[], Any]]) -> bool:
        try:
            if again is not None:
                again()
            return _read(setting) != value
        except Exception:  # it answered before: nothing is known
            return False
        finally:
            _write(setting, value)
