# SPDX-License-Identifier: Apache-2.0
"""`as float` where some fields have more digits than others."""

from __future__ import annotations

import unittest
from typing import Any

import torch

from given_worker import batch, stepped


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


if __name__ == "__main__":
    unittest.main()
