# SPDX-License-Identifier: Apache-2.0
"""What the user brings: a callable, and where it is defined."""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import re
import sys
from typing import Any

from lossgate.worker.pytorch import torch
from lossgate.worker.trouble import Trouble, clean


def source_line(file: str, line: int) -> str:
    return clean(linecache.getline(file, line).strip()) if file else ""


class Subject:
    """What the user brings: a callable, where it is defined, and how it is called."""

    def __init__(self, target: Any, name: str, paths: list[str]) -> None:
        self.name = name
        self.paths = paths
        self.constructed = inspect.isclass(target) and not issubclass(target, torch.autograd.Function)
        self.target = target
        if self.constructed:
            if not issubclass(target, torch.nn.Module) and not any("__call__" in vars(base) for base in target.__mro__):
                raise Trouble(f"{name} is a class without __call__; name a function, or one of its static methods as "
                              f"{name}.METHOD")
            definition = target.forward if issubclass(target, torch.nn.Module) else target.__call__
            self.constructor = self._parameters(target)
            self.parameters = self._parameters(definition)[1:]
            self.call = None
        else:
            definition = target
            self.constructor = []
            owner = getattr(target, "__self__", None)
            if inspect.isclass(owner) and issubclass(owner, torch.autograd.Function) and target.__name__ == "apply":
                definition = owner
            if inspect.isclass(definition):
                self.call = definition.apply
                known = self._by_position(self._parameters(definition.forward))
                separate = getattr(torch.autograd.Function, "setup_context", None)
                apart = getattr(definition, "setup_context", separate) is not separate
                self.parameters = known if apart else known[1:]  # ctx
                definition = definition.forward
            else:
                self.call = target
                if isinstance(target, torch.nn.Module):
                    definition = getattr(target, "_orig_mod", target).forward  # torch.compile's own takes anything
                elif isinstance(target, functools.partial) and isinstance(target.func, torch.nn.Module):
                    definition = functools.partial(target.func.forward, *target.args, **target.keywords)
                if not callable(target):
                    raise Trouble(f"{name} is a {type(target).__name__}, not a function; name a function, a class "
                                  "with __call__ or a torch.nn.Module")
                self.parameters = self._parameters(definition)
                own = {parameter.kind for parameter in self._parameters(target, follow_wrapped=False)}
                if own == {inspect.Parameter.VAR_POSITIONAL}:  # a decorator that hands on no keywords
                    self.parameters = self._by_position(self.parameters)
        self.bound = set()  # what a functools.partial has given already
        while isinstance(definition, functools.partial):
            self.bound |= set(definition.keywords)
            definition = definition.func
        self.file, self.line, self.code = self._place(definition)

    @staticmethod
    def _by_position(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
        return [parameter.replace(kind=parameter.POSITIONAL_ONLY) for parameter in parameters
                if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)]

    @staticmethod
    def _parameters(target: Any, follow_wrapped: bool = True) -> list[inspect.Parameter]:
        try:
            return list(inspect.signature(target, follow_wrapped=follow_wrapped).parameters.values())
        except (ValueError, TypeError):
            raise Trouble(f"{getattr(target, '__name__', target)!r} does not tell its parameters; wrap it: "
                          "def my_loss(log_prob, ...): return it(log_prob, ...)") from None

    @staticmethod
    def _place(definition: Any) -> tuple[str, int, str]:
        definition = inspect.unwrap(definition)
        definition = getattr(definition, "__func__", definition)
        code = getattr(definition, "__code__", None)
        if code is None:
            code = getattr(getattr(type(definition), "__call__", None), "__code__", None)
        if code is None:
            return "", 0, ""
        line = code.co_firstlineno
        for at in range(line, line + 50):  # past the decorators
            text = source_line(code.co_filename, at)
            if re.match(r"(async\s+)?def\b|class\b", text) or "lambda" in text:
                return code.co_filename, at, text
        return code.co_filename, line, source_line(code.co_filename, line)

    def shown(self, file: str) -> str:
        """The name of a source file as users know it."""
        return clean(self._relative(file))

    def _relative(self, file: str) -> str:
        if not file or file.startswith("<"):
            return file
        real = os.path.realpath(file)
        folders = [os.path.realpath(folder) for folder in self.paths[:1]]
        known = sorted({os.path.realpath(folder or os.curdir) for folder in sys.path}, key=len, reverse=True)
        for folder in folders + known:
            if real.startswith(folder.rstrip(os.sep) + os.sep):
                return os.path.relpath(real, folder)
        return file
