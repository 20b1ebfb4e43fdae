# SPDX-License-Identifier: Apache-2.0
"""`as float` where some fields have more digits than others, `as lengths` of a mask or labels, `as expanded` of what a
sequence has once."""

from __future__ import annotations

import unittest
from typing import Any

import torch

from given_faulty_losses import logits
from given_worker import asked, batch, stepped
from lossgate.worker.conversion import CONVERSIONS, Surroundings


class AsFloat(unittest.TestCase):
    def dtypes(self, **sources: str) -> dict:
        """Of what parameters with these sources receive, the old log-probs being in f32 beside bf16."""
        caught: dict[str, Any] = {}
        def subject(x, old, mask):
            caught.update(old=old.dtype, x=x.dtype, mask=mask.dtype)
            return x.sum()
        tensors = {**batch(torch.bfloat16), "old_log_prob": batch()["old_log_prob"]}
        tensors = dict(sorted(tensors.items(), key=lambda item: -item[1].element_size()))  # as frames have them
        metadata, _ = stepped(subject, tensors, "grpo", sources)
        self.assertEqual(metadata["op"], "result", metadata)
        return caught

    def test_a_mask_has_the_dtype_that_the_fields_share_and_numbers_keep_theirs(self) -> None:
        for word in ("", " as float"):
            seen = self.dtypes(x="field:log_prob" + word, old="field:old_log_prob" + word, mask="field:mask as float")
            self.assertEqual(seen, {"x": torch.bfloat16, "old": torch.float32, "mask": torch.bfloat16})

    def test_the_last_word_counts(self) -> None:
        words = " as float16 as float"
        seen = self.dtypes(x="field:log_prob" + words, old="field:old_log_prob" + words, mask="field:mask" + words)
        self.assertEqual(seen, {"x": torch.bfloat16, "old": torch.float32, "mask": torch.bfloat16})


class Numbers(unittest.TestCase):
    def test_are_rounded_once_and_none_stays_none(self) -> None:
        around = Surroundings(torch.float64, torch.device("cpu"), lambda: None)
        for word in ("float", "float64", "tensor"):
            self.assertEqual(CONVERSIONS[word](0.2, around).item(), 0.2)
            self.assertIsNone(CONVERSIONS[word](None, around))
        self.assertEqual(CONVERSIONS["float32"](0.2, around).dtype, torch.float32)
        narrow = around._replace(compute=torch.float32)
        self.assertEqual(CONVERSIONS["tensor"](0.2, narrow).dtype, torch.float32)
        self.assertEqual(CONVERSIONS["tensor"](5, around).dtype, torch.int64)


class AsLengths(unittest.TestCase):
    def lengths(self, source: str, tensors: dict, loss: str) -> Any:
        caught = []
        def subject(x, lengths):
            caught.append(lengths)
            return x.sum()
        first = "log_prob" if loss == "grpo" else "student_logits"
        metadata, _ = stepped(subject, tensors, loss, {"x": f"field:{first}", "lengths": source})
        self.assertEqual(metadata["op"], "result", metadata)
        return caught[0]

    def test_a_mask_says_how_many_of_its_tokens_count(self) -> None:
        for dtype in (torch.uint8, torch.bool, torch.float32):
            lengths = self.lengths("field:mask as lengths", {**batch(), "mask": batch()["mask"].to(dtype)}, "grpo")
            self.assertTrue(lengths.dtype == torch.int64 and lengths.tolist() == [3, 2])

    def test_labels_that_are_ignored_do_not_count(self) -> None:
        lengths = self.lengths("field:label as lengths as int32", logits(), "jsd")
        self.assertTrue(lengths.dtype == torch.int32 and lengths.tolist() == [2, 1])


class AsExpanded(unittest.TestCase):
    def expanded(self, tensors: dict, **more: Any) -> Any:
        caught = []
        def subject(x, advantages):
            caught.append(advantages)
            return x.sum()
        sources = {"x": "field:log_prob", "advantages": "field:advantage as expanded"}
        metadata, _ = stepped(subject, tensors, "grpo", sources, **more)
        self.assertEqual(metadata["op"], "result", metadata)
        return caught[0]

    def test_every_position_has_the_number_of_those_that_count(self) -> None:
        nan, mask = float("nan"), torch.tensor([[0, 1, 1], [1, 1, 0]], dtype=torch.uint8)
        advantage = torch.tensor([[nan, -0.5, -0.5], [2.0, 2.0, float("inf")]])
        seen = self.expanded({**batch(), "advantage": advantage, "mask": mask})
        self.assertEqual(seen.tolist(), [[-0.5] * 3, [2.0] * 3])
        undefined = self.expanded({**batch(), "advantage": torch.tensor([[nan] * 3, [1.0] * 3]), "mask": mask})
        self.assertTrue(undefined[0].isnan().all() and undefined[1].tolist() == [1.0] * 3)

    def test_what_is_so_already_lies_where_callers_have_it(self) -> None:
        advantage = torch.tensor([[-0.5] * 3, [2.0] * 3])
        for layout, lies in {"padded_rows": ((6, 1), 0), "offset": ((3, 1), 1), "transposed": ((1, 2), 0)}.items():
            seen = self.expanded({**batch(), "advantage": advantage}, layout=layout)
            self.assertEqual((seen.stride(), seen.storage_offset()), lies, layout)
        self.assertEqual(self.expanded({name: tensor[:, :0] for name, tensor in batch().items()}).shape, (2, 0))

    def test_needs_to_be_told_what_counts(self) -> None:
        said = asked(lambda x, y: x.sum(), "dpo", {"x": "field:chosen_log_prob",
                                                   "y": "field:ref_chosen_log_prob as expanded"})[1]
        self.assertIn("y: 'as expanded' needs a mask or a label, which dpo has not", said["message"])


if __name__ == "__main__":
    unittest.main()
