# SPDX-License-Identifier: Apache-2.0
"""From many failures of known causes: into how many buckets they fall, and how pure those are."""

from __future__ import annotations

from collections import Counter, defaultdict

from figure import Figure, table
from proportion import percent
from sections import Section, in_hashed_half

SLACK, PURE, FAILURES = 0.05, 0.98, 10_000


def by_cause(units: list[dict]) -> dict[tuple[str, str], Counter]:
    """What the faults of a loss are called, whoever made them, and of what class the failures in them are."""
    buckets: dict[tuple[str, str], Counter] = defaultdict(Counter)
    for unit in units:
        for fault in unit["faults"]:
            buckets[unit["loss"], fault["cause"]][unit["fault"]] += fault["failures"]
    return buckets


def purity(buckets: dict[tuple[str, str], Counter]) -> float:
    total = sum(count.total() for count in buckets.values())
    return sum(max(count.values()) for count in buckets.values()) / total if total else 0.0


def section(units: list[dict]) -> Section:
    figures, rows = [], []
    shown = [unit for unit in units if unit["failures"]]
    for name, of in (("all variants", shown), ("the half chosen by hash", [u for u in shown if in_hashed_half(u)])):
        failures, known = sum(u["failures"] for u in of), len({(u["loss"], u["fault"]) for u in of})
        figures.append(Figure(f"failures, {name}", f">= {FAILURES:,}", f"{failures:,} of {known} causes",
                              failures >= FAILURES and known >= 30))
        buckets = by_cause(of)
        figures.append(Figure(f"buckets by loss and cause, {name}", f"{known} +- 5 %", str(len(buckets)),
                              abs(len(buckets) - known) <= SLACK * known))
        figures.append(Figure(f"purity, {name}", ">= 98 %", percent(purity(buckets)), purity(buckets) >= PURE))
        figures.append(Figure(f"faults that {len(of)} implementations are said to have, {name}", "",
                              str(sum(len(u["faults"]) for u in of)), None))
        figures.append(Figure(f"fingerprints, {name}", "", str(sum(u["fingerprints"] for u in of)), None))
    for unit in shown:
        if len(unit["faults"]) > 1:
            named = sorted(((fault["failures"], fault["cause"]) for fault in unit["faults"]), reverse=True)
            rows.append((f"`{unit['variant']}`", unit["loss"], unit["fault"], unit["fingerprints"],
                         ", ".join(f"{cause} {percent(n / unit['failures'])}" for n, cause in named[:4])))
    body = ["Failures are named and put together as in a campaign: the first of each fingerprint (E6) is made simple and explained, "
            "and fingerprints are grouped by fault (E9). A bucket is a loss and the cause of a fault, whoever has it; it is pure where "
            "the faults in it are registered as one class.",
            "", "Variants whose failures are taken for more than one fault:", "",
            *table(("variant", "loss", "fault", "fingerprints", "named"), rows)]
    return figures, body
