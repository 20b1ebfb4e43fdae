# SPDX-License-Identifier: Apache-2.0
"""What papers and trainers call the options of a loss."""

from __future__ import annotations

import unittest

from given_worker import asked, sources


class Aliases(unittest.TestCase):
    def test_temperatures_of_sapo_are_known_by_their_sign(self) -> None:
        found = sources(lambda log_prob, old_log_prob, advantage, tau_pos, sapo_temperature_neg: 0, "sapo")
        self.assertEqual((found["tau_pos"], found["sapo_temperature_neg"]), ("option:tau_positive", "option:tau_negative"))

    def test_powers_and_decays_of_vespo_are_known_by_their_sign(self) -> None:
        found = sources(lambda log_prob, old_log_prob, advantage, k_pos, vespo_lambda_neg, lam_pos: 0, "vespo")
        self.assertEqual([found[name] for name in ("k_pos", "vespo_lambda_neg", "lam_pos")],
                         ["option:k_positive", "option:lambda_negative", "option:lambda_positive"])

    def test_bounds_of_dppo_are_two_or_one_and_no_clip_of_the_ratio(self) -> None:
        found = sources(lambda logp, old_logp, adv, delta_low, clip_divergence_high, clip_ratio_c, eps=1e-8: 0, "dppo")
        options = ("divergence_low", "divergence_high", "weight_high", "epsilon")
        self.assertEqual(list(found.values())[3:], [f"option:{name}" for name in options])
        tied = asked(lambda logp, dppo_divergence_threshold: 0, "dppo")[1]["tied"]
        self.assertEqual(tied, '{"divergence_high": "divergence_low"}')


if __name__ == "__main__":
    unittest.main()
