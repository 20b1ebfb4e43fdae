# SPDX-License-Identifier: Apache-2.0
"""`lossgate explain` on what small training runs leave that die of each founding bug, and on innocent losses.

    LOSSGATE_PROGRAM=build/default/bin/lossgate PYTHONPATH=impl/external/python .venv/bin/python -m pytest ci/explain_test.py
"""

from __future__ import annotations

import functools
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import pytest
import torch

import warm_python
from lossgate.watch import watch

HERE = os.path.dirname(os.path.abspath(__file__))
FOUNDING = os.path.join(HERE, "testdata", "founding")
PROGRAM = os.path.abspath(os.environ["LOSSGATE_PROGRAM"])
BUGS = ("unclamped_exp", "sparse_reverse_kl", "merged_where_present", "prompt_unchecked", "json_lacks_actual",
        "every_nth_prompt", "mean_of_means")


@functools.cache
def interpreter():
    """What lossgate starts to ask a function: each command starts one."""
    return warm_python.in_place_of(sys.executable)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where every run has died."""
    path = tmp_path_factory.mktemp("training")
    for name in ("teacher_answers.py", "training.py", os.path.join("faulty", "founding.py")):
        shutil.copy(os.path.join(FOUNDING, name), path)
    with open(os.path.join(FOUNDING, "founding.toml"), encoding="utf-8") as file:
        (path / "lossgate.toml").write_text(file.read().replace("PYTHON", interpreter()))
    done = subprocess.run([sys.executable, "training.py", ",".join(BUGS), "dumps"], cwd=path, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    died = [line.split()[0] for line in done.stdout.splitlines()]
    assert died == [bug for bug in BUGS if bug != "mean_of_means"], done.stdout
    return path


def dump(folder, bug):
    path, = glob.glob(str(folder / "dumps" / bug / "*-step00000003-rank0000.safetensors"))
    return path


def explain(folder, *words, status):
    done = subprocess.run([PROGRAM, "explain", *words], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def subject(loss, entry, more):
    """Of a lossgate.toml: a function of one of the test's files."""
    return (f'[[subject]]\nloss = "{loss}"\nentry = "py:{entry}"\ninterpreter = "{interpreter()}"\n'
            f'reductions = ["token_mean"]\n{more}\n')


def function(folder, bug, name, status):
    return explain(folder, dump(folder, bug), "--fn", name, "--python", interpreter(), status=status)


def guilty_line(folder, number):
    lines = (folder / "founding.py").read_text().splitlines()
    return "# guilty" in lines[number - 1]


def test_an_exponential_behind_the_mask(folder):
    said = function(folder, "unclamped_exp", "founding.py:unclamped_exp", 1).splitlines()[0]
    assert said.startswith("guilty (founding.py:30: kl = torch.exp(x) - x - 1") and guilty_line(folder, 30)
    assert "non-finite value behind a mask; select valid positions" in said and "[2, 3]" in said


def test_what_is_stored_under_a_parameters_name_is_what_it_was_given(folder):
    with open(dump(folder, "unclamped_exp"), "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header, data = file.read(length).rstrip(), file.read()
    header = header.replace(b"advantage", b"advantages")
    header += b" " * (-len(header) % 8)
    (folder / "stored.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
    (folder / "stored.py").write_text("import founding\n\n\ndef loss(log_prob, old_log_prob, ref_log_prob, advantages, mask):\n"
                                      "    return founding.unclamped_exp(log_prob, old_log_prob, ref_log_prob, advantages, mask)\n")
    (folder / "stored.toml").write_text(subject(
        "grpo", "stored.py:loss", 'arguments = { advantages = "field:advantage as rows", mask = "field:mask as float" }'))
    said = explain(folder, "stored.safetensors", "--config", "stored.toml", status=1)
    assert said.startswith("guilty (founding.py:30: kl = torch.exp(x) - x - 1"), said


def test_a_function_that_shifts_labels_is_given_what_was_stored(folder):
    torch.manual_seed(1)
    logits, labels = torch.randn(2, 3, 4), torch.tensor([[0, 1, 2], [3, 2, 1]])
    logits[1, 1, 1] = 100.0
    (folder / "shifts.py").write_text("def loss(logits, labels):\n    odds = logits[:, :-1].exp()\n"
                                      "    return -odds.gather(2, labels[:, 1:, None]).log().mean()\n")
    (folder / "shifts.toml").write_text(subject(
        "cross_entropy", "shifts.py:loss", 'arguments = { logits = "field:logits as shifted", labels = "field:label as shifted" }'))
    logits.requires_grad_()
    with watch(out=folder / "shifts", step=3, rank=0, loss="cross_entropy", logits=logits, label=labels):
        (-logits[:, :-1].exp().gather(2, labels[:, 1:, None]).log().mean()).backward()
    path, = glob.glob(str(folder / "shifts" / "*.safetensors"))
    said = explain(folder, path, "--config", "shifts.toml", status=1)
    assert said.startswith("guilty (shifts.py:2: odds = logits[:, :-1].exp(); token [1, 1]; "), said


def test_a_function_of_one_advantage_for_each_sequence_is_given_what_was_stored(folder):
    (folder / "expands.py").write_text("def loss(log_prob, old_log_prob, advantages, mask):\n"
                                       "    ratio = (log_prob - old_log_prob).exp()\n"
                                       "    return -(ratio * advantages * mask).sum() / mask.sum()\n")
    (folder / "expands.toml").write_text(subject(
        "grpo", "expands.py:loss", 'arguments = { advantages = "field:advantage as expanded" }'))
    log_prob, mask = torch.tensor([[100.0, -1.0], [-2.0, -3.0]], requires_grad=True), torch.tensor([[1, 1], [1, 0]])
    old, advantage = torch.zeros(2, 2), torch.tensor([[0.5, 0.5], [-1.0, 0.0]])
    with watch(out=folder / "expands", step=3, rank=0, loss="grpo", log_prob=log_prob, old_log_prob=old,
               advantage=advantage, mask=mask):
        (-((log_prob - old).exp() * advantage * mask).sum() / mask.sum()).backward()
    path, = glob.glob(str(folder / "expands" / "*.safetensors"))
    said = explain(folder, path, "--config", "expands.toml", status=1)
    assert said.startswith("guilty (expands.py:2: ratio = (log_prob - old_log_prob).exp()"), said


def test_a_finite_loss_of_a_function_that_shifts_is_compared_on_its_own_pairs(folder):
    torch.manual_seed(1)
    logits, labels = torch.randn(2, 3, 4), torch.tensor([[0, 1, 2], [3, 2, 1]])
    (folder / "pairs.py").write_text("from torch.nn.functional import cross_entropy\n\n\ndef right(logits, labels):\n"
                                     "    return cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:])\n\n\n"
                                     "def twice(logits, labels):\n    return 2 * right(logits, labels)\n")
    shifted = 'arguments = { logits = "field:logits as shifted", labels = "field:label as shifted" }'
    (folder / "pairs.toml").write_text(
        "".join(subject("cross_entropy", f"pairs.py:{name}", shifted) for name in ("right", "twice")))
    logits.requires_grad_()
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:])
    with watch(out=folder / "pairs", step=3, rank=0, loss="cross_entropy", loss_limit=0.0, reduction="token_mean",
               logits=logits, label=labels):
        loss.backward()
    path, = glob.glob(str(folder / "pairs" / "*.safetensors"))
    explain(folder, path, "--config", "pairs.toml", "--impl", "right", status=0)
    said = " ".join(explain(folder, path, "--config", "pairs.toml", "--impl", "twice", status=1).split())
    meant = float(re.search(r"where the formula has ([-0-9.e]+);", said).group(1))
    assert meant == pytest.approx(loss.item(), rel=1e-5), said


def test_a_sentinel_behind_a_finite_loss(folder):
    said = function(folder, "sparse_reverse_kl", "founding.py:sparse_reverse_kl", 1)
    first = said.splitlines()[0]
    assert first.startswith("guilty (founding.py:17: divergence = ") and guilty_line(folder, 17)
    assert "student_logits[1, 2, 0]; value repaired, gradient not; a second where" in first
    assert "teacher_log_prob -inf" in said and "1 of 2 rows" in said and "step 3, rank 0 of 1" in said


@pytest.mark.parametrize("bug, place, value", [
    ("merged_where_present", "teacher_log_prob[0, 0]", "-inf"), ("prompt_unchecked", "teacher_log_prob[1, 0]", "-inf"),
    ("json_lacks_actual", "teacher_log_prob[0, 0]", "-inf"), ("every_nth_prompt", "teacher_log_prob[3, 0]", "nan")])
def test_a_loss_that_was_given_what_is_no_number_is_innocent(folder, bug, place, value):
    said = function(folder, bug, "training.py:sampled_kl", 0).splitlines()[0]
    assert said == f"the loss is innocent ({place} was {value} when it came in: look at what made it)"


def test_a_finite_loss_that_is_wrong_is_guilty_where_its_trainer_is_known(folder):
    path = dump(folder, "mean_of_means")
    said = explain(folder, path, "--config", "lossgate.toml", "--impl", "mean_of_means", status=1).splitlines()[0]
    assert said.startswith("guilty (founding.py:34: def mean_of_means(") and "mean of means; divide by the whole" in said
    assert explain(folder, path, status=0).startswith(
        "the loss is innocent (its input gradients are finite: look below)")


def test_what_the_subject_does_not_compute_is_not_called_innocent(folder):
    text = (folder / "lossgate.toml").read_text()
    (folder / "other.toml").write_text(text.replace("kl_penalty = 0 }", "kl_penalty = 0.5 }"))
    said = explain(folder, dump(folder, "mean_of_means"), "--config", "other.toml", "--impl", "mean_of_means", status=2)
    assert "mean_of_means is not compared with the formula: " in said and "kl_penalty" in said


def test_a_mended_loss_does_not_do_it_again(folder):
    shutil.copy(os.path.join(FOUNDING, "sound", "founding.py"), folder / "mended.py")
    said = function(folder, "unclamped_exp", "mended.py:unclamped_exp", 0)
    assert said.splitlines()[0] == "not reproduced, though this is what it ran on" and "here      cpu" in said
    assert "next      nothing, if the function was repaired; or watch(rows=" in said


def test_a_case_is_for_replay(folder):
    (folder / "one.case").write_text("lossgate-case: 1\nloss: grpo\n")
    said = explain(folder, "one.case", "--fn", "founding.py:unclamped_exp", status=2)
    assert "this is a case of a loss: lossgate replay one.case" in said


def test_of_several_files_each_subject_can_be_named(folder):
    path = dump(folder, "mean_of_means")
    tables = (folder / "lossgate.toml").read_text().split("[[subject]]")[1:]
    for name, has in (("first.toml", False), ("second.toml", True)):
        own = [table for table in tables if ("mean_of_means" in table) == has]
        (folder / name).write_text("".join("[[subject]]" + table for table in own))
    assert "guilty" in explain(folder, path, "--config", "first.toml,second.toml", "--impl", "mean_of_means", status=1)
    said = explain(folder, path, "--config", "second.toml", "--impl", "mean_of_mean", status=2)
    assert "did you mean 'mean_of_means'" in said
    for words in (("--device", "cuda"), ("--python", sys.executable), ("--fn", "founding.py:mean_of_means")):
        assert words[0] in explain(folder, path, "--config", "second.toml", *words, status=2)
    assert "--impl" in explain(folder, path, "--impl", "mean_of_means", status=2)


def test_a_subject_without_a_field_is_known_by_its_name(folder):
    """As gate and replay know it."""
    shutil.copy(os.path.join(HERE, "testdata", "brought", "on_policy.py"), folder)
    (folder / "twins.py").write_text("def loss(log_prob, advantage, mask, old_log_prob=None):\n"
                                     "    old = 0.0 if old_log_prob is None else old_log_prob\n"
                                     "    ratio = (log_prob - old).exp()\n"
                                     "    return -(ratio * advantage * mask).sum() / mask.sum()\n")
    options = 'options = { kl_penalty = 0, dual_clip = "none", log_ratio_clamp = 20, level = "token" }\n'
    (folder / "twins.toml").write_text(
        subject("grpo", "on_policy.py:of_no_step", options)
        + subject("grpo", "twins.py:loss", options + 'arguments = { old_log_prob = "field:old_log_prob" }'))
    advantage, mask = torch.tensor([[-0.5, -0.25], [-1.0, -0.5]]), torch.tensor([[1, 1], [1, 0]])

    def left(name, log_prob, loss):
        with watch(out=folder / name, step=3, rank=0, loss="grpo", loss_limit=0.0, reduction="token_mean",
                   log_prob=log_prob, advantage=advantage, mask=mask):
            loss.backward()
        path, = glob.glob(str(folder / name / "*.safetensors"))
        return path

    log_prob = torch.tensor([[-1.0, -0.5], [-2.0, -3.0]], requires_grad=True)
    path = left("finite", log_prob, -((log_prob - log_prob).exp() * advantage * mask).sum() / 3)
    explain(folder, path, "--config", "twins.toml", "--impl", "of_no_step", status=0)
    said = " ".join(explain(folder, path, "--config", "twins.toml", "--impl", "of_no_step-without-old_log_prob",
                            status=1).split())
    assert said.startswith("guilty (on_policy.py:") and "where the formula has" in said, said
    log_prob = torch.tensor([[100.0, -1.0], [-2.0, -3.0]], requires_grad=True)
    path = left("infinite", log_prob, -(log_prob.exp() * advantage * mask).sum() / 3)
    said = explain(folder, path, "--config", "twins.toml", "--impl", "loss-without-old_log_prob", status=1)
    assert said.startswith("guilty (twins.py:3: ratio = (log_prob - old).exp()"), said
    said = explain(folder, path, "--config", "twins.toml", "--impl", "loss-without-mask", status=2)
    assert "unknown subject 'loss-without-mask'" in said, said


def test_a_statement_of_several_lines_is_shown_as_a_whole(folder):
    text = (folder / "founding.py").read_text()
    assert "kl = torch.exp(x) - x - 1" in text
    (folder / "long.py").write_text(text.replace("kl = torch.exp(x) - x - 1", "kl = torch.sub(torch.exp(\n        x), x) - 1"))
    said = function(folder, "unclamped_exp", "long.py:unclamped_exp", 1).splitlines()[0]
    assert said.startswith("guilty (long.py:30: kl = torch.sub(torch.exp(...)); "), said


def test_a_function_alone_has_no_file_for_its_arguments(folder):
    said = function(folder, "unclamped_exp", "founding.py:sparse_reverse_kl", 2)
    assert 'write arguments.' in said and "a lossgate.toml, to be named by --config in place of --fn" in said


def test_what_cannot_be_asked_is_said_in_one_line(folder):
    path = dump(folder, "unclamped_exp")
    assert "say which function it was: --fn FILE.py:FUNCTION" in explain(folder, path, status=2)
    assert "no 'nothing'" in function(folder, "unclamped_exp", "founding.py:nothing", 2)
    assert "'student_logits'" in function(folder, "unclamped_exp", "founding.py:sparse_reverse_kl", 2)
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    header["__metadata__"]["lossgate-dump"] = "7"
    text = json.dumps(header).encode()
    newer = folder / "newer.safetensors"
    newer.write_bytes(struct.pack("<Q", len(text)) + text + data)
    assert "expected 1, found '7'" in explain(folder, str(newer), status=2)
    del header["__metadata__"]["lossgate-dump"]
    text = json.dumps(header).encode()
    newer.write_bytes(struct.pack("<Q", len(text)) + text + data)
    assert "explain reads what watch.py wrote" in explain(folder, str(newer), status=2)
