# SPDX-License-Identifier: Apache-2.0
"""The losses over real process groups: ranks call torch.ops.lossgate.grpo on their share.

    python ranks.py LIBLOSSGATE_TORCH RANKS_CASE

Each rank accumulates its micro-batches and all-reduces, through gloo over loopback, as a
data-parallel trainer would. Loss, per-position gradients and the gradient of a parameter that all
ranks share must be those of the whole batch, which the program RANKS_CASE prints.
"""

import itertools
import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

FIELDS = ("log_prob", "old_log_prob", "ref_log_prob", "advantage")
LEVELS = ("token", "sequence")
REDUCTIONS = ("token_mean", "sequence_mean", "seq_mean_token_sum_norm", "sum")
# By number of ranks; of each rank the micro-batches, as sequences. Either may be empty or masked.
SPLITS = (
    [[[0, 1], [2, 3]], [[4]]],
    [[[3], [0], [4], [2], [1]], []],
    [[[0, 1, 2, 3, 4]], [[]]],
    [[[2]], [[4, 0], [1]], [[3]]],
    [[], [[1], [3, 4]], [[0, 2]]],
)
ROUNDOFF = 2.0**-53


def read_case(program):
    # What is preloaded for the library's sake is not for a program that has it built in.
    own = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    lines = subprocess.run([program], check=True, capture_output=True, text=True, env=own).stdout
    case = {}
    for name, *values in (line.split() for line in lines.splitlines()):
        case[name] = values
    sequences, tokens, max_length = (int(value) for value in case["shape"])
    numbers = {
        name: torch.tensor([float.fromhex(value) for value in values], dtype=torch.float64)
        for name, values in case.items()
        if name != "shape"
    }
    for name in (*FIELDS, "mask", *(f"{r}/{l}/gradient" for r in REDUCTIONS for l in LEVELS)):
        numbers[name] = numbers[name].view(sequences, tokens)
    numbers["mask"] = numbers["mask"].bool()
    return numbers, max_length


def totals_over_ranks(masks):
    """Valid positions and sequences of the whole step: integers, counted where the data lies."""
    counts = torch.zeros(2, dtype=torch.int64)
    for mask in masks:
        counts[0] += mask.sum()
        counts[1] += mask.any(dim=1).sum()
    dist.all_reduce(counts)
    return counts.tolist()


def train_step(case, parts, max_length, reduction, level):
    """Loss, shared gradient and own rows' gradient after accumulation and all-reduce."""
    world = dist.get_world_size()
    sequences, tokens = case["mask"].shape
    total_tokens, total_sequences = totals_over_ranks([case["mask"][part] for part in parts])
    shift = torch.zeros(tokens, dtype=torch.float64, requires_grad=True)  # what all ranks share
    loss = torch.zeros((), dtype=torch.float64)
    rows = torch.zeros(sequences, tokens, dtype=torch.float64)
    for part in parts:
        fields = {name: case[name][part] for name in FIELDS}
        own = fields["log_prob"].requires_grad_()
        share, _ = torch.ops.lossgate.grpo(
            own + shift, fields["old_log_prob"], fields["ref_log_prob"], fields["advantage"],
            case["mask"][part], total_tokens=total_tokens, total_sequences=total_sequences,
            reduction=reduction, level=level, max_length=max_length)
        share.backward()
        loss += share.detach()
        rows[part] = own.grad
    shared = shift.grad if shift.grad is not None else torch.zeros_like(shift)
    shared /= world  # as DistributedDataParallel averages
    for tensor in (loss, shared, rows):
        dist.all_reduce(tensor)
    return loss, shared * world, rows


def complaints(case, result, what, parts):
    loss, shared, rows = result
    gradient = case[f"{what}/gradient"]
    # Another order of summation: each of the terms' roundings once more (Higham, section 4.2).
    steps = 2 * (gradient.numel() + parts + 3)
    loss_bound = steps * ROUNDOFF * case[f"{what}/loss_magnitude"]
    shared_bound = steps * ROUNDOFF * gradient.abs().sum(0)
    if not (loss - case[f"{what}/loss"]).abs() <= loss_bound:
        yield f"loss {loss.item()!r}, expected {case[f'{what}/loss'].item()!r}"
    if not torch.all((shared - gradient.sum(0)).abs() <= shared_bound):
        yield f"shared gradient {shared.tolist()}, expected {gradient.sum(0).tolist()}"
    if not torch.equal(rows, gradient):
        yield f"gradient {rows.tolist()}, expected {gradient.tolist()}"


def run_rank(rank, splits, library, program, store):
    world = len(splits[0])
    torch.set_num_threads(1)
    torch.ops.load_library(library)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    case, max_length = read_case(program)
    failures = 0
    for split, reduction, level in itertools.product(splits, REDUCTIONS, LEVELS):
        what = f"{reduction}/{level}"
        result = train_step(case, split[rank], max_length, reduction, level)
        for complaint in complaints(case, result, what, sum(len(own) for own in split)):
            print(f"rank {rank} of {world}, {split}, {what}: {complaint}", flush=True)
            failures += 1
    dist.destroy_process_group()
    sys.exit(1 if failures else 0)


def main(library, program):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    for world, splits in itertools.groupby(SPLITS, key=len):
        splits = list(splits)
        with tempfile.TemporaryDirectory() as folder:
            store = os.path.join(folder, "store")
            mp.spawn(run_rank, args=(splits, library, program, store), nprocs=world)
        print(f"{len(splits)} splits on {world} ranks agree with the whole batch")


if __name__ == "__main__":
    main(*sys.argv[1:])
