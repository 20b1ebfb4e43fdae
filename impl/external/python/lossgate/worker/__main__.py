# SPDX-License-Identifier: Apache-2.0
"""The worker as a process of its own, which speaks on its standard input and output."""

from __future__ import annotations

import faulthandler
import os
import resource
import sys
from typing import NoReturn


def take_descriptors() -> tuple[int, int]:
    """Keeps the pipes and gives the subject an empty standard input and standard error to print on."""
    request, reply = os.dup(0), os.dup(1)  # not inheritable: programs that the subject starts lack them
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return request, reply


def main() -> NoReturn:
    """Answers until the other side closes; sys.path must no longer begin with the folder that it runs in."""
    request, reply = take_descriptors()
    faulthandler.enable(file=2)  # where it is when it crashes, or is told to abort since it does not answer
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # that says enough
    from lossgate.worker.serving import serve  # imports torch, whose import may print
    try:
        serve(None, request, reply, contained=True)
        sys.stdout.flush()
        status = 0
    except KeyboardInterrupt:
        status = 130
    os._exit(status)  # no thread or exit hook of the subject's keeps a finished worker alive


if __name__ == "__main__":
    if sys.path and sys.path[0] == os.getcwd():
        del sys.path[0]  # a random.py of the user's must not stand in for the standard library's
    main()
