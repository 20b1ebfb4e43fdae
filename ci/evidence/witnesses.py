# SPDX-License-Identifier: Apache-2.0
"""Formulas and the releases that compute them: from what was asked to figures and tables."""

from __future__ import annotations

from figure import Figure, table
from proportion import most

#: Losses that nobody publishes as a function of tensors are left to values worked by hand.
WANTED = 2


def project(unit: dict) -> str:
    return unit["release"].split("==")[0].split("+")[0]


def agrees(unit: dict) -> bool:
    """Something was compared, and everything that was compared agrees."""
    return unit["verdicts"]["held"] > 0 and unit["verdicts"]["violated"] == 0


def section(units: list[dict]) -> tuple[list[Figure], list[str]]:
    losses = sorted({u["loss"] for u in units})
    rows, enough = [], 0
    for loss in losses:
        of = [u for u in units if u["loss"] == loss]
        witnesses = [u for u in of if agrees(u)]
        apart = len({project(u) for u in witnesses})
        enough += apart >= WANTED
        rows.append((loss, apart, sum(u["verdicts"]["held"] for u in witnesses),
                     f"{max((u['worst_ratio'] for u in witnesses), default=0.0):.2f}",
                     ", ".join(f"`{u['subject']}` ({u['release']})" for u in witnesses),
                     ", ".join(f"`{u['subject']}` ({u['release']}): {u['verdicts']['violated']}" for u in of
                               if u["verdicts"]["violated"])))
    figures = [Figure("losses that releases have, and that two projects or more compute as the reference does", "all",
                      most(enough, len(losses)), enough == len(losses))]
    body = ["Every loss is held against values worked by hand from its source too: the tests `Worked*` of "
            "`reference/losses`. Cases are those of each subject's own options; a ratio is the largest error as a share "
            "of what is allowed.", "",
            *table(("loss", "projects", "cases", "largest ratio", "agree", "differ on benign data"), rows)]
    return figures, body
