# SPDX-License-Identifier: Apache-2.0
"""From many failures of known causes: into how many buckets they fall, and how pure those are."""

from __future__ import annotations

from collections import Counter, defaultdict

from figure import Figure, table
from proportion import percent
from sections import Section, in_hashed_half

SLACK, PURE, FAILURES = 0.05, 0.98, 10_000


def by_diagnosis(units: list[dict], stage: str) -> dict[tuple[str, str], Counter]:
    """What a loss's failures are called, whoever made them, and of what class the fault was."""
    buckets: dict[tuple[str, str], Counter] = defaultdict(Counter)
    for unit in units:
        for cause, count in unit[stage]["causes"].items():
            buckets[unit["loss"], cause][unit["fault"]] += count
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
        for stage, words in (("met", "as they were met"), ("minimal", "made small")):
            buckets = by_diagnosis(of, stage)
            figures.append(Figure(f"buckets by loss and cause, {words}, {name}", f"{known} +- 5 %", str(len(buckets)),
                                  abs(len(buckets) - known) <= SLACK * known))
            figures.append(Figure(f"purity, {words}, {name}", ">= 98 %", percent(purity(buckets)),
                                  purity(buckets) >= PURE))
            figures.append(Figure(f"fingerprints of {len(of)} implementations, {words}, {name}", "",
                                  str(len({f for u in of for f in u[stage]["fingerprints"]})), None))
    for unit in shown:
        causes = Counter(unit["minimal"]["causes"])
        if len(causes) > 1:
            rows.append((f"`{unit['variant']}`", unit["loss"], unit["fault"], len(unit["minimal"]["fingerprints"]),
                         ", ".join(f"{cause} {percent(n / causes.total())}" for cause, n in causes.most_common(4))))
    body = ["A bucket is a loss and what experiments call the cause; it is pure where the faults in it are registered as one "
            "class. A fingerprint (E6) also has the property, the kind of place and the options that it takes.",
            "", "Variants whose failures have more than one name when they are small:", "",
            *table(("variant", "loss", "fault", "fingerprints", "named"), rows)]
    return figures, body
