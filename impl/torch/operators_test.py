# SPDX-License-Identifier: Apache-2.0
"""Every operator as a trainer uses it: gradients, meta tensors, formats, refusals.

    python operators_test.py LIBLOSSGATE_TORCH
"""

import math
import sys
import unittest

import torch
from operator_calls import V, VARIANTS, arguments, call


class Operators(unittest.TestCase):
    def test_gradients_are_those_of_the_values(self):
        for name, (tensors, differentiable, counts) in arguments().items():
            if not differentiable:
                continue
            for index in differentiable:
                tensors[index].requires_grad_()

            leaves = [tensors[index] for index in differentiable]
            for options in ({}, *VARIANTS.get(name, ())):

                def values(*leaves, options=options):
                    inputs = list(tensors)
                    for index, leaf in zip(differentiable, leaves):
                        inputs[index] = leaf
                    return call(name, inputs, counts, **options)

                with self.subTest(name, **options):
                    self.assertTrue(torch.autograd.gradcheck(values, leaves))

    def test_meta_tensors_have_the_shapes_and_formats_of_real_ones(self):
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            for name, (tensors, differentiable, counts) in arguments(dtype).items():
                meta = [tensor.to("meta") for tensor in tensors]
                for index in differentiable:
                    meta[index].requires_grad_()
                for real, shape in zip(call(name, tensors, counts), call(name, meta, counts)):
                    with self.subTest(name, dtype=dtype):
                        self.assertEqual((real.shape, real.dtype), (shape.shape, shape.dtype))
                        self.assertTrue(shape.is_meta)
                        self.assertEqual(shape.requires_grad, bool(differentiable))

    def test_gradients_have_the_format_of_their_input(self):
        for name, (tensors, differentiable, counts) in arguments(torch.bfloat16).items():
            for index in differentiable:
                tensors[index].requires_grad_()
            if differentiable:
                call(name, tensors, counts)[0].sum().backward()
            for index in differentiable:
                with self.subTest(name, index=index):
                    self.assertEqual(tensors[index].grad.dtype, torch.bfloat16)

    def test_sparse_jsd_refuses_a_missing_teacher_by_its_place(self):
        (logits, tokens, support, label), _, counts = arguments()["sparse_jsd"]
        support[1, 2] = -math.inf  # masked: nobody looks
        call("sparse_jsd", (logits, tokens, support, label), counts)
        support[1, 1, 0] = -math.inf
        with self.assertRaisesRegex(ValueError, "sequence 1, token 1"):
            call("sparse_jsd", (logits, tokens, support, label), counts)
        call("sparse_jsd", (logits, tokens, support, label), counts, beta=0.0)

    def test_linear_losses_need_no_bias(self):
        for name in ("linear_grpo", "linear_cross_entropy"):
            tensors, _, counts = arguments()[name]
            gradients = []
            for bias in (None, torch.zeros_like(tensors[2])):
                hidden, weight = (t.detach().clone().requires_grad_() for t in tensors[:2])
                loss, _ = call(name, (hidden, weight, bias, *tensors[3:]), counts)
                loss.backward()
                gradients.append((loss.detach(), hidden.grad, weight.grad))
            torch.testing.assert_close(gradients[0], gradients[1])

    def test_without_a_penalty_no_reference_is_needed(self):
        for name, at in (("grpo", 2), ("linear_grpo", 5)):
            tensors, differentiable, counts = arguments()[name]
            for index in differentiable:
                tensors[index].requires_grad_()
            without = [*tensors[:at], None, *tensors[at + 1:]]
            expected, found = (call(name, given, counts, kl_penalty=0.0) for given in (tensors, without))
            torch.testing.assert_close(found, expected)
            leaves = [tensors[index] for index in differentiable]
            torch.testing.assert_close(*(torch.autograd.grad(out[0], leaves) for out in (found, expected)))
            with self.assertRaisesRegex(RuntimeError, "^ref_log_prob is missing"):
                call(name, without, counts)

    def test_a_reference_gets_no_gradient(self):
        for name, without in (("dpo", [False, False, True, True]), ("kto", [False, True])):
            tensors, _, counts = arguments()[name]
            leaves = [tensor.clone().requires_grad_() for tensor in tensors if tensor.is_floating_point()]
            call(name, [*leaves, *tensors[len(leaves):]], counts)[0].backward()
            self.assertEqual([leaf.grad is None for leaf in leaves], without, name)

    def test_a_frozen_output_layer_changes_no_other_gradient(self):
        for name in ("linear_grpo", "linear_cross_entropy", "linear_jsd"):
            tensors, _, counts = arguments()[name]
            hidden = tensors[0].requires_grad_()
            frozen, = torch.autograd.grad(call(name, tensors, counts)[0], hidden)
            tensors[1].requires_grad_()
            both = torch.autograd.grad(call(name, tensors, counts)[0], (hidden, tensors[1]))
            torch.testing.assert_close(frozen, both[0], rtol=0, atol=0)

    def test_autocast_forms_no_logits_in_16_bits(self):
        for name in ("linear_grpo", "linear_cross_entropy", "linear_jsd"):
            tensors, differentiable, counts = arguments(torch.float32)[name]
            for index in differentiable:
                tensors[index].requires_grad_()
            leaves = [tensors[index] for index in differentiable]
            expected = call(name, tensors, counts)
            gradients = torch.autograd.grad(expected[0], leaves)
            with self.subTest(name), torch.autocast("cpu", torch.bfloat16):
                found = call(name, tensors, counts)
                torch.testing.assert_close(found, expected, rtol=0, atol=0)
                torch.testing.assert_close(torch.autograd.grad(found[0], leaves), gradients, rtol=0, atol=0)

    def test_a_second_derivative_is_right_or_refused(self):
        right = {"dpo", "kto", "log_prob", "orpo"}
        for name, (tensors, differentiable, counts) in arguments().items():
            if not differentiable and name not in ("cispo", "dft", "dppo", "vespo"):
                continue
            leaf = tensors[differentiable[0] if differentiable else 0]

            def first(x, create_graph):
                inputs = [x if tensor is leaf else tensor for tensor in tensors]
                return torch.autograd.grad(call(name, inputs, counts)[0].sum(), x, create_graph=create_graph)[0]

            x = (leaf.detach() * 0.7).requires_grad_()
            gradient = first(x, True)
            with self.subTest(name):
                torch.testing.assert_close(gradient.detach(), first(x, False))
                if name not in right:
                    with self.assertRaisesRegex(RuntimeError, "differentiated once"):
                        gradient.square().sum().backward()
                    continue
                direction = torch.randn_like(x)
                second, = torch.autograd.grad((gradient * direction).sum(), x)
                moved = [first((x.detach() + step * 1e-6 * direction).requires_grad_(), False) for step in (1, -1)]
                torch.testing.assert_close((second * direction).sum(), ((moved[0] - moved[1]) * direction).sum() / 2e-6,
                                           rtol=1e-5, atol=1e-8)

    def test_invalid_input_is_refused(self):
        cases = arguments()
        for name, change, message in (
            ("grpo", {"reduction": "mean"}, "reduction"),
            ("grpo", {"level": "word"}, "level"),
            ("grpo", {"total_tokens": 0}, "total_tokens"),
            ("jsd", {"beta": 1.5}, "beta"),
            ("jsd", {"temperature": 0.0}, "temperature"),
            ("log_prob", {"temperature": -1.0}, "temperature"),
            ("value_clip", {"clip_form": "round"}, "clip_form"),
            ("kl_penalty", {"kl_estimator": "k4"}, "kl_estimator"),
            ("group_advantage", {"scale": "iqr"}, "scale"),
            ("gae", {"gamma": 1.5}, "gamma"),
            ("grpo", {"log_ratio_clamp": -1.0}, "log_ratio_clamp"),
            ("grpo", {"dual_clip": 0.5}, "dual_clip"),
            ("linear_grpo", {"clip_low": math.nan}, "clip_low"),
            ("grpo", {"kl_output_clamp": math.nan}, "kl_output_clamp"),
            ("grpo", {"reduction": "sum_over_items"}, "reduction cannot be 'sum_over_items'"),
            ("cross_entropy", {"reduction": "sequence_mean"}, "reduction cannot be 'sequence_mean'"),
            ("dft", {"reduction": "sequence_mean"}, "reduction cannot be 'sequence_mean'"),
            ("scale_advantages", {"normalisation": "mean"}, "normalisation"),
            ("dpo", {"total_pairs": 0}, "total_pairs"),
            ("dpo", {"label_smoothing": 1.5}, "label_smoothing"),
            ("dpo", {"margin": -0.5}, "margin"),
            ("kto", {"total_sequences": 0}, "total_sequences"),
            ("kto", {"kl": -0.5}, "kl"),
            ("kto", {"undesirable_weight": -1.0}, "undesirable_weight"),
            ("orpo", {"beta": 0.0}, "beta"),
            ("dro", {"beta": 0.0}, "beta"),
            ("gmpo", {"clip_low": -0.1}, "clip_low"),
            ("gmpo", {"reduction": "token_mean"}, "reduction cannot be 'token_mean'"),
            ("cispo", {"weight_low": 2.0, "weight_high": 1.0}, "weight_low"),
            ("dppo", {"divergence": "js"}, "divergence"),
            ("dppo", {"surrogate": "ratio"}, "surrogate"),
            ("dppo", {"divergence_low": -0.1}, "divergence_low"),
            ("dppo", {"epsilon": math.nan}, "epsilon"),
            ("rollout_correction", {"level": "word"}, "level"),
            ("rollout_correction", {"beyond": "mask"}, "beyond"),
            ("rollout_correction", {"weight_low": 3.0}, "weight_low"),
            ("sapo", {"tau_positive": -1.0}, "tau_positive"),
            ("vespo", {"k_negative": -1.0}, "k_negative"),
            ("vespo", {"lambda_positive": math.nan}, "lambda_positive"),
            ("value_clip", {"value_clip": -0.2}, "value_clip"),
            ("sparse_jsd", {"tail_floor": 0.0}, "tail_floor"),
        ):
            tensors, _, counts = cases[name]
            with self.subTest(name, **change), self.assertRaisesRegex(RuntimeError, message):
                call(name, tensors, {**counts, **change})
        for name in ("log_prob", "dft", "jsd", "linear_grpo", "linear_cross_entropy", "linear_jsd"):
            tensors, _, counts = cases[name]
            wrong = [t.masked_fill(t == 4, V) if t.dtype == torch.int64 else t for t in tensors]
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, "label"):
                call(name, wrong, counts)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.ops.load_library(sys.argv.pop())
    unittest.main()
