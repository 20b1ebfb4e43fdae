# SPDX-License-Identifier: Apache-2.0
"""The fused losses as a trainer uses them, beside the LibTorch operators in f64.

    LOSSGATE_FUSED=liblossgate_fused.so python operators_fused_test.py LIBLOSSGATE_TORCH
"""
from __future__ import annotations

import functools
import sys
import unittest

import torch

import lossgate_fused as fused
from given_batches import batches, in_f64, options, wide

FORMATS = (torch.float32, torch.bfloat16, torch.float16)


def on_gpu() -> bool:
    return torch.cuda.is_available() and fused.has_device_form()


def differentiable(loss: str, outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return outputs if loss == "log_prob" else outputs[:1]


def gradient(loss: str, function, tensors, counts, **rest):
    """All outputs, and the gradient by the first tensor under upstream gradients that are not 1."""
    leaf = tensors[0].detach().requires_grad_()
    outputs = function(leaf, *tensors[1:], **counts, **rest)
    asked = differentiable(loss, outputs)
    upstream = [torch.linspace(0.5, 2.0, output.numel(), dtype=output.dtype).reshape(output.shape).to(output.device)
                for output in asked]
    return outputs, torch.autograd.grad(asked, leaf, upstream)[0]


def of_every_loss(*formats: torch.dtype):
    """Asks the test of every loss, in these formats and with every choice of options."""
    def decorate(test):
        @functools.wraps(test)
        def ask(self):
            for dtype in formats:
                for loss, (tensors, counts) in batches(dtype, self.device).items():
                    for rest in options(loss):
                        with self.subTest(loss, dtype=dtype, **rest):
                            test(self, loss, getattr(fused, loss), tensors, counts, rest)
        return ask
    return decorate


class Operators(unittest.TestCase):
    device = "cpu"

    def assertSameBits(self, actual, expected):
        for a, b in zip(actual, expected):
            self.assertTrue(torch.equal(a.contiguous(), b.contiguous()), f"{a}\n{b}")

    @of_every_loss(*FORMATS)
    def test_values_and_gradients_are_those_in_f64(self, loss, function, tensors, counts, rest):
        outputs, slope = gradient(loss, function, tensors, counts, **rest)
        expected, expected_slope = gradient(loss, in_f64(loss), wide(tensors), counts, **rest)
        known = differentiable(loss, outputs)
        self.assertEqual([output.requires_grad for output in outputs], [True, len(known) > 1])
        for output, value in zip(outputs, expected):
            self.assertEqual(output.dtype, torch.float32)
            torch.testing.assert_close(output.cpu(), value.float())
        torch.testing.assert_close(slope.cpu(), expected_slope.to(slope.dtype))

    @of_every_loss(torch.float32)
    def test_strides_change_no_bit(self, loss, function, tensors, counts, rest):
        expected, expected_slope = gradient(loss, function, tensors, counts, **rest)
        transposed = [tensor.transpose(0, 1).contiguous().transpose(0, 1) for tensor in tensors]
        padded = [torch.cat([tensor, tensor], dim=1)[:, :tensor.shape[1]] for tensor in tensors]
        for given in (transposed, padded):
            outputs, slope = gradient(loss, function, given, counts, **rest)
            self.assertSameBits((*outputs, slope), (*expected, expected_slope))

    def test_one_number_for_all_positions_may_be_expanded(self):
        tensors, counts = batches(torch.float32, self.device)["grpo"]
        tensors[3] = torch.full((2, 1), 0.5, device=self.device).expand(2, 3)
        dense = [tensor.contiguous() for tensor in tensors]
        self.assertSameBits(fused.grpo(*tensors, **counts), fused.grpo(*dense, **counts))

    @of_every_loss(torch.float32)
    def test_masked_positions_are_not_read_and_get_zeros(self, loss, function, tensors, counts, rest):
        expected, expected_slope = gradient(loss, function, tensors, counts, **rest)
        spoiled = [tensor.clone() for tensor in tensors]
        for tensor in spoiled:
            if tensor.is_floating_point():
                tensor[1, 2] = torch.nan
        outputs, slope = gradient(loss, function, spoiled, counts, **rest)
        self.assertSameBits((*outputs, slope), (*expected, expected_slope))
        self.assertEqual(float(slope[1, 2].abs().max()), 0.0)

    def test_the_upstream_gradient_meets_the_terms_before_they_are_rounded(self):
        value = torch.tensor([[1e-4]], dtype=torch.float16, device=self.device, requires_grad=True)
        zero, mask = torch.zeros_like(value), torch.ones(1, 1, dtype=torch.bool, device=self.device)
        loss, _ = fused.value_clip(value, zero, zero, mask, total_tokens=4096, total_sequences=1)
        (loss * 65536).backward()  # 2.4e-8 alone is no number in f16 but 0 or 6e-8
        torch.testing.assert_close(value.grad.float(), value.detach().float() * 16)

    def test_masks_of_integers_and_labels_of_32_bits_are_taken(self):
        tensors, counts = batches(torch.float32, self.device)["grpo"]
        for dtype in (torch.uint8, torch.int32, torch.int64):
            self.assertSameBits(fused.grpo(*tensors[:4], tensors[4].to(dtype), **counts), fused.grpo(*tensors, **counts))
        tensors, counts = batches(torch.float32, self.device)["sparse_jsd"]
        narrow = [tensor.int() if tensor.dtype == torch.int64 else tensor for tensor in tensors]
        self.assertSameBits(fused.sparse_jsd(*narrow, **counts), fused.sparse_jsd(*tensors, **counts))

    def test_a_reference_that_has_no_weight_may_be_absent(self):
        tensors, counts = batches(torch.float32, self.device)["grpo"]
        without = [tensor if at != 2 else None for at, tensor in enumerate(tensors)]
        self.assertSameBits(fused.grpo(*without, kl_penalty=0.0, **counts), fused.grpo(*tensors, kl_penalty=0.0, **counts))

    def test_where_nothing_arrives_nothing_leaves(self):
        (logits, label), counts = batches(torch.float32, self.device)["log_prob"]
        logits[0, 1] = float("nan")
        leaf = logits.requires_grad_()
        log_prob, _ = fused.log_prob(leaf, label, **counts)
        log_prob[:, :1].sum().backward()
        self.assertTrue(bool(leaf.grad[:, 0].any()))
        self.assertFalse(bool(leaf.grad[:, 1:].any()))  # NaN is something

    @of_every_loss(torch.float32)
    def test_an_empty_batch_is_zero(self, loss, function, tensors, counts, rest):
        for given in ([tensor[:0] for tensor in tensors], [tensor[:, :0] for tensor in tensors]):
            none = dict.fromkeys(counts, 0)
            outputs, slope = gradient(loss, function, given, none, **rest)
            self.assertEqual(slope.shape, given[0].shape)
            if loss != "log_prob":
                self.assertEqual(float(outputs[0].detach()), 0.0)

    @of_every_loss(torch.bfloat16)
    def test_the_same_input_gives_the_same_bits(self, loss, function, tensors, counts, rest):
        first, slope = gradient(loss, function, tensors, counts, **rest)
        second, again = gradient(loss, function, tensors, counts, **rest)
        self.assertSameBits((*first, slope), (*second, again))

    @of_every_loss(torch.float32)
    def test_compiled_graphs_give_the_same_bits(self, loss, function, tensors, counts, rest):
        torch._dynamo.reset()
        compiled = torch.compile(lambda *given, f=function, **named: f(*given, **named), backend="aot_eager",
                                 fullgraph=True)
        outputs, slope = gradient(loss, function, tensors, counts, **rest)
        same, same_slope = gradient(loss, compiled, tensors, counts, **rest)
        self.assertSameBits((*outputs, slope), (*same, same_slope))

    @of_every_loss(*FORMATS)
    def test_meta_tensors_have_the_shapes_and_formats_of_real_ones(self, loss, function, tensors, counts, rest):
        real = gradient(loss, function, tensors, counts, **rest)
        meta = gradient(loss, function, [tensor.to("meta") for tensor in tensors], counts, **rest)
        for a, b in zip((*real[0], real[1]), (*meta[0], meta[1])):
            self.assertEqual((a.shape, a.dtype, True), (b.shape, b.dtype, b.is_meta))

    @of_every_loss(torch.float32)
    def test_operators_keep_the_rules_of_torch(self, loss, function, tensors, counts, rest):
        leaf = tensors[0].detach().requires_grad_()
        torch.library.opcheck(function.default, (leaf, *tensors[1:]), {**counts, **rest})
        upstream = [torch.ones_like(output) for output in differentiable(loss, function(*tensors, **counts, **rest))]
        backward = getattr(torch.ops.lossgate, f"fused_{loss}_gradient").default
        torch.library.opcheck(backward, (*upstream, *tensors), {**counts, **rest})

    def test_a_second_derivative_is_refused(self):
        tensors, counts = batches(torch.float32, self.device)["grpo"]
        leaf = tensors[0].requires_grad_()
        slope, = torch.autograd.grad(fused.grpo(*tensors, **counts)[0], leaf, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "differentiated once"):
            torch.autograd.grad(slope.sum(), leaf)


@unittest.skipUnless(on_gpu(), "no GPU, or a library without the form for one")
class OnGpu(Operators):
    device = "cuda"

    @of_every_loss(torch.float32)
    def test_nothing_waits_for_the_gpu(self, loss, function, tensors, counts, rest):
        function(*tensors, **counts, **rest)
        torch.cuda.set_sync_debug_mode("error")
        try:
            gradient_of_sum(loss, function, tensors, counts, rest)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    @of_every_loss(torch.bfloat16)
    def test_graphs_capture_forward_and_backward(self, loss, function, tensors, counts, rest):
        expected = gradient_of_sum(loss, function, tensors, counts, rest)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = gradient_of_sum(loss, function, tensors, counts, rest)
        graph.replay()
        self.assertSameBits([captured], [expected])


def gradient_of_sum(loss, function, tensors, counts, rest):
    leaf = tensors[0].detach().requires_grad_()
    outputs = differentiable(loss, function(leaf, *tensors[1:], **counts, **rest))
    return torch.autograd.grad(outputs, leaf, [torch.ones_like(output) for output in outputs])[0]


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.ops.load_library(sys.argv.pop())
    unittest.main()
