# SPDX-License-Identifier: Apache-2.0
"""Reads what `ptxas -v` printed and writes a line for each kernel; fails where one spills.

python3 ci/ptxas.py LOG NVCC_RELEASE
"""

import re
import subprocess
import sys
from typing import NamedTuple


class Kernel(NamedTuple):
    architecture: str
    name: str
    registers: int
    stack: int
    spills: int


def demangled(names: list[str]) -> list[str]:
    """Without namespaces, parameters and what the compiler adds."""
    shown = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    plain = (re.sub(r"lossgate::impl::|\(anonymous namespace\)::|^void ", "", n) for n in shown.stdout.splitlines())
    return [re.sub(r"\(.*", "", n) for n in plain]


def kernels(log: str) -> list[Kernel]:
    found = re.findall(
        r"Compiling entry function '(\w+)' for 'sm_(\w+)'.*?"
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads.*?"
        r"Used (\d+) registers",
        log,
        re.DOTALL,
    )
    names = demangled([name for name, *_ in found])
    rows = [
        Kernel(f"sm_{architecture}", name, int(registers), int(stack), int(stores) + int(loads))
        for name, (_, architecture, stack, stores, loads, registers) in zip(names, found)
    ]
    return sorted(rows, key=lambda k: (k.name, int(re.sub(r"\D", "", k.architecture))))


def main(log_path: str, release: str) -> int:
    with open(log_path, encoding="utf-8") as file:
        rows = kernels(file.read())
    print(f"ptxas of nvcc {release}: registers, bytes of stack, bytes spilled")
    for k in rows:
        print(f"{k.architecture:7} {k.registers:4} {k.stack:4} {k.spills:4}  {k.name}")
    spilling = sum(k.spills > 0 for k in rows)
    print(f"{len(rows)} kernels, {spilling} spill")
    return 0 if rows and not spilling else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
