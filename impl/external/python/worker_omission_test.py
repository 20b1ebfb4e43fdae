# SPDX-License-Identifier: Apache-2.0
"""What callers may leave out, and what the function does then."""

from __future__ import annotations

import json
import unittest

import torch

from given_worker import asked, stepped, sum_loss


def one_step(log_prob, advantage, mask, old_log_prob=None):
    """Where nobody hands old log-probs over, the ratio has no gradient."""
    ratio = torch.exp(log_prob - (log_prob if old_log_prob is None else old_log_prob))
    return -(ratio * advantage * mask).sum()


class Omission(unittest.TestCase):
    def test_what_callers_may_leave_out_is_a_field_that_is_none_by_itself(self) -> None:
        def loss(log_prob, old_logps=None, ref_log_prob=0.0, mask=None, clip_low=None, rest=None, **more): ...
        self.assertEqual(json.loads(asked(loss)[1]["omissible"]), ["old_logps", "mask"])
        self.assertEqual(json.loads(asked(loss, arguments={"old_logps": "default"})[1]["omissible"]), ["mask"])
        self.assertNotIn("omissible", asked(sum_loss)[1])

    def test_what_is_left_out_is_what_the_function_makes_of_none(self) -> None:
        given = stepped(one_step)[1]["gradient.log_prob"]
        left_out = stepped(one_step, arguments={"old_log_prob": "default"})[1]["gradient.log_prob"]
        self.assertTrue(given.any())
        self.assertFalse(left_out.any())


if __name__ == "__main__":
    unittest.main()
