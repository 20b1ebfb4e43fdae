# SPDX-License-Identifier: Apache-2.0
"""The command `lossgate`: the program that is installed with this package, and `lossgate demo`."""

from __future__ import annotations

import os
import re
import subprocess
import sys

DEMO = "  demo                        Show a finite loss over a NaN gradient, in the torch of this Python\n"


class NotInstalled(RuntimeError):
    """The program does not lie where the package expects it."""


def program() -> str:
    """Path of the program; LOSSGATE_PROGRAM names another, such as one in a build folder."""
    named = os.environ.get("LOSSGATE_PROGRAM")
    if named:
        path = os.path.abspath(named)
    else:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "lossgate")
    if not os.access(path, os.X_OK):
        raise NotInstalled(f"{path} is no program; install lossgate with pip, or name the program in LOSSGATE_PROGRAM")
    return path


def environment() -> dict[str, str]:
    """Where `python3` means this interpreter first, also in an environment that was not activated."""
    variables = dict(os.environ)
    folder = os.path.dirname(sys.executable)
    folders = variables.get("PATH", os.defpath).split(os.pathsep)
    if os.access(os.path.join(folder, "python3"), os.X_OK) and folders[0] != folder:
        variables["PATH"] = os.pathsep.join([folder, *folders])
    return variables


def main() -> int:
    if sys.argv[1:2] == ["demo"]:
        from lossgate import demo
        return demo.main(sys.argv[2:])
    try:
        path = program()
    except NotInstalled as error:
        print(f"lossgate: {error}", file=sys.stderr)
        return 3
    if sys.argv[1:] in (["--help"], ["-h"]):
        return _help(path)
    os.execve(path, ["lossgate", *sys.argv[1:]], environment())


def _help(path: str) -> int:
    """What the program says of itself, and the one verb that it has not."""
    done = subprocess.run([path, "--help"], stdout=subprocess.PIPE, text=True, check=False)
    print(re.sub(r"(?m)(^Subcommands:\n(?:  .*\n)+)", lambda block: block.group(1) + DEMO, done.stdout, count=1), end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
