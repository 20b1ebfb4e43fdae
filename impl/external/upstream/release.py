# SPDX-License-Identifier: Apache-2.0
"""Loads single modules of a released trainer, unmodified, without what the trainer needs to train.

A loss sits in a file that imports an inference engine, a cluster runtime and a tokenizer, none of which it
uses. `load` executes that one file as it was shipped. What the file imports is real where it belongs to
Python, to torch, or to `also`; everything else is a stand-in that can be called, subclassed, subscripted and
used as a decorator, and is false when asked (but `is_torch_available()` is true). The stand-ins are seen by the files of the release alone:
`sys.modules` gets only modules that were executed, so torch never meets one.
"""
from __future__ import annotations

import builtins
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import sysconfig
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Callable, Optional

import torch

# Where ci/upstream.sh asks on a CPU, so do Triton's kernels; must be known before the module with the kernel is loaded.
if os.environ.get("LOSSGATE_DEVICE", "cpu") == "cpu":
    os.environ.setdefault("TRITON_INTERPRET", "1")

REAL = {"torch", "numpy", "triton", "typing_extensions"}


class StandIn:
    """Something that a file mentions and a loss does not use."""

    def __init__(self, name: str = "stand-in") -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "0"
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(self._name + "." + name)

    def __delattr__(self, name: str) -> None:
        """A file may take away what another package defined."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        # A decorator without arguments hands back what it decorates.
        decorates = len(arguments) == 1 and not named and isinstance(arguments[0], (FunctionType, type, staticmethod))
        return arguments[0] if decorates else self

    def __mro_entries__(self, bases: tuple) -> tuple:
        return ()

    def __bool__(self) -> bool:
        return False

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __subclasscheck__(self, subclass: Any) -> bool:
        return False

    def __getitem__(self, key: Any) -> Any:
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __lt__(self, other: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __repr__(self) -> str:
        return f"<stand-in for {self._name}>"


def is_standard(top: str) -> bool:
    """Whether a top-level module comes with Python."""
    if top in sys.builtin_module_names or top == "__future__":
        return True
    spec = importlib.util.find_spec(top)
    origin = (spec.origin or "") if spec else ""
    library = sysconfig.get_path("stdlib")
    return origin == "frozen" or (origin.startswith(library) and "-packages" not in origin[len(library):])


def file_of(module: str) -> Optional[Path]:
    """The file of a module of an installed package. Only folders are looked at, so that an adapter may be
    called as the package is, and nothing of the package is executed to find it."""
    parts = module.split(".")
    for folder in sys.path:
        stem = Path(folder or ".", *parts)
        for file in (stem.with_name(stem.name + ".py"), stem / "__init__.py"):
            if file.is_file() and stem.parent != Path(folder or "."):
                return file.resolve()
    return None


def as_written(function: Any = None, **options: Any) -> Any:
    """In place of torch.compile, which takes seconds to import and a C++ compiler to run."""
    return as_written if function is None else function


class Release:
    """One project's release, of which only the modules in `executed` (exact names) are run."""

    def __init__(self, project: str, executed: tuple, also: tuple = ()) -> None:
        self.project = project
        self.executed = set(executed)
        self.real = REAL | set(also)
        self.modules: dict = {}
        self.loading: set = set()
        self.classes: dict = {}

    def load(self, module: str) -> ModuleType:
        if module in self.modules:
            return self.modules[module]
        file = file_of(module)
        if file is None:
            raise ModuleNotFoundError(f"{module} is not in this release of {self.project}")
        found = ModuleType(module)
        found.__file__ = str(file)
        is_package = file.name == "__init__.py"
        found.__package__ = module if is_package else module.rpartition(".")[0]
        found.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._import}
        # Dataclasses and annotations look their module up by name.
        self.modules[module] = sys.modules[module] = found
        self.loading.add(module)
        compiler, torch.compile = torch.compile, as_written
        try:
            exec(compile(file.read_bytes(), str(file), "exec"), found.__dict__)
        except BaseException:
            del self.modules[module], sys.modules[module]  # the next one to ask is not handed a half
            raise
        finally:
            torch.compile = compiler
            self.loading.remove(module)
        return found

    def first(self, *modules: str) -> ModuleType:
        """The first of these that the release has: files move between releases."""
        for module in modules:
            if file_of(module):
                return self.load(module)
        raise ModuleNotFoundError(f"none of {', '.join(modules)} is in this release of {self.project}")

    def class_with(self, method: str, modules: tuple) -> type:
        """The class that has this method, in the first module that has such a class: they move about."""
        for module in modules:
            if (method, modules) not in self.classes and file_of(module):
                for found in vars(self.load(module)).values():
                    if isinstance(found, type) and method in vars(found):
                        self.classes[method, modules] = found  # its own class comes behind those that it imports
        if (method, modules) not in self.classes:
            raise NotImplementedError(f"this release has no {method}")
        return self.classes[method, modules]

    def _import(self, name: str, names: Any = None, scope: Any = None, wanted: Any = (), level: int = 0) -> Any:
        if level:
            parts = names["__package__"].split(".")
            name = ".".join(parts[: len(parts) - level + 1] + ([name] if name else []))
        top = name.partition(".")[0]
        if name.startswith("torch._dynamo"):
            return StandIn(name) if wanted else torch
        if top in self.real or is_standard(top):
            return builtins.__import__(name, names, scope, wanted or (), 0)
        if name in self.executed:
            module = self.load(name)
            for part in reversed(name.split(".")[1:] if not wanted else ()):  # `import a.b as c` walks down from a
                above = StandIn(name)
                above.__dict__[part] = module
                module = above
            return module
        if names and names["__name__"] not in self.loading:
            raise ImportError(f"{name} is left out")  # a loss that asks when it is called needs a straight answer
        stand_in = StandIn(name if wanted else top)
        stand_in.__dict__["is_torch_available"] = lambda: True
        for item in wanted or ():
            if f"{name}.{item}" in self.executed:
                stand_in.__dict__[item] = self.load(f"{name}.{item}")
        return stand_in


def told(function: Callable, **facts: Any) -> dict:
    """Those of the facts that this release's function has a parameter for."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in facts.items() if name in known}


def hashes(release: Release) -> list:
    """(sha256, path from the package on) of every file of the release that adapters execute."""
    files = {file_of(module): module for module in release.executed}
    depth = {file: module.count(".") + 1 for file, module in files.items() if file}
    return sorted(("/".join(file.parts[-length:]), hashlib.sha256(file.read_bytes()).hexdigest())
                  for file, length in depth.items())


if __name__ == "__main__":  # release.py ADAPTER...: the files under test
    for adapter in sys.argv[1:]:
        for path, digest in hashes(importlib.import_module(adapter).release):
            print(digest, "", path)
