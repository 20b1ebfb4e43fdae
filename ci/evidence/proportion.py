# SPDX-License-Identifier: Apache-2.0
"""What a count of successes says of a rate: one-sided 95 % bounds after Clopper and Pearson (Biometrika 26, 1934);
3/n where none was seen (Hanley and Lippman-Hand, JAMA 249, 1983)."""

from __future__ import annotations

import math

RISK = 0.05


def at_most(count: int, trials: int, rate: float) -> float:
    """The probability of at most so many successes; sums the shorter tail."""
    if rate <= 0.0 or count >= trials:
        return 1.0
    if rate >= 1.0:
        return 0.0
    if count > trials // 2:
        return 1.0 - at_most(trials - count - 1, trials, 1.0 - rate)
    odds, start = math.log(rate) - math.log1p(-rate), trials * math.log1p(-rate)
    logarithm, terms = start, [start]
    for k in range(1, count + 1):
        logarithm += math.log(trials - k + 1) - math.log(k) + odds
        terms.append(logarithm)
    largest = max(terms)
    return min(1.0, math.exp(largest) * math.fsum(math.exp(term - largest) for term in terms))


def upper_bound(count: int, trials: int) -> float:
    """The rate is not above it, with 95 % confidence."""
    if not 0 <= count <= trials:
        raise ValueError(f"{count} of {trials} is no share")
    if count == trials:
        return 1.0
    if count == 0:
        return min(1.0, 3.0 / trials)
    low, high = count / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if at_most(count, trials, middle) > RISK:
            low = middle
        else:
            high = middle
    return high


def lower_bound(count: int, trials: int) -> float:
    """The rate is not below it, with 95 % confidence."""
    return 1.0 - upper_bound(trials - count, trials)


def percent(rate: float) -> str:
    """Three digits, and never 100 for what is less."""
    share = 100.0 * rate
    if share == 0.0 or share == 100.0:
        return f"{share:.0f} %"
    if share > 99.0:
        return f"{100.0 - float(f'{100.0 - share:.2g}'):.12g} %"
    return f"{share:.3g} %"


def few(count: int, trials: int) -> str:
    """A count that should be 0."""
    if trials == 0:
        return "none asked"
    return f"{count} of {trials:,} (at most {percent(upper_bound(count, trials))})"


def most(count: int, trials: int) -> str:
    """A count that should be all."""
    if trials == 0:
        return "none asked"
    return f"{count:,} of {trials:,} = {percent(count / trials)} (at least {percent(lower_bound(count, trials))})"
