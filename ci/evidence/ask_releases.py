# SPDX-License-Identifier: Apache-2.0
"""Asks released implementations on benign data whether they compute what the reference does, and writes
FOLDER/witnesses.json.

  ask_releases.py --out FOLDER --lossgate COMMAND --commit COMMIT --command TEXT [--full] [--seed N]

They are installed, and asked, by ci/upstream.sh. A release that cannot be had is said and left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from kept_record import Record, arguments

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ("trl==1.16.0", "verl==0.9.1", "openrlhf==0.11.2", "skyrl==0.4.0", "torchtune==0.6.1", "areal==1.0.4",
            "liger-kernel==0.8.5", "liger-kernel+triton==0.8.5", "unsloth-zoo==2026.10.9", "transformers==5.23.0",
            "torch==2.11.0", "optax==0.2.8", "ms-swift==4.6.0")
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


def units(release: str, record: dict, seconds: float) -> dict[str, dict]:
    """What each subject answered, and its share of the time."""
    found = {}
    cells = [cell for cell in record["cells"] if cell["property"] in ASKED]
    for cell in cells:
        found[f"{release}/{cell['implementation']}/{cell['dtype']}"] = {
            "release": release, "subject": cell["implementation"], "loss": cell["loss"], "dtype": cell["dtype"],
            "cases": cell["cases"], "verdicts": cell["verdicts"], "worst_ratio": cell["worst_ratio"],
            "seconds": seconds / len(cells)}
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--lossgate", type=Path, required=True)
    given = parser.parse_args()
    record = Record("witnesses", STATEMENT, given)
    for release in RELEASES:
        if any(unit.startswith(release + "/") for unit in record.content["units"]):
            continue
        print(f"evidence: asking {release}", file=sys.stderr, flush=True)
        start = time.monotonic()
        try:
            run = ask(release, given.out / "witnesses", 1000 if given.full else 40, given.seed, given.lossgate)
            record.add(units(release, json.loads(run.read_text(encoding="utf-8")), time.monotonic() - start))
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"evidence: {release} is left out: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
