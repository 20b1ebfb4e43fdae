# SPDX-License-Identifier: Apache-2.0
"""Asks released implementations on benign data whether they compute what the reference does, and writes
FOLDER/witnesses.json.

  ask_releases.py --out FOLDER --lossgate COMMAND --commit COMMIT --command TEXT [--full] [--seed N]

They are installed, and asked, by ci/upstream.sh. A release that cannot be had is said and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ("trl==1.16.0", "verl==0.9.1", "openrlhf==0.11.2", "skyrl==0.4.0", "torchtune==0.6.1", "areal==1.0.4",
            "liger-kernel==0.8.5", "liger-kernel+triton==0.8.5", "unsloth-zoo==2026.10.9", "transformers==5.23.0",
            "torch==2.11.0", "optax==0.2.8")
ASKED = ("reference_agreement",)
STATEMENT = ("Released implementations on benign data: do two that have nothing in common with each other compute what the "
             "reference does?")


def ask(release: str, out: Path, cases: int, seed: int, lossgate: Path) -> Path:
    nothing_stored = out / "no_cases"
    nothing_stored.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "LOSSGATE": str(lossgate.resolve()), "LOSSGATE_OUT": str(out.resolve())}
    subprocess.run([ROOT / "ci" / "upstream.sh", release, "--", "--profile", "benign", "--cases", str(cases), "--seed",
                    str(seed), "--corpus", str(nothing_stored.resolve()), "--property", *ASKED], env=environment,
                   cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return out / release.replace("==", "-") / "run.json"


def units(release: str, record: dict) -> dict[str, dict]:
    """What each subject answered, and what its formula is fixed to."""
    found = {}
    for cell in record["cells"]:
        if cell["property"] not in ASKED:
            continue
        found[f"{release}/{cell['implementation']}/{cell['dtype']}"] = {
            "release": release, "subject": cell["implementation"], "loss": cell["loss"], "dtype": cell["dtype"],
            "cases": cell["cases"], "verdicts": cell["verdicts"], "worst_ratio": cell["worst_ratio"]}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lossgate", type=Path, required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--command", required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", dest="full", action="store_false")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    cases = 1000 if given.full else 40
    content = {"kind": "witnesses", "statement": STATEMENT, "commit": given.commit, "command": given.command,
               "seed": given.seed, "effort": "full" if given.full else "quick", "instruction_set": "any", "torch": "loaded",
               "seconds": 0.0, "missing": [], "units": {}}
    for release in RELEASES:
        start = time.monotonic()
        print(f"evidence: asking {release}", file=sys.stderr, flush=True)
        try:
            run = ask(release, given.out / "witnesses", cases, given.seed, given.lossgate)
            content["units"].update(units(release, json.loads(run.read_text(encoding="utf-8"))))
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"evidence: {release} is left out: {error}", file=sys.stderr, flush=True)
            content["missing"].append(release)
        content["seconds"] += time.monotonic() - start
        fresh = given.out / "witnesses.json.new"
        fresh.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        fresh.replace(given.out / "witnesses.json")


if __name__ == "__main__":
    main()
