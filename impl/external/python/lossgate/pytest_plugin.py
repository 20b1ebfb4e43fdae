# SPDX-License-Identifier: Apache-2.0
"""The pytest fixture `lossgate`.

    def test_loss(lossgate):
        lossgate.check("ppo_clip", my_loss, reduction="token_mean", clip_low=0.2)
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
from types import FrameType
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Union

import pytest

# What loads torch or starts programs is imported by a check: the plugin is loaded in every run of pytest.

FOLDER = ".lossgate"
_SUMMARY = "lossgate"
_FIRST = 100


class Gate:
    """Checks losses for one test; what it finds is left in a folder of the test's."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._node = request.node
        self._root = os.path.join(str(request.config.rootpath), FOLDER)
        self._checks = 0

    def check(self, loss: str, function: Callable, *, reduction: Union[str, Sequence[str], None] = None,
              dtypes: Sequence[Any] = ("f32",), cases: int = 2000, profile: str = "hostile", seed: int = 1,
              contract: Optional[Mapping[str, Any]] = None, arguments: Optional[Mapping[str, str]] = None,
              outputs: Union[str, Sequence[str]] = (), properties: Union[str, Sequence[str]] = (),
              fail_on: str = "rare", waivers: Union[str, os.PathLike, None] = None,
              case: Union[str, os.PathLike, None] = None, subject: Optional[Mapping[str, Any]] = None,
              **options: Any) -> Any:
        """Fails the test where `function` is not the loss within what its arithmetic allows.

        loss        one of `lossgate list losses`, or ppo_clip, gpg, gspo, forward_kl, reverse_kl, value_loss
        function    anything callable; its parameters are matched by name
        reduction   what it computes if it takes no parameter of that name
        contract, arguments, outputs, subject
                    as in a lossgate.toml; `subject` holds further keys, such as {"arithmetic": {"compute": "f32"}}
        case        a .case file: this case alone instead of stored and drawn ones
        waivers     a file of findings that are accepted until a day
        options     of the loss, fixed to these values; the others are those that the function takes, or the
                    standard ones

        Returns what the gate said (lossgate.live.Answer).
        """
        __tracebackhide__ = True
        from lossgate import live

        if not callable(function):
            raise live.MistakeInCall(f"{function!r} cannot be called: give the function itself")
        question = live.Question(
            loss=loss, name=live.name_of(function), options=options, reductions=_several(reduction),
            dtypes=_several(dtypes), outputs=_several(outputs), contract=contract or {},
            arguments=arguments or {}, more=subject or {})
        flags = ["--profile", profile, "--seed", str(seed), "--fail-on", fail_on]
        for name in _several(properties):
            flags += ["--property", name]
        if waivers is not None:
            flags += ["--waivers", os.fspath(waivers)]
        # Most faults show early, and looking into many violations takes time.
        for some in [cases] if case is not None or cases <= 4 * _FIRST else [_FIRST, cases]:
            with tempfile.TemporaryDirectory(prefix="lossgate-") as folder:
                answer = live.ask(function, question, folder, [*flags, "--cases", str(some)], case)
                red = answer.red
                kept = self._keep(folder) if red else ""
            if red:
                break
        summary = _summary(question, answer)
        self._node.user_properties.append((_SUMMARY, summary))
        self._node.add_report_section("call", _SUMMARY, summary)
        if red:
            pytest.fail(_failure(function, question, answer, kept, sys._getframe(1)), pytrace=False)
        if answer.status != 0 or not answer.verdicts().get("held"):
            pytest.fail(f"{summary}\nnothing held, so nothing was shown; it said:\n{answer.printed}", pytrace=False)
        return answer

    def _keep(self, folder: str) -> str:
        """Moves the results to a folder of this test, which version control does not see."""
        os.makedirs(self._root, exist_ok=True)
        with open(os.path.join(self._root, ".gitignore"), "w", encoding="utf-8") as file:
            file.write("*\n")
        self._checks += 1
        name = re.sub(r"[^\w.=-]+", "_", self._node.nodeid).strip("_")[-120:]
        kept = os.path.join(self._root, name if self._checks == 1 else f"{name}_{self._checks}")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept)
        return os.path.relpath(kept)


def _several(names: Union[str, Sequence[Any], None]) -> list:
    """One name stands for a list of one."""
    return [names] if isinstance(names, str) else list(names or ())


def _summary(question: Any, answer: Any) -> str:
    verdicts = answer.verdicts()
    counts = ", ".join(f"{verdict} {verdicts[verdict]}" for verdict in verdicts if verdicts[verdict])
    relaxed = sum(subject["relaxed_by_contract"] for subject in answer.record["subjects"])
    counts += f"; relaxed by contract: {relaxed}" if relaxed else ""
    seconds = answer.record["seconds"]
    return (f"{question.name} as {question.loss}: {answer.record['cases_run']} cases in {float(seconds):.1f} s; "
            f"{counts or 'no verdict'}")


def _failure(function: Callable, question: Any, answer: Any, kept: str, caller: FrameType) -> str:
    from lossgate import live
    from lossgate.written_call import written_call

    red = answer.red
    first = red[0]
    case = os.path.join(kept, first["case_file"])
    entry = live.entry_of(function)
    if entry is None:
        again = (written_call(caller, "check", without=["cases", "profile"], case=case)
                 or f"the same call with case={case!r}")
    else:
        config = os.path.join(kept, "lossgate.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(question.toml(entry, interpreter=sys.executable, folder=os.getcwd()))
        again = (f"lossgate replay {shlex.quote(case)} --config {shlex.quote(config)} "
                 f"--impl {question.name} --property {first['property']}")
    lines = [f"{question.name} is not {question.loss}: {len(red)} finding{'s' if len(red) > 1 else ''} "
             f"in {answer.record['cases_run']} cases; the first:", "", answer.text_of(first, again), ""]
    unsaid = [text for subject in answer.record["subjects"] for text in subject.get("taken_as", [])]
    if unsaid:
        lines += [f"not said, and no parameter takes it, so asked at: {', '.join(unsaid)}", ""]
    for finding in red[1:]:
        lines.append(f"also {finding['property']} at {finding['place']}: {finding['cause'] or finding['detail']}")
    lines.append(f"cases: {os.path.join(kept, 'findings')}")
    return "\n".join(lines)


@pytest.fixture
def lossgate(request: pytest.FixtureRequest) -> Gate:
    """`lossgate.check(loss, function, ...)`: is the function the loss, gradients and corners included?"""
    return Gate(request)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    lines = list(_summaries(terminalreporter))
    if lines:
        terminalreporter.section("lossgate")
        for line in lines:
            terminalreporter.line(line)


def _summaries(terminalreporter: Any) -> Iterator[str]:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, text in getattr(report, "user_properties", []):
                if name == _SUMMARY and getattr(report, "when", "") == "call":
                    yield f"{report.nodeid}: {text}"
