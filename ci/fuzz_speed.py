#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a campaign finds faults, how many cases a second it asks, and how small findings are.

    ci/fuzz_speed.py LOSSGATE faults [--seeds 20] [--founding] [--tables on|off] [--blind] [--seconds 60]
    ci/fuzz_speed.py LOSSGATE compare [--seeds 10] [--cases 4000] [--loss grpo ...] [--out FILE.json]
    ci/fuzz_speed.py LOSSGATE cases [--seconds 10]
    ci/fuzz_speed.py LOSSGATE minimal [--seconds 30]

`faults` searches one faulty implementation at a time from an empty corpus and prints the median
number of cases and seconds, from the start of the command, until the first finding, over the seeds.
`--tables off` draws no special value and moves numbers to random bits alone; `--blind` draws every
case anew, guided by nothing. `compare` does both with the tables off, each with one worker and a
budget in cases, so the clock does not matter: how many executions numeric coverage saves. A search
that finds nothing counts as its budget. What is asked is compiled without instrumentation, so there is
no other guidance. `cases` prints the rate of one worker for each sound implementation, beside that of an
empty target.
`minimal` takes the first finding of each faulty implementation: how many numbers of its case are not
plain, and how many of 10 replays print the same.
"""
from __future__ import annotations

import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

# The losses of the systems that came first: sparse server-teacher distillation and its payload, the
# clamps of fused GRPO, KL estimators, reductions over micro-batches and ranks, the critic.
FOUNDING_LOSSES = ("sparse_jsd", "jsd", "teacher_payload", "prompt_dedup", "grpo", "linear_grpo",
                   "kl_penalty", "advantage_scaling", "value_clip")


HARD = 20  # executions; below, a fault is found before there is anything to be guided by


def campaign(lossgate: str, *words: str) -> tuple[dict, float]:
    """The record of one campaign in a folder of its own, and the seconds that it took."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        done = subprocess.run([lossgate, "fuzz", "--out", folder, *words], capture_output=True,
                              text=True, check=False)
        seconds = time.monotonic() - start
        if done.returncode not in (0, 1):
            raise SystemExit(f"lossgate fuzz {' '.join(words)}: {done.stderr}")
        return json.loads((pathlib.Path(folder) / "run.json").read_text()), seconds


def faulty(lossgate: str) -> list[dict]:
    """Every implementation that is wrong on purpose, as a gate records it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([lossgate, "gate", "--cases", "1", "--out", folder], capture_output=True,
                       check=False)
        record = json.loads((pathlib.Path(folder) / "run.json").read_text())
    return [subject for subject in record["subjects"] if subject["twin"]]


def time_to_faults(lossgate: str, options: argparse.Namespace) -> None:
    words = ["--first", "--budget", f"{options.seconds}s", "--workers", str(options.workers)]
    words += ["--profile", "benign"] if options.tables == "off" else []
    words += ["--blind"] if options.blind else []
    subjects = [s for s in faulty(lossgate) if not options.founding or s["loss"] in FOUNDING_LOSSES]
    print(f"{'loss':<18} {'faulty implementation':<44} {'found':>7} {'cases':>8} {'seconds':>8}")
    medians: list[float] = []
    for subject in subjects:
        cases, seconds, found = [], [], 0
        for seed in range(1, options.seeds + 1):
            record, took = campaign(lossgate, subject["loss"], "--impl", subject["name"], "--seed",
                                    str(seed), *words)
            found += bool(record["findings"])
            cases.append(record["cases_run"])
            seconds.append(took)
        medians.append(statistics.median(seconds))
        print(f"{subject['loss']:<18} {subject['name']:<44} {found:>3}/{options.seeds:<3} "
              f"{statistics.median(cases):>8.0f} {medians[-1]:>8.2f}", flush=True)
    print(f"{len(medians)} implementations, {sum(m <= 1.0 for m in medians)} of them in a second; "
          f"median of the medians "
          f"{statistics.median(medians):.2f} s, the largest {max(medians):.2f} s")


def executions(lossgate: str, subject: dict, options: argparse.Namespace, *words: str) -> list[int | None]:
    """How many cases each seed asks until the first finding; None where the budget shows none."""
    counts: list[int | None] = []
    for seed in range(1, options.seeds + 1):
        record, _ = campaign(lossgate, subject["loss"], "--impl", subject["name"], "--seed", str(seed), "--first",
                             "--workers", "1", "--budget", f"{options.cases} cases", "--profile", "benign", *words)
        counts.append(record["cases_run"] if record["findings"] else None)
    return counts


def median_executions(counts: list[int | None], budget: int) -> float:
    return statistics.median(budget if count is None else count for count in counts)


def sign_test(fewer: int, more: int) -> float:
    """How likely so uneven a split is, or a more uneven one, were both kinds equally likely."""
    of = fewer + more
    tail = sum(math.comb(of, k) for k in range(max(fewer, more), of + 1)) / 2.0**of
    return min(1.0, 2.0 * tail)


def compare(lossgate: str, options: argparse.Namespace) -> None:
    rows = []
    print(f"{'loss':<18} {'faulty implementation':<44} {'guided':>16} {'blind':>16}")
    for subject in faulty(lossgate):
        if options.loss and subject["loss"] not in options.loss:
            continue
        row = {"loss": subject["loss"], "name": subject["name"],
               "guided": executions(lossgate, subject, options),
               "blind": executions(lossgate, subject, options, "--blind")}
        rows.append(row)
        told = [f"{median_executions(row[arm], options.cases):>8.0f} {options.seeds - row[arm].count(None):>3}/"
                f"{options.seeds:<3}" for arm in ("guided", "blind")]
        print(f"{row['loss']:<18} {row['name']:<44} {told[0]:>16} {told[1]:>16}", flush=True)
        if options.out:
            options.out.write_text(json.dumps({"seeds": options.seeds, "cases": options.cases, "faults": rows}))
    print(compared(rows, options.cases))


def compared(rows: list[dict], budget: int) -> str:
    """Medians of both ways beside each other; faults that both find at once tell nothing of guidance."""
    pairs = [(median_executions(row["guided"], budget), median_executions(row["blind"], budget)) for row in rows]
    hard = [(guided, blind) for guided, blind in pairs if max(guided, blind) > HARD]
    fewer, more = sum(g < b for g, b in hard), sum(g > b for g, b in hard)
    ratio = math.exp(statistics.fmean(math.log(b / g) for g, b in hard)) if hard else 1.0
    found = {arm: sum(count is not None for row in rows for count in row[arm]) for arm in ("guided", "blind")}
    searches = sum(len(row["guided"]) for row in rows)
    return (f"{len(rows)} faults, {len(hard)} of them with a median above {HARD} executions either way: guided needs "
            f"fewer for {fewer}, more for {more} (sign test: p = {sign_test(fewer, more):.2g}), {ratio:.2f} x fewer in "
            f"the geometric mean\nfound within {budget} cases: guided {found['guided']} of {searches}, blind "
            f"{found['blind']} of {searches}")


def cases_per_second(lossgate: str, options: argparse.Namespace) -> None:
    """What a second of one worker asks, and what it would ask of a target that answers at once and is asked nothing:
    what is left of the time is drawing, mutation and codec."""
    listed, _ = campaign(lossgate, "--budget", "1s", "--workers", "1")
    print(f"{'loss':<18} {'implementation':<24} {'cases':>8} {'a second':>9} {'empty target':>13}")
    for subject in listed["subjects"]:
        record, _ = campaign(lossgate, subject["loss"], "--impl", subject["name"], "--budget",
                             f"{options.seconds}s", "--workers", "1")
        cases, busy = record["cases_run"], sum(timing["seconds"] for timing in record["timings"])
        print(f"{subject['loss']:<18} {subject['name']:<24} {cases:>8} {cases / record['seconds']:>9.0f} "
              f"{cases / max(record['seconds'] - busy, 1e-9):>13.0f}", flush=True)


def replayed(lossgate: str, file: pathlib.Path, name: str) -> tuple[int, int]:
    """Numbers of the case that are not plain, and how many of ten replays print what the first does."""
    small = subprocess.run([lossgate, "minimise", file, "--impl", name, "--out", file.with_suffix(".min.case")],
                           capture_output=True, text=True, check=False).stdout
    numbers = int(re.findall(r"^  to .*unusual numbers (\d+)", small, re.MULTILINE)[0])
    shown = [subprocess.run([lossgate, "replay", file, "--impl", name], capture_output=True,
                            check=False).stdout for _ in range(10)]
    return numbers, shown.count(shown[0])


def minimal(lossgate: str, options: argparse.Namespace) -> None:
    numbers, alike = [], []
    for subject in faulty(lossgate):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([lossgate, "fuzz", subject["loss"], "--impl", subject["name"], "--first", "--workers",
                            "1", "--budget", f"{options.seconds}s", "--out", folder], capture_output=True, check=False)
            for file in sorted(pathlib.Path(folder).glob("findings/*.case"))[:1]:
                count, same = replayed(lossgate, file, subject["name"])
                numbers.append(count)
                alike.append(same)
                print(f"{subject['loss']:<18} {subject['name']:<44} {count:>4} numbers, {same} of 10 replays alike",
                      flush=True)
    print(f"{len(numbers)} cases, a median of {statistics.median(numbers)} numbers that are not plain; "
          f"{alike.count(10)} with 10 of 10 replays alike")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lossgate")
    parser.add_argument("what", choices=["faults", "compare", "cases", "minimal"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cases", type=int, default=4000, help="what a search of `compare` may ask")
    parser.add_argument("--loss", nargs="*", help="only the faults of these, of `compare`")
    parser.add_argument("--out", type=pathlib.Path, help="where `compare` keeps the numbers of every search")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tables", choices=["on", "off"], default="on")
    parser.add_argument("--founding", action="store_true")
    parser.add_argument("--blind", action="store_true")
    options = parser.parse_args()
    if options.what == "faults":
        time_to_faults(options.lossgate, options)
    elif options.what == "compare":
        compare(options.lossgate, options)
    elif options.what == "cases":
        cases_per_second(options.lossgate, options)
    else:
        minimal(options.lossgate, options)


if __name__ == "__main__":
    main()
