# SPDX-License-Identifier: Apache-2.0
"""What the fused losses refuse: the message begins with the name of the argument, and nothing is started.

    LOSSGATE_FUSED=liblossgate_fused.so python bad_input_test.py LIBLOSSGATE_TORCH
"""
from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

import torch

import lossgate_fused as fused
from given_batches import batches
from operators_fused_test import on_gpu


class BadInput(unittest.TestCase):
    device = "cpu"

    def refused(self, loss, at, change, message, **rest):
        """With the tensor number `at` changed."""
        tensors, counts = batches(torch.float32, self.device)[loss]
        if at is not None:
            tensors[at] = change(tensors[at].clone())
        with self.subTest(loss, message=message), self.assertRaisesRegex((ValueError, RuntimeError), message):
            getattr(fused, loss)(*tensors, **{**counts, **rest})

    def test_formats(self):
        self.refused("grpo", 0, lambda t: t.double(), r"^log_prob is of torch.float64; fused losses take")
        self.refused("grpo", 1, lambda t: t.bfloat16(), r"^old_log_prob is of torch.bfloat16, expected torch.float32")
        self.refused("jsd", 1, lambda t: t.half(), r"^teacher_logits is of torch.float16, expected torch.float32")
        self.refused("grpo", 4, lambda t: t.float(), r"^mask is of torch.float32")
        self.refused("jsd", 2, lambda t: t.float(), r"^label is of torch.float32")
        self.refused("sparse_jsd", 1, lambda t: t.short(), r"^support_token is of torch.int16")
        self.refused("sparse_jsd", 2, lambda t: t.double(), r"^teacher_log_prob is of torch.float64")

    def test_devices(self):
        for loss, at, name in (("grpo", 1, "old_log_prob"), ("grpo", 4, "mask"), ("log_prob", 1, "label"),
                               ("sparse_jsd", 1, "support_token")):
            self.refused(loss, at, lambda t: t.to("meta"), rf"^{name} lies on meta, \w+ on {self.device}")

    def test_shapes(self):
        self.refused("grpo", 0, lambda t: t[0], r"^log_prob has shape \[3\], expected 2 axes")
        self.refused("grpo", 3, lambda t: t[:, :1], r"^advantage has shape \[2, 1\], expected \[2, 3\]")
        self.refused("grpo", 4, lambda t: t[:1], r"^mask has shape \[1, 3\], expected \[2, 3\]")
        self.refused("jsd", 1, lambda t: t[..., :4], r"^teacher_logits has shape \[2, 3, 4\], expected \[2, 3, 5\]")
        self.refused("sparse_jsd", 2, lambda t: t[..., :1], r"^teacher_log_prob has shape \[2, 3, 1\], expected \[2, 3, 2\]")
        self.refused("sparse_jsd", 1, lambda t: t[0], r"^support_token has shape")

    def test_rows_that_are_not_dense(self):
        turned = lambda t: t.transpose(1, 2).contiguous().transpose(1, 2)
        self.refused("log_prob", 0, turned, r"^logits has stride 3 along its last axis")
        self.refused("jsd", 1, turned, r"^teacher_logits has stride 3 along its last axis")
        self.refused("jsd", 0, lambda t: t[..., :1].expand(2, 3, 5), r"^student_logits has stride 0 along")

    def test_a_vocabulary_or_a_support_of_nothing(self):
        for loss, name in (("log_prob", "logits"), ("jsd", "student_logits"), ("logits_grpo", "logits")):
            self.refused(loss, 0, lambda t: t[..., :0], rf"^{name} has an empty vocabulary")
        tensors, counts = batches(torch.float32, self.device)["sparse_jsd"]
        tensors[1:3] = [tensor[..., :0] for tensor in tensors[1:3]]
        with self.assertRaisesRegex(RuntimeError, r"support is 0"):
            fused.sparse_jsd(*tensors, **counts)

    def test_options(self):
        for loss, change, message in (
            ("grpo", {"reduction": "mean"}, "reduction is not"),
            ("grpo", {"level": "word"}, "level cannot be 'word'"),
            ("grpo", {"kl_estimator": "k4"}, "kl_estimator cannot be 'k4'"),
            ("grpo", {"clip_low": -0.1}, "clip_low is -0.1"),
            ("grpo", {"total_tokens": -1, "reduction": "sum"}, "total_tokens is -1"),
            ("grpo", {"max_length": 0}, "max_length is 0"),
            ("value_clip", {"clip_form": "round"}, "clip_form cannot be"),
            ("jsd", {"beta": 1.5}, "beta is 1.5"),
            ("jsd", {"reduction": "sequence_mean"}, "total_sequences is 0"),
            ("jsd", {"beta": float("nan")}, "beta is NaN"),
            ("jsd", {"temperature": 0.0}, "temperature is 0"),
            ("sparse_jsd", {"tail_floor": 2.0}, "tail_floor is 2"),
            ("logits_grpo", {"temperature": -1.0}, "temperature is -1"),
        ):
            self.refused(loss, None, None, message, **change)

    def test_a_reference_that_is_needed(self):
        tensors, counts = batches(torch.float32, self.device)["grpo"]
        tensors[2] = None
        with self.assertRaisesRegex(ValueError, "^ref_log_prob is missing"):
            fused.grpo(*tensors, **counts)

    def test_memory_that_there_is_not(self):
        many = 1 << 24
        row = torch.zeros(1, 1, 8, device=self.device).expand(many, many, 8)
        label = torch.full((1, 1), -100, device=self.device).expand(many, many)
        with self.assertRaisesRegex(RuntimeError, r"^the gradient of student_logits, of shape .* finds no memory"):
            torch.ops.lossgate.fused_jsd_gradient(torch.ones((), device=self.device), row, row, label, total_tokens=1)


class ValuesOnTheHost(unittest.TestCase):
    """A GPU would have to be waited for; what it does instead is asked below."""
    refused, device = BadInput.refused, "cpu"

    def test_tokens_outside_of_the_vocabulary(self):
        def of(value):
            def change(tokens):
                tokens[0, 1] = value
                return tokens
            return change

        for loss, at in (("log_prob", 1), ("jsd", 2), ("logits_grpo", 1)):
            for value in (5, -1, 1 << 40):
                self.refused(loss, at, of(value), rf"^label is {value} at \[0, 1\], outside of a vocabulary of 5")
        self.refused("sparse_jsd", 1, lambda t: of(9)(t), r"^support_token is 9 at \[0, 1, 0\]")

    def test_masks_that_are_neither_0_nor_1(self):
        for dtype in (torch.uint8, torch.int64):
            self.refused("grpo", 4, lambda t: t.to(dtype) * 2, "^mask must hold")

    def test_counts_of_nothing_where_something_counts(self):
        self.refused("grpo", None, None, "^total_tokens is 0", total_tokens=0)

    def test_a_teacher_that_says_nothing_where_it_counts(self):
        self.refused("sparse_jsd", 2, lambda t: t.fill_(-torch.inf), r"^teacher_log_prob is not finite at \[0, 0, 0\]")


@unittest.skipUnless(on_gpu(), "no GPU, or a library without the form for one")
class OnGpu(BadInput):
    device = "cuda"

    def test_devices(self):
        self.refused("grpo", 1, lambda t: t.cpu(), "^old_log_prob lies on cpu, log_prob on cuda:0")

    def test_tokens_outside_of_the_vocabulary_make_nan_and_read_nothing(self):
        tensors, counts = batches(torch.float32, self.device)["log_prob"]
        tensors[1][0, 1] = 1 << 40
        log_prob, _ = fused.log_prob(*tensors, **counts)
        self.assertTrue(bool(log_prob[0, 1].isnan()))
        torch.cuda.synchronize()

    def test_an_error_that_somebody_elses_kernel_left_behind(self):
        said = subprocess.run([sys.executable, "-c", STICKY], cwd=Path(__file__).parent, capture_output=True, text=True,
                              check=False)
        self.assertRegex(said.stderr, "an earlier kernel failed")


STICKY = """
import torch, lossgate_fused as fused
from given_batches import batches
tensors, counts = batches(torch.float32, "cuda")["grpo"]
torch.zeros(2, device="cuda")[torch.tensor([7], device="cuda")]
try:
    torch.cuda.synchronize()
except RuntimeError:
    fused.grpo(*tensors, **counts)
"""


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.ops.load_library(sys.argv.pop())
    unittest.main()
