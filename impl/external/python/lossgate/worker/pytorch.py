# SPDX-License-Identifier: Apache-2.0
"""torch as far as the interpreter has it: without it the worker still answers hello, and says why."""

from __future__ import annotations

import gc
import re
import sys
from typing import Any

from lossgate.worker.trouble import Trouble, one_line

_collects = gc.isenabled()
gc.disable()  # an eighth of the import would be a search for garbage, of which it makes little
try:
    import torch
    WHY_ABSENT = ""
except Exception as error:  # whatever a broken installation raises: hello answers with it
    torch = None
    WHY_ABSENT = f"{type(error).__name__}: {error}"
finally:
    if _collects:
        gc.enable()
try:
    from torch.utils._python_dispatch import TorchDispatchMode
except Exception:  # too old, which hello says
    TorchDispatchMode = object


LEAST_TORCH = (2, 1)


def check_torch() -> None:
    if torch is None:
        raise Trouble(f"torch cannot be imported by {sys.executable} ({WHY_ABSENT}); install torch there, or name "
                      "the interpreter that has it")
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if version < LEAST_TORCH:
        raise Trouble(f"torch {torch.__version__} is too old; {'.'.join(map(str, LEAST_TORCH))} or newer is needed")


def usable_device(name: str) -> Any:
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
        return device
    except Exception as error:
        raise Trouble(f"device {name!r} is not usable with this torch ({one_line(error)}); write device = \"cpu\"") from None


def works(device: Any) -> bool:
    """Whether anything runs there: after a device assert nothing does, in this process."""
    try:
        (torch.ones(1, device=device) + 1).cpu()
        return True
    except Exception:
        return False
