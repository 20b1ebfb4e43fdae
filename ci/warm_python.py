# SPDX-License-Identifier: Apache-2.0
"""An interpreter that has imported torch, for tests whose commands start dozens of them.

    ci/warm_python.py serve NAME            until its standard input ends
    ci/warm_python.py program NAME          prints a program that stands in the place of `python`
    ci/warm_python.py forward NAME -c TEXT  what that does for `python -c TEXT`: has it run by a fork of the server

Importing torch takes most of such a command. The fork has the folder, environment and descriptors of whoever
forwards, which ends as it does. Limits of memory, and signals, reach whoever forwards alone: a function that hangs or
runs out of memory takes an interpreter of its own.
"""

from __future__ import annotations

import array
import json
import os
import select
import shlex
import signal
import socket
import struct
import sys
import time

PATIENCE = 180  # seconds, as a subject has to be loaded
STATUS = struct.Struct("<i")
SIZE = struct.Struct("<q")


def address(name: str) -> str:
    return f"\0lossgate-warm-{name}"  # no file is left of it


def received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            sys.exit("the other side is gone")
        data += part
    return data


def forward(name: str, words: list[str]) -> None:
    connection = socket.socket(socket.AF_UNIX)
    until = time.monotonic() + PATIENCE
    while connection.connect_ex(address(name)) != 0:  # it is importing torch
        if time.monotonic() > until:
            sys.exit(f"no interpreter serves {name}")
        time.sleep(0.02)
    message = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
    descriptors = array.array("i", (0, 1, 2))
    connection.sendmsg([SIZE.pack(len(message))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
    connection.sendall(message)
    os.close(0)  # who waits for an end of the pipes waits for that of the fork
    os.close(1)
    status, = STATUS.unpack(received(connection, STATUS.size))
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def become(words: list[str], folder: str, environment: dict[str, str], descriptors: list[int]) -> None:
    option, text = words
    if option != "-c":
        sys.exit(f"python {option} is not served")
    os.setpgid(0, 0)
    for own, descriptor in enumerate(descriptors):
        os.dup2(descriptor, own)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv, sys.path[0] = ["-c"], ""
    main = type(sys)("__main__")
    sys.modules["__main__"] = main
    exec(compile(text, "<string>", "exec"), vars(main))


def answer(connection: socket.socket) -> None:
    """In a fork, which waits for the one that becomes the interpreter."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    first, rights, _, _ = connection.recvmsg(SIZE.size, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    descriptors = list(array.array("i", rights[0][2]))
    words, folder, environment = json.loads(received(connection, *SIZE.unpack(first)))
    child = os.fork()
    if child == 0:
        connection.close()
        return become(words, folder, environment, descriptors)
    try:
        for descriptor in descriptors:
            os.close(descriptor)
        _, status = os.waitpid(child, 0)
        connection.sendall(STATUS.pack(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)))
    finally:
        os._exit(0)  # whether or not somebody waits for it


def serve(name: str) -> None:
    """In the server this does not return; in a fork it does, and what it became has ended."""
    import gc

    gc.disable()
    import torch  # noqa: F401
    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address(name))
    listener.listen(64)
    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        if 0 in ready:
            os._exit(0)  # to end as interpreters do takes half a second
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return answer(connection)
        connection.close()


def program(name: str) -> str:
    words = [sys.executable, "-IS", os.path.abspath(__file__), "forward", name]
    return f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'


_kept = []  # until this process ends, and the servers with it


def in_place_of(python: str) -> str:
    """The path of a program that stands in the place of this interpreter."""
    import subprocess  # whoever forwards starts without these
    import tempfile

    name = f"{os.getpid()}-{len(_kept)}"
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, "python")
    with open(path, "w", encoding="utf-8") as file:
        file.write(program(name))
    os.chmod(path, 0o700)
    _kept.append((folder, subprocess.Popen([python, __file__, "serve", name], stdin=subprocess.PIPE,
                                           env={**os.environ, "OMP_NUM_THREADS": "1"})))
    return path


if __name__ == "__main__":
    verb, name, *words = sys.argv[1:]
    if verb == "serve":
        serve(name)
    elif verb == "program":
        print(program(name), end="")
    else:
        forward(name, words)
