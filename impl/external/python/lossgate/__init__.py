# SPDX-License-Identifier: Apache-2.0
"""What lossgate needs of Python: the worker, which asks a loss that a user brings, and the watch over a training run."""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "watch":  # only then is torch imported
        import importlib

        return importlib.import_module("lossgate.watch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
