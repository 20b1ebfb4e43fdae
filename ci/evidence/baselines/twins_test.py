# SPDX-License-Identifier: Apache-2.0
"""The sound twins are sound, and the inputs are what they say."""

from __future__ import annotations

import math
import sys
import unittest
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "impl" / "external" / "python")]

import torch

import given_faulty_losses
import ours
import sound_twins
from fields import Field, draw_benign, draw_uniform, evaluate, fields_of

TWINS = [getattr(sound_twins, given.function.__name__) for given in given_faulty_losses.FAULTY]


def kept(batch: dict) -> torch.Tensor:
    return batch["mask"] if "mask" in batch else batch["label"] != -100


class Twins(unittest.TestCase):
    def setUp(self) -> None:
        warnings.filterwarnings("ignore")
        self.generator = torch.Generator().manual_seed(5)

    def test_a_twin_is_finite_and_inert_whatever_stands_behind_its_mask(self) -> None:
        for twin in TWINS:
            fields = fields_of(twin)
            for padding in (0.0, math.inf, -math.inf, math.nan, 3e38):
                batch = draw_benign(fields, self.generator)
                keep = kept(batch)
                for field in fields:
                    if batch[field.name].is_floating_point():
                        batch[field.name][~keep] = padding
                loss, *gradients = evaluate(twin, batch, torch.float32)
                with self.subTest(twin=twin.__name__, padding=padding):
                    self.assertTrue(torch.isfinite(loss))
                    for gradient in gradients:
                        self.assertTrue(torch.isfinite(gradient).all())
                        self.assertFalse(gradient[~keep].any())

    def test_a_twin_gives_0_where_nothing_counts(self) -> None:
        for twin in TWINS:
            batch = draw_benign(fields_of(twin), self.generator)
            for name in ("mask", "label"):
                if name in batch:
                    batch[name] = torch.full_like(batch[name], 0 if name == "mask" else -100)
            with self.subTest(twin=twin.__name__):
                self.assertTrue(all(not tensor.any() for tensor in evaluate(twin, batch, torch.float32)))

    def test_a_faulty_one_shows_a_number_that_is_none_on_its_own_input(self) -> None:
        for given in given_faulty_losses.FAULTY:
            tensors = {("returns" if name == "return" else name): tensor for name, tensor in given.tensors.items()}
            batch = {f.name: tensors[f.name].bool() if f.kind == "mask" else tensors[f.name]
                     for f in fields_of(given.function)}
            results = evaluate(given.function, batch, torch.float32)
            with self.subTest(function=given.function.__name__):
                self.assertFalse(all(torch.isfinite(tensor).all() for tensor in results))


class Inputs(unittest.TestCase):
    def test_benign_rows_are_not_empty_and_log_probs_negative(self) -> None:
        fields = [Field("log_prob", "log_prob", True), Field("mask", "mask")]
        batch = draw_benign(fields, torch.Generator().manual_seed(1))
        self.assertTrue(batch["mask"].any(-1).all())
        self.assertTrue((batch["log_prob"] < 0).all())

    def test_adversarial_inputs_hold_what_is_no_number(self) -> None:
        fields = [Field("value", "value", True)]
        generator = torch.Generator().manual_seed(1)
        self.assertTrue(torch.isfinite(draw_uniform(fields, generator)["value"]).all())
        special = torch.stack([draw_uniform(fields, generator, adversarial=True)["value"] for _ in range(50)])
        self.assertTrue(torch.isnan(special).any() and torch.isinf(special).any())

    def test_a_signature_names_every_field_once(self) -> None:
        text = ours.signature("mine", fields_of(sound_twins.softmax_of_nothing))
        self.assertEqual(text.count("[[field]]"), 3)
        self.assertIn('ignore_label = "label"', text)
        self.assertIn('axes = ["sequences", "tokens", "vocab"]', text)


if __name__ == "__main__":
    unittest.main()
