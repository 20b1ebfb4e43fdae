# SPDX-License-Identifier: Apache-2.0
"""Whose line it is: the subject's, torch's, the standard library's or the worker's own."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from typing import Any, NamedTuple, Optional

from lossgate.worker.pytorch import torch

_OWN = os.path.dirname((lambda: 0).__code__.co_filename) + os.sep
_TORCH = os.path.dirname(torch.__file__) + os.sep if torch is not None else "\0"
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
_PACKAGES = tuple(os.path.join(sysconfig.get_paths()["stdlib"], name) + os.sep
                  for name in ("site-packages", "dist-packages"))


def own(file: str) -> bool:
    """Frames of the worker's modules, which lie in one folder, be it one in name only."""
    return file.startswith(_OWN)


def foreign(file: str) -> bool:
    """Frames that are nobody's loss: torch's, the standard library's."""
    return file.startswith((_TORCH, "<frozen")) or (file.startswith(_STANDARD) and not file.startswith(_PACKAGES))


class Place(NamedTuple):
    file: str
    line: int


def place_here() -> Optional[Place]:
    """The innermost frame that is neither torch's nor the worker's."""
    frame = sys._getframe(1)
    entered = False  # the tracer's own frames lie innermost
    while frame is not None:
        file = frame.f_code.co_filename
        if own(file):
            if entered:
                return None  # below it are those that called the worker
        elif foreign(file):
            pass
        else:
            return Place(file, frame.f_lineno)
        if not own(file):
            entered = True
        frame = frame.f_back
    return None


def place_of_node(node: Any) -> Optional[Place]:
    """Where the forward made this node: anomaly mode wrote it down."""
    for entry in reversed(node.metadata.get("traceback_") or []):
        match = re.match(r'\s*File "(.*)", line (\d+)', entry)
        if match is None:
            continue
        if own(match.group(1)):
            return None
        if not foreign(match.group(1)):
            return Place(match.group(1), int(match.group(2)))
    return None
