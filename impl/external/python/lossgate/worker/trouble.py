# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between the worker and its subject, and how it is said in one line."""

from __future__ import annotations

from typing import Iterable

LONGEST_MESSAGE = 2000


class Trouble(Exception):
    """The worker cannot go on with this subject; the message says what to do."""


class Unmatched(Trouble):
    """Parameters of the subject stand for nothing of the loss."""

    def __init__(self, message: str, taken: Iterable[str], lacking: Iterable[str]) -> None:
        super().__init__(message)
        self.taken, self.lacking = list(taken), list(lacking)


class BadResult(Exception):
    """The subject returned something that is no loss."""


class NotReduced(BadResult):
    """The subject returned terms, where one number is asked for."""


class StrayGradient(BadResult):
    """The loss depends on a position that a function which shifts labels leaves out."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.output = f"gradient.{field}"


def clean(text: str) -> str:
    """Text that any reader of UTF-8 takes: names of files may hold bytes that are none."""
    return text.encode("utf-8", "replace").decode()


def one_line(error: BaseException) -> str:
    """The message of an exception as one clean line of bounded length."""
    try:
        text = str(error)
    except BaseException:
        text = f"its message could not be read ({type(error).__name__})"
    text = clean(" ".join(text.split()))
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + " ..."
