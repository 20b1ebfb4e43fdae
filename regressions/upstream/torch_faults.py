# SPDX-License-Identifier: Apache-2.0
"""PyTorch."""
from __future__ import annotations

import torch
import torch.nn.functional as F
from fault import Seen, fault, leaf, not_finite


@fault("torch.cross_entropy.ignored", "a row whose label is ignored: its logits of -inf give it a gradient",
       "torch==2.11.0")
def ignored() -> Seen:
    logits = leaf([0.0, 0.0], [float("-inf"), float("-inf")])
    return not_finite(F.cross_entropy(logits, torch.tensor([0, -100])), logits, "0 for the ignored row")
