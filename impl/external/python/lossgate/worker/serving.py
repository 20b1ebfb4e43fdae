# SPDX-License-Identifier: Apache-2.0
"""Frames in, frames out, until the other side closes."""

from __future__ import annotations

import io
import sys
from typing import Any

from lossgate.worker.conversation import Worker
from lossgate.worker.frames import Encoder, read_frame, write_all
from lossgate.worker.pytorch import torch
from lossgate.worker.trouble import Trouble


def serve(entry: Any, request_fd: int, reply_fd: int, contained: bool = False) -> None:
    """Answers requests until the other side closes. `entry`: a live callable, the text of an entry, or None for hello's."""
    worker = Worker(entry, contained)
    threads = torch.get_num_threads() if torch is not None and not contained else 1
    paths = list(sys.path)
    stream = io.BufferedReader(io.FileIO(request_fd, "rb", closefd=False), 1 << 16)
    try:
        while True:
            try:
                frame = read_frame(stream)
            except Trouble as error:  # the next frame cannot be found any more
                write_all(reply_fd, Encoder().frame("trouble", None, (("message", str(error)),), []))
                return
            if frame is None:
                return
            write_all(reply_fd, worker.answer(frame))
    except BrokenPipeError:
        return
    finally:
        if not contained and torch is not None:
            torch.set_num_threads(threads)
            sys.path[:] = paths
