# SPDX-License-Identifier: Apache-2.0
"""The call that is under way, as its source has it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FrameType
from typing import Any, Collection, Optional


def written_call(frame: FrameType, method: str, without: Collection[str] = (), **more: Any) -> Optional[str]:
    """The call of `method` at which `frame` stands, on one line, with other keywords; None where it cannot be told.
    It names what its own scope knows, so it can be written in place of that one."""
    try:
        lines, first = inspect.getsourcelines(frame.f_code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return None
    line = frame.f_lineno - max(first, 1) + 1
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno <= line <= node.end_lineno
             and isinstance(node.func, ast.Attribute) and node.func.attr == method]
    if len(calls) != 1:
        return None
    kept = [keyword for keyword in calls[0].keywords if keyword.arg not in {*without, *more}]
    added = [ast.keyword(arg=name, value=ast.Constant(value)) for name, value in more.items()]
    return ast.unparse(ast.Call(func=calls[0].func, args=calls[0].args, keywords=kept + added))
