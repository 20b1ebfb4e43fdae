# SPDX-License-Identifier: Apache-2.0
"""Settings of torch that a call leaves changed, beside those of worker_step_test.py."""

from __future__ import annotations

import json
import random
import unittest
from typing import Callable
from unittest import mock

import numpy as np
import torch

from given_worker import stepped
from lossgate.worker.settings import Settings, _settings as settings


class WhatIsLeftChanged(unittest.TestCase):
    def assert_left(self, change: Callable[[], object], shown: str) -> None:
        def careless(log_prob: torch.Tensor) -> torch.Tensor:
            loss = log_prob.sum()
            change()
            return loss
        for _ in range(2):  # it is restored
            self.assertEqual(json.loads(stepped(careless)[0]["changed_settings"]), [shown])

    def test_the_default_device(self) -> None:
        self.assert_left(lambda: torch.set_default_device("meta"), "torch.get_default_device() is meta")
        self.assertEqual(torch.empty(0).device.type, "cpu")

    def test_a_default_device_that_a_module_sets(self) -> None:
        self.addCleanup(torch.set_default_device, None)
        def careless(log_prob: torch.Tensor) -> torch.Tensor:
            torch.set_default_device("cpu")
            return log_prob.sum()
        torch.set_default_device("meta")
        settings = Settings()
        careless(torch.ones(1, device="cpu"))
        self.assertEqual(settings.restore(), ["torch.get_default_device() is cpu"])
        self.assertEqual(torch.empty(0).device.type, "meta")

    def test_a_precision_that_was_set_for_one_backend(self) -> None:
        self.addCleanup(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
        def precise(log_prob: torch.Tensor) -> torch.Tensor:
            return log_prob.sum()
        silent = mock.Mock(side_effect=RuntimeError("PyTorch is checking whether allow_tf32_new is enabled"))
        with mock.patch.object(torch, "get_float32_matmul_precision", silent):
            settings.cache_clear()
            self.addCleanup(settings.cache_clear)
            metadata = stepped(precise)[0]
        self.assertTrue(silent.called)
        self.assertEqual((metadata["op"], metadata.get("changed_settings", "[]")), ("result", "[]"))

    def test_the_shape_of_a_constant(self) -> None:
        def careless(log_prob: torch.Tensor, advantage: torch.Tensor) -> torch.Tensor:
            return (log_prob.unsqueeze(-1) * advantage.unsqueeze_(-1)).sum()
        self.assertEqual(json.loads(stepped(careless)[0]["mutated"]), ["advantage"])

    def test_the_number_of_threads(self) -> None:
        more = torch.get_num_threads() + 1
        self.assert_left(lambda: torch.set_num_threads(more), f"torch.get_num_threads() is {more}")

    @unittest.skipUnless(hasattr(torch, "set_autocast_enabled") and torch.__version__ >= "2.4", "before torch 2.4")
    def test_autocast(self) -> None:
        self.assert_left(lambda: torch.set_autocast_enabled("cpu", True), 'torch.is_autocast_enabled("cpu") is True')

    def test_subnormal_numbers_that_are_taken_for_zero(self) -> None:
        self.assert_left(lambda: torch.set_flush_denormal(True), "5e-324 * 1 == 0 is True")
        loaded: list = []
        def loads_a_library(log_prob: torch.Tensor) -> torch.Tensor:
            if not loaded:
                loaded.append(torch.set_flush_denormal(True))
            return log_prob.sum()
        self.assertNotIn("changed_settings", stepped(loads_a_library)[0])

    def test_that_a_frozen_field_is_to_have_a_gradient(self) -> None:
        def unfreezes(log_prob: torch.Tensor, advantage: torch.Tensor) -> torch.Tensor:
            return (log_prob * advantage.requires_grad_()).sum()
        self.assertEqual(json.loads(stepped(unfreezes)[0]["changed_settings"]), ["advantage.requires_grad is True"])
        def of_its_own(log_prob: torch.Tensor, advantage: torch.Tensor) -> torch.Tensor:
            return (log_prob * advantage.detach().requires_grad_()).sum()
        self.assertNotIn("changed_settings", stepped(of_its_own)[0])

    def test_a_generator_that_each_call_begins_anew(self) -> None:
        def says(draw: Callable[[], object]) -> list:
            def drawing(log_prob: torch.Tensor) -> torch.Tensor:
                draw()
                return log_prob.sum()
            return json.loads(stepped(drawing, history="two_forwards")[0].get("changed_settings", "[]"))
        begun, numbers = torch.get_rng_state(), random.getstate()
        self.assertEqual(says(lambda: torch.set_rng_state(begun)), ["torch.get_rng_state() is as another call left it"])
        self.assertEqual(says(lambda: (random.setstate(numbers), random.random())),
                         ["random.getstate() is as another call left it"])
        self.assertEqual(says(lambda: np.random.seed(0)), ["numpy.random.get_state() is as another call left it"])
        def puts_it_back() -> None:
            with torch.random.fork_rng():
                torch.set_rng_state(begun)
        for sound in (lambda: torch.rand(3), random.random, np.random.random, puts_it_back):
            self.assertEqual(says(sound), [])

    def test_not_what_was_changed_for_a_while(self) -> None:
        def careful(log_prob: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu"), torch.device("meta"):
                torch.empty(2) + 1
            return log_prob.sum()
        self.assertNotIn("changed_settings", stepped(careful)[0])


class WhatARefusalLeavesChanged(unittest.TestCase):
    def raised(self, subject: Callable) -> list:
        metadata = stepped(subject)[0]
        self.assertEqual(metadata["op"], "raised")
        return json.loads(metadata.get("changed_settings", "[]"))

    def assert_left(self, change: Callable[[], object], shown: str, error: Exception = ValueError("'mask' is empty")) -> None:
        def careless(log_prob: torch.Tensor) -> torch.Tensor:
            change()
            raise error
        for _ in range(2):  # it is restored
            self.assertEqual(self.raised(careless), [shown])

    def test_by_what_other_code_computes(self) -> None:
        more = torch.get_num_threads() + 1
        for change, shown in ((lambda: torch.set_default_dtype(torch.float64), "torch.get_default_dtype() is torch.float64"),
                              (lambda: torch.set_grad_enabled(False), "torch.is_grad_enabled() is False"),
                              (lambda: torch.set_num_threads(more), f"torch.get_num_threads() is {more}"),
                              (lambda: torch.use_deterministic_algorithms(True),
                               "torch.are_deterministic_algorithms_enabled() is True")):
            self.assert_left(change, shown)
        self.assertEqual((torch.get_default_dtype(), torch.is_grad_enabled()), (torch.float32, True))

    def test_by_what_is_not_computed_or_ends_the_process(self) -> None:
        for error in (NotImplementedError("of bf16"), SystemExit(3)):
            self.assert_left(lambda: torch.set_default_dtype(torch.float64), "torch.get_default_dtype() is torch.float64", error)

    def test_by_a_result_that_is_none(self) -> None:
        def of_no_tensor(log_prob: torch.Tensor) -> float:
            torch.set_grad_enabled(False)
            return float(log_prob.sum())
        self.assertEqual(self.raised(of_no_tensor), ["torch.is_grad_enabled() is False"])

    def test_by_a_backward(self) -> None:
        def careless(log_prob: torch.Tensor) -> torch.Tensor:
            def refuse(gradient: torch.Tensor) -> None:
                torch.set_default_dtype(torch.float64)
                raise ValueError("no backward")
            loss = log_prob.sum()
            loss.register_hook(refuse)
            return loss
        self.assertEqual(self.raised(careless), ["torch.get_default_dtype() is torch.float64"])

    def test_subnormal_numbers_that_are_taken_for_zero(self) -> None:
        self.assert_left(lambda: torch.set_flush_denormal(True), "5e-324 * 1 == 0 is True")
        loaded: list = []
        def loads_a_library(log_prob: torch.Tensor) -> torch.Tensor:
            if not loaded:
                loaded.append(torch.set_flush_denormal(True))
            raise ValueError("'mask' is empty")
        self.assertEqual(self.raised(loads_a_library), [])

    def test_not_what_was_changed_for_a_while(self) -> None:
        def careful(log_prob: torch.Tensor) -> torch.Tensor:
            with torch.no_grad(), torch.autocast("cpu"):
                raise ValueError("'mask' is empty")
        self.assertEqual(self.raised(careful), [])


if __name__ == "__main__":
    unittest.main()
