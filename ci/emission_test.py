# SPDX-License-Identifier: Apache-2.0
"""What `lossgate replay` writes of a failure, for every founding bug: it fails with the faulty function, alone with
torch, and passes with the sound one.

    LOSSGATE_PROGRAM=build/default/bin/lossgate .venv/bin/python -m pytest ci/emission_test.py
"""

from __future__ import annotations

import ast
import functools
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

import warm_python

HERE = os.path.dirname(os.path.abspath(__file__))
FOUNDING = os.path.join(HERE, "testdata", "founding")
PROGRAM = os.path.abspath(os.environ["LOSSGATE_PROGRAM"])
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
BUGS = {"0001": "sparse_reverse_kl", "0002": "every_nth_prompt", "0003": "unclamped_exp", "0004": "mean_of_means",
        "0005": "mean_of_means", "0006": "merged_where_present", "0007": "prompt_unchecked",
        "0008": "json_lacks_actual"}


def lossgate(*words, folder, status):
    done = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stdout[-2000:] + done.stderr
    return done


@functools.cache
def interpreter():
    """What lossgate starts to ask a function: each command starts one."""
    return warm_python.in_place_of(sys.executable)


def case(number):
    return glob.glob(os.path.join(HERE, os.pardir, "regressions", f"{number}-*.case"))[0]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    path = tmp_path_factory.mktemp("founding")
    shutil.copy(os.path.join(FOUNDING, "teacher_answers.py"), path)
    with open(os.path.join(FOUNDING, "founding.toml"), encoding="utf-8") as file:
        (path / "lossgate.toml").write_text(file.read().replace("PYTHON", interpreter()))
    return path


@pytest.fixture
def folder(home):
    """With the bugs in it, whatever a test has put there."""
    shutil.copy(os.path.join(FOUNDING, "faulty", "founding.py"), home)
    return home


# A Python that cannot import lossgate and has imported torch, which takes it seconds. Whatever it is told to run in a
# folder is run by a fork of it, as if by a Python of its own.
WARM = """
import gc, json, os, runpy, signal, sys
import pytest, torch
gc.freeze()  # a pytest that ends looks for garbage five times, which is a second of it
sys.modules["lossgate"] = None
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
signal.alarm(300)
words, folder, said = json.loads(line)
os.chdir(folder)
for stream in (1, 2):
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
if words[0] == "-m":
    sys.path[0], sys.argv = folder, words[1:]
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)
else:
    sys.path[0], sys.argv = os.path.dirname(os.path.abspath(words[0])), words
    runpy.run_path(words[0], run_name="__main__")
"""


@functools.cache
def warm():
    environment = {**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen([sys.executable, "-c", WARM], env=environment, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)


def python(*words, folder):
    """What became of `python WORDS` in the folder."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as said:
        print(json.dumps([words, str(folder), said.name]), file=warm().stdin, flush=True)
        status = int(warm().stdout.readline())
        return subprocess.CompletedProcess(words, status, said.read())


def mend(folder):
    shutil.copy(os.path.join(FOUNDING, "sound", "founding.py"), folder)


def test_the_written_tests_fail_with_each_bug_and_pass_without(folder):
    for number, name in BUGS.items():
        said = lossgate("replay", case(number), "--config", "lossgate.toml", "--impl", name, "--emit-test",
                        f"test_{number}.py", "--emit-py", f"show_{number}.py", "--emit-issue", f"issue_{number}.md",
                        folder=folder, status=1).stdout
        text = (folder / f"test_{number}.py").read_text()
        script = (folder / f"show_{number}.py").read_text()
        report = (folder / f"issue_{number}.md").read_text()
        assert said.count("wrote ") == 3 and ("| usual fix |" in report or "| to try |" in report) and script in report
        assert str(folder) not in text + script + report
        function, = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
        assert len(text.splitlines()) <= 25 and function.name.startswith(f"test_{name}_")
        imports = ["import torch", f"from founding import {name}"]
        assert [line for line in text.splitlines() if "import" in line] == imports
        assert [line for line in script.splitlines() if "import" in line] == imports
    run = (*PYTEST, *(f"test_{number}.py" for number in BUGS))
    failing = python(*run, folder=folder)
    kept = (folder / "test_0003.py").read_text()
    again = ("replay", case("0003"), "--config", "lossgate.toml", "--impl", BUGS["0003"], "--emit-test", "test_0003.py")
    refused = lossgate(*again, folder=folder, status=2).stderr
    assert "test_0003.py is there already; say --overwrite, or --emit-test FILE" in refused
    lossgate(*again, "--overwrite", folder=folder, status=1)
    assert (folder / "test_0003.py").read_text() == kept
    assert f"{len(BUGS)} failed" in failing.stdout and "passed" not in failing.stdout, failing.stdout
    shown = python("show_0003.py", folder=folder)
    assert shown.returncode == 1 and "loss: nan, expected" in shown.stdout, shown.stdout
    mend(folder)
    passing = python(*run, folder=folder)
    assert f"{len(BUGS)} passed" in passing.stdout and "failed" not in passing.stdout, passing.stdout
    assert python("show_0003.py", folder=folder).returncode == 0


def test_an_implementation_of_the_catalog_is_no_python(tmp_path):
    said = lossgate("replay", case("0003"), "--impl", "unclamped_exp_mask_multiply", "--emit-test", "never.py",
                    folder=tmp_path, status=2).stderr
    assert "bring it with --config lossgate.toml" in said and not (tmp_path / "never.py").exists()


def test_nothing_is_written_where_nothing_fails(folder):
    mend(folder)
    said = lossgate("replay", case("0003"), "--config", "lossgate.toml", "--impl", "unclamped_exp", "--emit-test",
                    "never.py", folder=folder, status=2).stderr
    assert "nothing fails" in said and not (folder / "never.py").exists()


def test_another_property_is_refused_by_name(folder):
    said = lossgate("replay", case("0003"), "--config", "lossgate.toml", "--impl", "unclamped_exp", "--property",
                    "masked_positions_inert", "--emit-test", "never.py", folder=folder, status=2).stderr
    assert "not for masked_positions_inert" in said


def test_a_test_in_another_folder_finds_the_function(folder):
    (folder / "tests").mkdir()
    lossgate("replay", case("0003"), "--config", "lossgate.toml", "--impl", "unclamped_exp", "--emit-py",
             "tests/show.py", "--emit-test", "tests/test_it.py", "--emit-issue", "tests/issue.md", folder=folder, status=1)
    shown = python("tests/show.py", folder=folder)
    assert shown.returncode == 1 and "loss: nan" in shown.stdout
    for name in ("show.py", "test_it.py"):  # wherever the folder comes to lie, and wherever it is run from
        text = (folder / "tests" / name).read_text()
        assert '.resolve().parent / ".."' in text and str(folder) not in text
        assert "actual = loss.detach()" in text  # which float() would warn of
    (folder / "elsewhere").mkdir()
    assert "1 failed" in python(*PYTEST, str(folder / "tests" / "test_it.py"), folder=folder / "elsewhere").stdout
    report = (folder / "tests" / "issue.md").read_text()
    assert "in the root of the repository" in report and "sys.path" not in report and str(folder) not in report


def founding_as_loss(kind):
    with open(os.path.join(FOUNDING, kind, "founding.py"), encoding="utf-8") as file:
        return file.read().replace("def unclamped_exp(", "def loss(")


NAMES = {"odd-losses.v2.py": "loss_under_test = runpy.run_path(",
         "losses.py": "from losses import loss as loss_under_test"}


def test_a_function_is_found_whatever_it_and_its_file_are_called(tmp_path):
    with open(os.path.join(FOUNDING, "founding.toml"), encoding="utf-8") as file:
        subject, = (part for part in file.read().split("[[subject]]") if "py:founding.py:unclamped_exp" in part)
    (tmp_path / "src").mkdir()
    for file in ("teacher_answers.py", os.path.join("src", "teacher_answers.py")):
        shutil.copy(os.path.join(FOUNDING, "teacher_answers.py"), tmp_path / file)
    tests = []
    for name, imported in NAMES.items():
        (tmp_path / "src" / name).write_text(founding_as_loss("faulty"))
        here = subject.replace("founding.py:unclamped_exp", name + ":loss").replace("PYTHON", interpreter())
        (tmp_path / "lossgate.toml").write_text("[[subject]]\npath = [\"src\"]" + here)
        tests.append(f"test_{len(tests)}.py")
        lossgate("replay", case("0003"), "--config", "lossgate.toml", "--emit-test", tests[-1], "--emit-issue",
                 f"{name}.md", folder=tmp_path, status=1)
        assert imported in (tmp_path / tests[-1]).read_text()
        report = (tmp_path / f"{name}.md").read_text()
        assert str(tmp_path) not in report and ('"src"' in report or '"src/odd-losses.v2.py"' in report), report
    failing = python(*PYTEST, *tests, folder=tmp_path).stdout
    assert "AssertionError" in failing and f"{len(tests)} failed" in failing, failing
    for name in NAMES:
        (tmp_path / "src" / name).write_text(founding_as_loss("sound"))
    assert f"{len(tests)} passed" in python(*PYTEST, *tests, folder=tmp_path).stdout


PADDED = """[[subject]]
loss = "teacher_payload"
entry = "py:padded.py:FUNCTION"
interpreter = "PYTHON"
"""


def test_an_operation_is_told_how_long_its_outputs_are_and_returns_a_tuple(tmp_path):
    for name in ("teacher_answers.py", "padded.py"):
        shutil.copy(os.path.join(FOUNDING, name), tmp_path)
    toml = PADDED.replace("PYTHON", interpreter())
    (tmp_path / "sound.toml").write_text(toml.replace("FUNCTION", "padded"))
    (tmp_path / "lossgate.toml").write_text(toml.replace("FUNCTION", "padded_with_zeros"))
    seeds = os.path.join(HERE, os.pardir, "corpora", "seeds", "teacher_payload")
    lossgate("gate", "--config", "sound.toml", "--corpus", seeds, "--cases", "24", "--jobs", "1", folder=tmp_path,
             status=0)
    lossgate("replay", os.path.join(seeds, "without-sampled-tokens.case"), "--config", "lossgate.toml", "--emit-test",
             "test_it.py", folder=tmp_path, status=1)
    run = (*PYTEST, "test_it.py")
    failing = python(*run, folder=tmp_path)
    assert "assert 0.0 == -inf" in failing.stdout, failing.stdout
    (tmp_path / "padded.py").write_text((tmp_path / "padded.py").read_text().replace("payload, 0.0", "payload, filler"))
    assert "1 passed" in python(*run, folder=tmp_path).stdout


def test_an_output_besides_the_loss_is_read_by_its_name(folder):  # and a subject's name is free text
    (folder / "two.py").write_text(TWO)
    (folder / "empty").mkdir()
    (folder / "two.toml").write_text(TWO_TOML.replace("PYTHON", interpreter()))
    lossgate("gate", "--config", "two.toml", "--corpus", "empty", "--profile", "benign", "--cases", "24", "--jobs", "1",
             "--property", "reference_agreement", folder=folder, status=1)
    found = glob.glob(str(folder / "run" / "findings" / "*.case"))[0]
    lossgate("replay", found, "--config", "two.toml", "--emit-test", "test_two.py", folder=folder, status=1)
    run = (*PYTEST, "test_two.py")
    assert "1 failed" in python(*run, folder=folder).stdout
    (folder / "two.py").write_text(TWO.replace(" * 1.01", ""))
    assert "1 passed" in python(*run, folder=folder).stdout
    (folder / "two.py").write_text(TWO.replace(" * 1.01", "").replace("return {", "return loss, {"))
    assert "1 passed" in python(*run, folder=folder).stdout


TWO = """def two(value, old_value, return_, mask):
    per_token = 0.5 * (value - return_) ** 2 * mask
    loss = per_token.sum()
    return {"loss": loss, "per_token": per_token * 1.01}
"""
TWO_TOML = """[[subject]]
loss = "value_clip"
name = "two's 1.01@cpu"
entry = "py:two.py:two"
interpreter = "PYTHON"
reductions = ["sum"]
options = { value_clip = "none" }
outputs = ["per_token"]
[subject.contract]
masked = 0
"""


PICKY = """import torch


def picky(log_probs, old_log_probs, advantages, mask):
    mask = mask.bool()
    x = torch.where(mask, log_probs - old_log_probs, 0.0)
    if FAR:
        raise ValueError("too far off policy")
    ratio, advantages = torch.exp(x.clamp(-20, 20)), torch.where(mask, advantages, 0.0)
    loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    return RETURNED
"""
MEAN = "loss.sum() / mask.sum().clamp(min=1)"


def finding_of_picky(tmp_path, modules=("picky",), violates="reference_agreement"):
    """Of the first module; the file brings the function of each."""
    (tmp_path / "lossgate.toml").write_text("".join(f"""[[subject]]
loss = "grpo"
name = "{module}"
entry = "py:{module}.py:picky"
interpreter = "{interpreter()}"
reductions = ["token_mean"]
options = {{ kl_penalty = 0, dual_clip = "none", log_ratio_clamp = 20, level = "token" }}
""" for module in modules))
    (tmp_path / "none").mkdir()
    lossgate("gate", "--config", "lossgate.toml", "--corpus", "none", "--cases", "24", "--jobs", "1", "--impl",
             modules[0], "--property", violates, folder=tmp_path, status=1)
    return str(next((tmp_path / "run" / "findings").glob("*.case")))


RETURNED = {"tuple": ("loss, {'clipped': 0.0}", "[0]"), "dict": ("{'loss': loss}", '["loss"]'),
            "object": ("types.SimpleNamespace(loss=loss)", ".loss")}


def test_a_loss_is_found_in_what_a_function_returns(tmp_path):
    modules = {f"picky_{kind}": how for kind, how in RETURNED.items()}

    def write(mean):
        for module, (returned, _) in modules.items():
            text = PICKY.replace("import torch", "import types\n\nimport torch").replace("FAR", "False")
            text = text.replace("return RETURNED", f"loss = {mean}\n    return {returned}")
            (tmp_path / f"{module}.py").write_text(text)
    write("loss.mean()")
    found = finding_of_picky(tmp_path, tuple(modules))
    for module, (_, place) in modules.items():
        lossgate("replay", found, "--config", "lossgate.toml", "--impl", module, "--emit-test", f"test_{module}.py",
                 folder=tmp_path, status=1)
        assert f"){place}\n" in (tmp_path / f"test_{module}.py").read_text()
    run = (*PYTEST, *(f"test_{module}.py" for module in modules))
    assert "3 failed" in python(*run, folder=tmp_path).stdout
    write(MEAN)
    assert "3 passed" in python(*run, folder=tmp_path).stdout


def test_a_case_that_a_property_makes_is_written_as_it_makes_it(tmp_path):
    text = PICKY.replace("FAR", "False")
    (tmp_path / "picky.py").write_text(text.replace("RETURNED", "loss.sum() / mask.sum()"))
    found = finding_of_picky(tmp_path, violates="empty_is_zero")
    lossgate("replay", found, "--config", "lossgate.toml", "--property", "empty_is_zero", "--emit-test",
             "test_picky.py", folder=tmp_path, status=1)
    run = (*PYTEST, "test_picky.py")
    failing = python(*run, folder=tmp_path).stdout
    assert "test_picky_empty_is_zero" in failing and "1 failed" in failing and "is nan" in failing, failing
    (tmp_path / "picky.py").write_text(text.replace("RETURNED", MEAN))
    assert "1 passed" in python(*run, folder=tmp_path).stdout


def test_a_refusal_of_legal_input_is_written_as_the_call_that_must_answer(tmp_path):
    (tmp_path / "picky.py").write_text(PICKY.replace("FAR", "bool((x.abs() > 30).any())").replace("RETURNED", MEAN))
    found = finding_of_picky(tmp_path)
    lossgate("replay", found, "--config", "lossgate.toml", "--emit-test", "test_picky.py", "--emit-py", "show.py",
             folder=tmp_path, status=1)
    failing = python(*PYTEST, "test_picky.py", folder=tmp_path)
    assert failing.returncode == 1 and "too far off policy" in failing.stdout
    assert python("show.py", folder=tmp_path).returncode == 1
    (tmp_path / "picky.py").write_text(PICKY.replace("FAR", "False").replace("RETURNED", MEAN))
    assert python(*PYTEST, "test_picky.py", folder=tmp_path).returncode == 0
    assert python("show.py", folder=tmp_path).returncode == 0
