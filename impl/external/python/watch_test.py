# SPDX-License-Identifier: Apache-2.0
"""The watch: what it writes, when, and that it changes nothing.

    PYTHONPATH=impl/external/python .venv/bin/python -m pytest impl/external/python/watch_test.py
"""

from __future__ import annotations

import glob
import json
import math
import os
import struct
import subprocess
import sys
import warnings

import pytest
import torch

import lossgate
from lossgate import watch as module

INF = math.inf


def read(path):
    """Header and tensors of a safetensors file, by the format's own description."""
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    kinds = {name: kind for kind, name in module._NAMES.items()}
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = bytearray(data[begin:end])
        tensors[name] = torch.frombuffer(raw, dtype=kinds[entry["dtype"]]).reshape(entry["shape"]) if raw else \
            torch.empty(entry["shape"], dtype=kinds[entry["dtype"]])
    assert max([0] + [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]) == len(data)
    return header["__metadata__"], tensors


@pytest.fixture
def out(tmp_path):
    module._steps.clear()
    module._written.clear()
    return tmp_path / "dumps"


def dumps(out):
    return sorted(glob.glob(str(out / "*")))


def batch(rows=4, tokens=3, far=None):
    """Log-probs of a batch whose loss is finite, but for the ratio at `far`."""
    torch.manual_seed(2)
    old = -torch.rand(rows, tokens)
    leaf = (old + 0.01 * torch.randn(rows, tokens)).requires_grad_()
    log_prob = leaf * 1.0
    if far is not None:
        old[far] = -200.0
    return log_prob, old, torch.ones(rows, tokens, dtype=torch.uint8)


def clipped(log_prob, old_log_prob, mask):
    """Finite for every input; the gradient is not."""
    ratio = torch.exp(log_prob - old_log_prob)
    return (torch.clamp(ratio, 0.8, 1.2) * mask).sum() / mask.sum()


def step(out, far=None, **more):
    log_prob, old, mask = batch(far=far)
    with lossgate.watch(loss="grpo", out=out, log_prob=log_prob, old_log_prob=old, mask=mask, **more) as seen:
        loss = clipped(log_prob, old, mask)
        loss.backward()
    return seen, log_prob, old, loss


def test_a_healthy_step_writes_nothing_and_leaves_no_trace(out):
    before = torch.autograd.backward
    seen, log_prob, _, _ = step(out)
    assert not dumps(out) and torch.autograd.backward is before
    assert not seen._handles and not log_prob._backward_hooks


def test_a_gradient_that_is_nan_is_written_with_the_row_at_fault(out):
    _, log_prob, old, loss = step(out, far=(2, 1), step=1234, rank=3, reduction="token_mean", clip_low=0.2)
    assert [os.path.basename(path) for path in dumps(out)] == ["grpo-step00001234-rank0003.safetensors"]
    facts, tensors = read(dumps(out)[0])
    assert facts["lossgate-dump"] == "1" and facts["loss"] == "grpo" and facts["upstream"] == "1.0"
    assert facts["given.reduction"] == '"token_mean"' and facts["given.clip_low"] == "0.2"
    assert json.loads(facts["kept.rows"]) == [2] and json.loads(facts["kept.of"]) == [4, 3]
    assert json.loads(facts["kept.counts"]) == {"mask": 12}
    assert facts["run.torch"] == torch.__version__ and facts["run.device"] == "cpu"
    assert torch.equal(tensors["old_log_prob"], old[2:3]) and torch.equal(tensors["log_prob"], log_prob[2:3])
    assert torch.equal(tensors["observed.loss"], loss)
    assert tensors["observed.gradient.log_prob"].isnan().tolist() == [[False, True, False]]


def test_options_that_are_not_finite_are_words(out):
    step(out, far=(2, 1), clip_high=float("inf"), scales=[float("nan"), 1.0])
    facts, _ = read(dumps(out)[0])
    assert facts["given.clip_high"] == '"inf"' and json.loads(facts["given.scales"]) == ["nan", 1.0]


def test_all_rows_are_kept_where_that_is_asked_for(out):
    step(out, far=(2, 1), rows="all")
    assert read(dumps(out)[0])[1]["log_prob"].shape == (4, 3)


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_bits_are_kept_nan_payloads_and_signed_zeros_included(out, kind):
    bits = {8: torch.int64, 4: torch.int32, 2: torch.int16}[kind.itemsize]
    x = torch.tensor([0.0, -0.0, INF, 0.1], dtype=kind)
    x.view(bits)[0] = torch.tensor(math.nan, dtype=kind).view(bits) + 5
    with lossgate.watch(out=out, x=x, rows="all") as seen:
        seen.save()
    assert torch.equal(read(dumps(out)[0])[1]["x"].view(bits), x.view(bits))


def test_what_others_read_is_what_was_written(out):
    safetensors = pytest.importorskip("safetensors.torch")
    step(out, far=(0, 0))
    assert set(safetensors.load_file(dumps(out)[0])) == {"log_prob", "old_log_prob", "mask", "observed.loss",
                                                         "observed.gradient.log_prob"}


def test_names_of_the_users_own_and_a_column_view_of_a_larger_tensor(out):
    wide = torch.full((3, 8), 2.0)
    wide[1, 2] = INF
    mine = wide[:, ::2].requires_grad_()
    with lossgate.watch(out=out, given={"loss": mine, "strength": 3}):
        (mine * 0).sum().backward()
    facts, tensors = read(dumps(out)[0])
    assert "loss" not in facts and facts["given.strength"] == "3" and facts["run.reason"] == "loss nan"
    assert torch.equal(tensors["loss"], wide[1:2, ::2]) and os.path.basename(dumps(out)[0]).startswith("loss-step")


def test_what_was_made_in_inference_mode_is_kept(out):
    log_prob, old, mask = batch(far=(0, 0))
    with torch.inference_mode():
        reference = old + 1
    with lossgate.watch(out=out, log_prob=log_prob, old=old, reference=reference):
        clipped(log_prob, old, mask).backward()
    facts, tensors = read(dumps(out)[0])
    assert torch.equal(tensors["reference"], (old + 1)[:len(tensors["reference"])]) and facts["run.changed"] == "[]"


def test_limits_write_where_all_is_finite(out):
    log_prob, old, mask = batch()
    for limits in ({"loss_limit": 1e3}, {"gradient_limit": 1e3}, {"loss_limit": 0.5}, {"gradient_limit": 1e-3}):
        with lossgate.watch(out=out, log_prob=log_prob, old=old, **limits):
            clipped(log_prob, old, mask).backward(retain_graph=True)
    assert [read(path)[0]["run.reason"].split(" beyond")[1] for path in dumps(out)] == [" 0.5", " 0.001"]


def test_a_sum_that_overflows_is_no_fault(out):
    x = torch.zeros(4, requires_grad=True)
    with lossgate.watch(out=out, x=x):
        (x * 3e38).sum().backward()
    assert not dumps(out)


def test_the_loss_scale_is_the_upstream_gradient(out):
    log_prob, old, mask = batch(far=(0, 0))
    with lossgate.watch(out=out, log_prob=log_prob, old=old) as seen:
        loss = seen.loss(clipped(log_prob, old, mask))
        (loss * 3.0 / 2).backward()
    log_prob, old, mask = batch(far=(0, 0))
    with lossgate.watch(out=out, log_prob=log_prob, old=old):
        (clipped(log_prob, old, mask) * torch.tensor(1024.0)).backward()  # which frees what was multiplied
    log_prob, old, mask = batch(far=(0, 0))
    with lossgate.watch(out=out, log_prob=log_prob, old=old):
        clipped(log_prob, old, mask).backward(torch.tensor(0.25))
    assert [float(read(path)[0]["upstream"]) for path in dumps(out)] == [1.5, 1024.0, 0.25]
    assert [torch.equal(read(path)[1]["observed.loss"], loss) for path in dumps(out)] == [True] * 3


def test_a_block_that_raises_is_written_and_raises_on(out):
    log_prob, old, mask = batch(far=(0, 0))
    with pytest.raises(FloatingPointError, match="mine"):
        with lossgate.watch(out=out, log_prob=log_prob, old=old):
            clipped(log_prob, old, mask).backward()
            raise FloatingPointError("mine")
    assert len(dumps(out)) == 1


def test_a_folder_that_cannot_be_written_is_a_warning(out):
    out.write_text("a file, no folder")
    with pytest.warns(UserWarning, match="lossgate.watch wrote nothing: FileExistsError"):
        step(out, far=(0, 0))


def test_so_many_dumps_and_no_more_none_overwritten(out):
    for _ in range(5):
        step(out, far=(0, 0), step=7, dumps=3)
    assert [os.path.basename(path) for path in dumps(out)] == [
        "grpo-step00000007-rank0000-2.safetensors", "grpo-step00000007-rank0000-3.safetensors",
        "grpo-step00000007-rank0000.safetensors"]


def test_steps_are_counted_where_none_is_said(out):
    for far in (None, None, (0, 0)):
        step(out, far=far)
    assert [os.path.basename(path) for path in dumps(out)] == ["grpo-step00000002-rank0000.safetensors"]


def test_a_large_dump_keeps_the_places_at_fault(out):
    logits = torch.randn(4, 8, 1000)
    logits[1, 5, 7], logits[3, 2, 1] = INF, math.nan
    logits.requires_grad_()
    with lossgate.watch(out=out, logits=logits, megabytes=0.02):
        (logits.log_softmax(-1)[..., 0]).sum().backward()
    facts, tensors = read(dumps(out)[0])
    assert os.path.getsize(dumps(out)[0]) < 22_000
    assert json.loads(facts["kept.rows"]) == [1] and 5 in json.loads(facts["kept.tokens"])
    assert tensors["logits"].isinf().any()


def test_autocast_and_a_tensor_that_was_written_into(out):
    log_prob, old, mask = batch(far=(0, 0))
    with torch.autocast("cpu", dtype=torch.bfloat16), lossgate.watch(out=out, log_prob=log_prob, old=old, mask=mask):
        mask.add_(0)
        clipped(log_prob, old, mask).backward()
    facts, _ = read(dumps(out)[0])
    assert facts["run.autocast"] == "bfloat16" and json.loads(facts["run.changed"]) == ["mask"]


def test_blocks_within_blocks_and_in_other_threads_see_their_own(out):
    log_prob, old, mask = batch(far=(0, 0))
    with lossgate.watch(loss="outer", out=out, old=old) as outer:
        with lossgate.watch(loss="inner", out=out, log_prob=log_prob) as inner:
            clipped(log_prob, old, mask).backward(retain_graph=True)
        assert outer._root is not None and inner._root is not None
    assert ["inner" in path for path in dumps(out)] == [True]


SHARDED = """
import torch, torch.distributed as dist, sys
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_tensor, Shard
from watch import watch
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/store", rank=int(sys.argv[2]), world_size=2)
mesh = init_device_mesh("cpu", (2,))
x = distribute_tensor(torch.tensor([[1.0, 2.0], [3.0, float("inf")]]), mesh, [Shard(0)]).requires_grad_()
with watch(loss="sharded", out=sys.argv[1], step=5, x=x):
    (x * 0).sum().full_tensor().backward()
"""


def test_each_rank_writes_its_own_shard(tmp_path):
    # the file alone, as somebody has copied it
    with open(module.__file__, encoding="utf-8") as mine:
        (tmp_path / "watch.py").write_text(mine.read())
    (tmp_path / "train.py").write_text(SHARDED)
    ranks = [subprocess.Popen([sys.executable, "train.py", str(tmp_path), str(rank)], cwd=tmp_path,
                              stderr=subprocess.PIPE, text=True) for rank in range(2)]
    said = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], said
    facts = [read(path) for path in sorted(glob.glob(str(tmp_path / "sharded-step00000005-rank000*")))]
    assert [entry[0]["run.rank"] for entry in facts] == ["0", "1"] and facts[0][0]["run.world"] == "2"
    assert "Shard(dim=0)" in facts[0][0]["run.shards"]
    assert facts[1][1]["x"].tolist() == [[3.0, INF]]


def test_the_file_is_free_to_copy():
    with open(module.__file__, encoding="utf-8") as mine:
        assert mine.readline() == "# SPDX-License-Identifier: 0BSD\n"


def test_warnings_are_none_of_ours(out):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(out, far=(0, 0))
