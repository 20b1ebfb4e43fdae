# SPDX-License-Identifier: Apache-2.0
"""Shows each genuine fault of JUDGED.md by a few lines that call the release, and nothing of lossgate's checks.

    reproduce.py RELEASES [NAME...]

RELEASES has a folder PROJECT-VERSION for each release, as ci/upstream.sh leaves them, or as
`pip install --no-deps --target RELEASES/PROJECT-VERSION PROJECT==VERSION` makes them (Liger's Triton kernels need
triton-3.6.0 beside them); torch is that of the interpreter. NAME is a fault's, or how names begin: `trl.` is all
of TRL.

One line for each fault and release says `reproduced`, or `gone` where another release computes the formula in the
same call, or `missing`, and the numbers. Then faults are counted by release. Exit status: 0; 1 where a release does not do
what is written here; 2 where RELEASES or NAME is wrong.
"""
from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import torch
from fault import FAULTS, Fault, Seen

import advantage_faults  # noqa: F401  what is imported registers its faults
import liger_faults  # noqa: F401
import openrlhf_faults  # noqa: F401
import policy_faults  # noqa: F401
import rollout_faults  # noqa: F401
import swift_faults  # noqa: F401
import torch_faults  # noqa: F401
import torchtune_faults  # noqa: F401
import trl_faults  # noqa: F401

NEEDED = "triton-3.6.0"


def paths(releases: Path, spec: str) -> list:
    return [] if spec.startswith("torch==") else [releases / spec.replace("==", "-")]


def is_here(releases: Path, spec: str) -> bool:
    return all(path.is_dir() for path in paths(releases, spec)) and (
        not spec.startswith("torch==") or torch.__version__.split("+")[0] == spec[len("torch=="):])


def seen(found: Fault, releases: Path, spec: str) -> Seen:
    texts = [str(path) for path in paths(releases, spec)]
    sys.path[:0] = texts
    try:
        return found.show()
    finally:
        del sys.path[: len(texts)]


def wanted(names: list) -> list:
    for name in names:
        if not any(known.startswith(name) for known in FAULTS):
            stop(f"no fault is called {name}; there are {', '.join(FAULTS)}")
    return [found for found in FAULTS.values() if not names or found.name.startswith(tuple(names))]


def stop(why: str) -> None:
    print(f"reproduce.py: {why}", file=sys.stderr)
    sys.exit(2)


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments or {"-h", "--help"} & set(arguments):
        print(__doc__.strip())
        return 0 if arguments else 2
    releases = Path(arguments[0])
    if not releases.is_dir():
        stop(f"no folder {releases}; releases are kept there as PROJECT-VERSION")
    sys.path.append(str(releases / NEEDED))
    counts: Counter = Counter()
    surprises = 0
    for found in wanted(arguments[1:]):
        print(f"{found.name}: {found.title}")
        for spec in (*found.shown_by, *found.gone_from):
            if not is_here(releases, spec):
                print(f"  {spec:22} missing")
                continue
            result = seen(found, releases, spec)
            expected = spec in found.shown_by
            surprises += result.wrong != expected
            counts[spec, found.far] += result.wrong
            word = {True: "reproduced", False: "gone"}[result.wrong] + ("" if result.wrong == expected else " (NOT AS WRITTEN)")
            print(f"  {spec:22} {word}: {result.numbers}")
    print("\n| release | faults reproduced | that take far numbers |\n|---|---|---|")
    for spec in sorted({spec for spec, _ in counts}):
        print(f"| {spec} | {counts[spec, False]} | {counts[spec, True]} |")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
