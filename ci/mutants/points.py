# SPDX-License-Identifier: Apache-2.0
"""Places where a small change would make another program, found in the syntax tree that clang has."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Iterator, NamedTuple, Optional

from clang.cindex import Cursor, CursorKind, Index, TranslationUnit

from edits import Edit


class Point(NamedTuple):
    file: str  # from the root of the project on
    line: int
    kind: str  # arithmetic, comparison, logic, constant, branch, sign
    change: str
    edits: tuple[Edit, ...]


FUNCTORS = {"+": "std::plus<>", "-": "std::minus<>", "*": "std::multiplies<>", "/": "std::divides<>",
            "<": "std::less<>", "<=": "std::less_equal<>", ">": "std::greater<>", ">=": "std::greater_equal<>",
            "==": "std::equal_to<>", "!=": "std::not_equal_to<>"}
OTHER = {"+": "-", "-": "+", "*": "/", "/": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ASSIGNING = {"+=": ("Add", "Subtract", "-="), "-=": ("Subtract", "Add", "+="), "*=": ("Multiply", "Divide", "/="),
             "/=": ("Divide", "Multiply", "*=")}
# What must be known when the program is compiled cannot wait for a variable.
CONSTANT = {CursorKind.ENUM_CONSTANT_DECL, CursorKind.STATIC_ASSERT, CursorKind.TEMPLATE_TEMPLATE_PARAMETER,
            CursorKind.TEMPLATE_NON_TYPE_PARAMETER, CursorKind.TYPE_ALIAS_DECL, CursorKind.CONCEPT_DECL}
# Not constant by what stands first in them.
SCOPES = {CursorKind.NAMESPACE, CursorKind.CLASS_DECL, CursorKind.STRUCT_DECL, CursorKind.CLASS_TEMPLATE}


class Walk:
    """The points of the project's own files in one translation unit."""

    def __init__(self, root: Path, wanted: set[str]) -> None:
        self.root = root
        self.wanted = wanted
        self.texts: dict[str, bytes] = {}

    def text(self, file: str) -> bytes:
        if file not in self.texts:
            self.texts[file] = (self.root / file).read_bytes()
        return self.texts[file]

    def file_of(self, cursor: Cursor) -> Optional[str]:
        file = cursor.location.file
        if file is None:
            return None
        path = Path(file.name).resolve()
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else None

    def walk(self, cursor: Cursor, depth: int = 0) -> Iterator[Point]:
        for child in cursor.get_children():
            if depth == 0 and self.file_of(child) not in self.wanted:
                continue
            if child.kind in CONSTANT or self._constant(child):
                continue
            yield from self._here(child, depth)
            yield from self.walk(child, depth + 1)

    def _constant(self, cursor: Cursor) -> bool:
        if not cursor.kind.is_declaration() or cursor.kind in SCOPES:
            return False
        file = self.file_of(cursor)
        start = cursor.extent.start.offset
        return file is not None and b"constexpr" in self.text(file)[start:start + 60].split(b"(")[0].split(b"=")[0]

    def _span(self, cursor: Cursor, file: str) -> Optional[tuple[int, int]]:
        """Where the cursor's text lies; None where a macro wrote it."""
        start, end = cursor.extent.start, cursor.extent.end
        if start.file is None or end.file is None or start.file.name != end.file.name or start.offset >= end.offset:
            return None
        return (start.offset, end.offset) if self.file_of(cursor) == file else None

    def _here(self, cursor: Cursor, depth: int) -> Iterator[Point]:
        file = self.file_of(cursor)
        if file not in self.wanted:
            return
        span = self._span(cursor, file)
        if span is None:
            return
        kind = cursor.kind
        children = list(cursor.get_children())

        def point(kind_of: str, change: str, *edits: tuple[int, int, str]) -> Point:
            return Point(file, cursor.location.line, kind_of, change,
                         tuple(Edit(start, end, depth, text) for start, end, text in edits))

        operated = kind in (CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR) or (
            kind == CursorKind.CALL_EXPR and cursor.spelling.startswith("operator"))
        if operated:
            yield from self._operation(file, span, children, point)
        elif kind == CursorKind.UNARY_OPERATOR and re.match(rb"-(?!-)", self.text(file)[span[0]:span[1]]):
            yield point("sign", "-x is x", (span[0], span[0] + 1, "lossgate::mutant::negated<{}>("), (span[1], span[1], ")"))
        elif kind in (CursorKind.INTEGER_LITERAL, CursorKind.FLOATING_LITERAL):
            yield from self._literal(self.text(file)[span[0]:span[1]].decode(), span, point)
        elif kind in (CursorKind.IF_STMT, CursorKind.CONDITIONAL_OPERATOR) and children:
            condition = self._span(children[0], file)
            header = self.text(file)[span[0]:condition[0] if condition else span[0]]
            if condition and children[0].kind.is_expression() and b"constexpr" not in header and b";" not in header:
                yield point("branch", "the other branch", (condition[0], condition[0], "lossgate::mutant::condition<{}>("),
                            (condition[1], condition[1], ")"))

    def _operation(self, file: str, span: tuple[int, int], children: list[Cursor], point) -> Iterator[Point]:
        if len(children) not in (2, 3):
            return
        left, right = self._span(children[0], file), self._span(children[-1], file)
        if left is None or right is None or left[0] != span[0] or right[1] != span[1] or left[1] > right[0]:
            return
        between = self.text(file)[left[1]:right[0]].decode()
        operator = between.strip()
        at = left[1] + len(between) - len(between.lstrip())
        ends = (at, at + len(operator))
        if operator in OTHER:
            other = OTHER[operator]
            kind = "arithmetic" if operator in "+-*/" else "comparison"
            call = f"lossgate::mutant::binary<{{}}, {FUNCTORS[operator]}, {FUNCTORS[other]}>("
            yield point(kind, f"{operator} is {other}", (span[0], span[0], call), (*ends, ","), (span[1], span[1], ")"))
        elif operator in ASSIGNING:
            as_, becomes, other = ASSIGNING[operator]
            call = f"lossgate::mutant::assigned<{{}}, lossgate::mutant::{as_}, lossgate::mutant::{becomes}>("
            yield point("arithmetic", f"{operator} is {other}", (span[0], span[0], call), (*ends, ","),
                        (span[1], span[1], ")"))
        elif operator in ("&&", "||"):
            opened = "(lossgate::mutant::lives({}) || (" if operator == "&&" else "(!lossgate::mutant::lives({}) && ("
            yield point("logic", f"left of {operator} left away", (left[0], left[0], opened), (left[1], left[1], "))"))

    @staticmethod
    def _literal(text: str, span: tuple[int, int], point) -> Iterator[Point]:
        digits = text.rstrip("uUlLfFzZ")
        suffix = text[len(digits):]
        try:
            other = str(int(digits, 0) + 1) if digits.isalnum() and not digits.startswith("0x") else repr(
                2 * float(digits) if float(digits) else 1.0)
        except ValueError:
            return  # hexadecimal floating point, separators
        yield point("constant", f"{text} is {other}{suffix}",
                    (span[0], span[1], f"(lossgate::mutant::lives({{}}) ? {other}{suffix} : {text})"))


def commands(root: Path, build: Path, compiled: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Each of these files with the arguments by which it is compiled, without its output."""
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        file = Path(entry["file"]).resolve()
        if not file.is_relative_to(root) or str(file.relative_to(root)) not in compiled:
            continue
        words = shlex.split(entry["command"])
        words = words[next(at for at, word in enumerate(words) if "clang" in word) + 1:]  # behind a compiler cache
        yield str(file), [word for before, word in zip(["", *words], words)
                          if word not in ("-c", "-o", entry["file"]) and before != "-o"]


def points(root: Path, build: Path, wanted: set[str], compiled: set[str]) -> list[Point]:
    """Those of the files in `wanted`, seen from the files in `compiled`, once each."""
    found: dict[tuple, Point] = {}
    for file, words in commands(root, build, compiled):
        unit = Index.create().parse(file, args=words, options=TranslationUnit.PARSE_NONE)
        for point in Walk(root, wanted).walk(unit.cursor):
            found.setdefault((point.file, point.edits[0].start, point.kind), point)
    return sorted(found.values(), key=lambda point: (point.file, point.edits[0].start, point.kind))
