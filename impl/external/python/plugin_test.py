# SPDX-License-Identifier: Apache-2.0
"""The pytest fixture, in runs of pytest inside this one.

    LOSSGATE_PROGRAM=build/default/bin/lossgate PYTHONPATH=impl/external/python .venv/bin/python -m pytest \\
        impl/external/python/plugin_test.py
"""

from __future__ import annotations

import glob
import importlib.metadata
import os
import re
import shlex
import subprocess

import pytest
import torch

import lossgate.live
import lossgate.worker.serving
from lossgate.command import environment, program

pytest_plugins = ["pytester"]

PROGRAM = program()  # its path may begin at the folder that tests are started in

_INSTALLED = any(entry.value == "lossgate.pytest_plugin" for distribution in importlib.metadata.distributions()
                 for entry in distribution.entry_points)
_PLUGIN = [] if _INSTALLED else ["-p", "lossgate.pytest_plugin"]

# pytester forgets what a run has imported, and torch bears to be imported once: with all that it imports when needed.
leaf = torch.ones(1, requires_grad=True)
torch.autograd.grad(leaf * leaf, [leaf], torch.ones(1))

LOSSES = '''
import torch

def sound(logp, old_logp, adv, mask, clip_low=0.2, clip_high=0.2):
    valid, zero = mask != 0, torch.zeros_like(logp)
    logp, old_logp, adv = (torch.where(valid, x, zero) for x in (logp, old_logp, adv))
    ratio = torch.exp((logp - old_logp).clamp(-20, 20))
    term = torch.minimum(ratio * adv, torch.clamp(ratio, 1 - clip_low, 1 + clip_high) * adv)
    return -torch.where(valid, term, zero).sum() / valid.sum().clamp(min=1)

def faulty(logp, old_logp, adv, mask, clip_low=0.2, clip_high=0.2):
    ratio = torch.exp(logp - old_logp)
    term = torch.minimum(ratio * adv, torch.clamp(ratio, 1 - clip_low, 1 + clip_high) * adv)
    return -torch.where(mask, term, 0.0).sum() / mask.sum().clamp(min=1)
'''


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs pytest on a test file with the losses and `body`."""
    monkeypatch.setenv("LOSSGATE_PROGRAM", PROGRAM)
    corpus = pytester.path / "corpora" / "seeds"  # drawn cases alone
    corpus.mkdir(parents=True)
    (pytester.path / "regressions").mkdir()

    def run(body, *flags):
        pytester.makepyfile(test_mine=LOSSES + body)
        return pytester.runpytest_inprocess(*_PLUGIN, "-p", "no:cacheprovider", *flags)
    return run


SOUND = '''
def test_sound(lossgate):
    answer = lossgate.check("ppo_clip", sound, reduction="token_mean", log_ratio_clamp=20, cases=60)
    assert answer.record["cases_run"] == 60
'''
FAULTY = '''
def test_faulty(lossgate):
    lossgate.check("ppo_clip", faulty, reduction="token_mean", clip_low=0.2, cases=12,
                   properties=["finite_forward", "finite_backward"])
'''


def test_a_sound_loss_passes_and_is_summed_up(run, pytester):
    result = run(SOUND)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"test_mine.py::test_sound: sound as ppo_clip: 60 cases in .* held \d+.*; relaxed by contract: \d+"])
    assert not (pytester.path / ".lossgate").exists()


def test_a_faulty_loss_fails_with_the_guilty_line_and_leaves_its_case(run, pytester):
    result = run(FAULTY)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["faulty is not ppo_clip: * in 12 cases; the first:",
                                 "* VIOLATED by faulty (grpo, f32; *",
                                 "  code      * at test_mine.py:11: ratio = torch.exp(logp - old_logp)",
                                 "  place     *", "  actual    *", "  usual fix *", "  replay    lossgate replay *",
                                 "cases: .lossgate/test_mine.py_test_faulty/findings"])
    assert "Traceback" not in result.stdout.str() and "_asked" not in result.stdout.str()
    assert glob.glob(str(pytester.path / ".lossgate/test_mine.py_test_faulty/findings/*.case"))
    assert (pytester.path / ".lossgate/.gitignore").read_text() == "*\n"


def test_a_failure_tells_options_that_nobody_says(run):
    said = re.search("not said, and no parameter takes it, so asked at: (.*)", run(FAULTY).stdout.str()).group(1)
    assert "kl_output_clamp 10" in said and "clip_high" not in said and "log_ratio_clamp" not in said


def test_the_printed_command_shows_it_again(run, pytester):
    text = run(FAULTY).stdout.str()
    words = shlex.split(re.search(r"  replay    lossgate (.*)", text).group(1))
    again = subprocess.run([PROGRAM, *words], env=environment(), capture_output=True, text=True, timeout=120)
    assert again.returncode == 1, again.stderr
    assert "VIOLATED" in again.stdout and "still fails" in again.stdout


def test_one_case_is_asked_alone(run, pytester):
    run(FAULTY)
    case = glob.glob(str(pytester.path / ".lossgate/*/findings/*.case"))[0]
    result = run(f'''
def test_one(lossgate):
    lossgate.check("ppo_clip", faulty, reduction="token_mean", clip_low=0.2, case={case!r})
''')
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["faulty is not ppo_clip: * in 1 cases; the first:"])


def test_a_function_that_no_other_process_can_load_is_asked_again_by_check(run):
    result = run('''
def test_local(lossgate):
    scale = 2.0
    def doubled(*a, **k):
        return scale * sound(*a, **k)
    def mine(logp, old_logp, adv, mask):
        return doubled(logp, old_logp, adv, mask)
    lossgate.check("ppo_clip", mine, reduction="token_mean", log_ratio_clamp=20, cases=20)
''')
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["reference_agreement VIOLATED by mine*",
                                 "  replay    lossgate.check('ppo_clip', mine, reduction='token_mean', "
                                 "log_ratio_clamp=20, case='.lossgate/*.case')"])


def test_the_call_that_asks_a_method_again_can_be_written_in_place_of_the_first(run):
    body = '''
class Half:
    def compute(self, logp, old_logp, adv, mask):
        return 0.5 * sound(logp, old_logp, adv, mask)

def test_method(lossgate):
    %s
'''
    call = '''lossgate.check(
        "ppo_clip", Half().compute,
        reduction="token_mean", log_ratio_clamp=20,
        properties="reference_agreement", cases=20)'''
    text = run(body % call).stdout.str()
    again = re.search(r"  replay    (lossgate[.]check[(].*[)])", text).group(1)
    result = run(body % again)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["compute is not ppo_clip: * in 1 cases; the first:"])


def test_two_calls_on_one_line_are_not_told_apart(run):
    result = run('''
def test_local(lossgate):
    for of in [lambda logp, old_logp, adv, mask: 2.0 * sound(logp, old_logp, adv, mask)]:
        lossgate.check("ppo_clip", of, reduction="sum", cases=8); lossgate.check("gpg", of, reduction="sum")
''')
    result.stdout.fnmatch_lines(["  replay    the same call with case='.lossgate/*.case'"])


@pytest.mark.parametrize("call, message", [
    ('"ppo_clip", sound, cases=5', 'sound takes no reduction, so say which one it computes: reduction="...", one of token_mean,'),
    ('"ppo_clip", sound, reduction="token_mean", epsilon=0.2', "grpo has no option 'epsilon'; it has clip_low,"),
    ('"ppo_clip", sound, reduction="mean"', "grpo has no reduction 'mean'; it has token_mean,"),
    ('"pp_clip", sound, reduction="sum"', "there is no loss 'pp_clip'"),
    ('"ppo_clip", 3', "3 cannot be called"),
    ('"ppo_clip", sound, reduction="token_mean", clip_low=[]', r"'clip_low' must be"),
    ('"ppo_clip", sound, reduction="token_mean", dtypes="f33"', "dtypes are f64, f32, f16, bf16"),
    ('"ppo_clip", lambda foo: 0, reduction="token_mean"', "foo"),
    ('"ppo_clip", sound, reduction="token_mean", case="no.case"', "no.case"),
])
def test_a_mistake_is_answered_with_what_can_be_written(run, call, message):
    result = run(f"def test_it(lossgate):\n    lossgate.check({call})\n")
    result.assert_outcomes(failed=1)
    said = [line for line in result.stdout.lines if line.startswith("E  ")]
    assert message in " ".join(said), said


def test_nothing_of_the_test_process_changes(run):
    run('''
def test_same(lossgate):
    import os, sys
    def state():
        return (torch.is_grad_enabled(), torch.get_num_threads(), list(sys.path), os.getcwd(), sorted(os.listdir("/proc/self/fd")))
    torch.set_num_threads(2)
    with torch.no_grad():
        before = state()
        lossgate.check("ppo_clip", sound, reduction="token_mean", log_ratio_clamp=20, cases=3)
        assert state() == before
''').assert_outcomes(passed=1)


def test_the_function_runs_in_the_thread_of_its_test(run):
    run('''
def test_thread(lossgate):
    import threading
    threads = set()
    def mine(logp, old_logp, adv, mask):
        threads.add(threading.current_thread())
        return sound(logp, old_logp, adv, mask)
    lossgate.check("ppo_clip", mine, reduction="token_mean", log_ratio_clamp=20, cases=3)
    assert threads == {threading.current_thread()}
''').assert_outcomes(passed=1)


def test_an_interrupt_ends_the_test_and_the_program(run):
    result = run('''
import os, signal, pytest

def children():
    return open(f"/proc/self/task/{os.getpid()}/children").read().split()

def test_interrupt(lossgate):
    before = children()
    def mine(logp, old_logp, adv, mask):
        os.kill(os.getpid(), signal.SIGINT)
        return sound(logp, old_logp, adv, mask)
    with pytest.raises(KeyboardInterrupt):
        lossgate.check("ppo_clip", mine, reduction="token_mean", cases=3)
    assert children() == before
''')
    result.assert_outcomes(passed=1)


def test_an_exception_of_the_function_is_a_finding(run):
    result = run('''
def test_raises(lossgate):
    def mine(logp, old_logp, adv, mask):
        raise IndexError("too far")
    lossgate.check("ppo_clip", mine, reduction="token_mean", cases=3)
''')
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*IndexError: too far*"])


def test_a_check_that_could_show_nothing_fails(run):
    result = run('''
def test_nothing(lossgate):
    lossgate.check("ppo_clip", sound, reduction="token_mean", cases=5, properties=["split_invariance"])
''')
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["nothing held, so nothing was shown*"])


def test_one_name_stands_for_a_list_of_one(run):
    run('''
def test_names(lossgate):
    answer = lossgate.check("ppo_clip", sound, reduction="token_mean", log_ratio_clamp=20, cases=5, dtypes="f32",
                            properties="finite_forward")
    assert {cell["property"] for cell in answer.record["cells"]} == {"finite_forward"}
''').assert_outcomes(passed=1)


def test_dtypes_are_those_of_torch(run):
    run('''
def test_dtypes(lossgate):
    seen = set()
    def mine(logp, old_logp, adv, mask):
        seen.add(logp.dtype)
        return sound(logp.double(), old_logp.double(), adv.double(), mask).to(logp.dtype)
    lossgate.check("ppo_clip", mine, reduction="token_mean", log_ratio_clamp=20, cases=5,
                   dtypes=[torch.bfloat16, torch.float64], properties=["finite_forward"])
    assert seen == {torch.bfloat16, torch.float64}
''').assert_outcomes(passed=1)
