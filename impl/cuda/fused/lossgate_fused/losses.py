# SPDX-License-Identifier: Apache-2.0
"""What the fused losses take and give."""
from __future__ import annotations

from typing import NamedTuple

COUNTS = "int total_tokens, int total_sequences, str reduction='token_mean', "
POLICY = (COUNTS + "float clip_low=0.2, float clip_high=0.2, float? dual_clip=None, float? log_ratio_clamp=20.0, "
          "str level='token', float kl_penalty=0.04, str kl_estimator='k3', float? kl_input_clamp=20.0, "
          "float? kl_output_clamp=10.0, bool kl_weighted=False, int max_length=16")
DIVERGENCE = "int total_tokens, str reduction='token_mean', float beta=0.5, float temperature=1.0, int num_items=1"


class Loss(NamedTuple):
    """Of a loss: its name; its tensors with their axes (sequences, tokens, vocab, support), the one that has a
    gradient first; its options as a schema says them; those of its tensors that the kernels read in f32; its
    outputs."""

    name: str
    tensors: dict[str, str]
    options: str
    wide: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("loss", "per_token")

    @property
    def leaf(self) -> str:
        return next(iter(self.tensors))

    @property
    def upstreams(self) -> tuple[str, ...]:
        """The gradients that come from above, as the library calls them."""
        return ("upstream",) if self.outputs[0] == "loss" else tuple(f"{output}_weight" for output in self.outputs)

    @property
    def schema(self) -> str:
        tensors = (f"Tensor{'?' if name == 'ref_log_prob' else ''} {name}" for name in self.tensors)
        return f"{', '.join(tensors)}, *, {self.options}"


LOSSES = (
    Loss("grpo", {"log_prob": "ST", "old_log_prob": "ST", "ref_log_prob": "ST", "advantage": "ST", "mask": "ST"}, POLICY),
    Loss("value_clip", {"value": "ST", "old_value": "ST", "returns": "ST", "mask": "ST"},
         COUNTS + "float? value_clip=0.2, str clip_form='around_old', int max_length=16"),
    Loss("log_prob", {"logits": "STV", "label": "ST"}, "float temperature=1.0", outputs=("log_prob", "entropy")),
    Loss("jsd", {"student_logits": "STV", "teacher_logits": "STV", "label": "ST"},
         DIVERGENCE + ", bool soft_cross_entropy=False"),
    Loss("sparse_jsd", {"student_logits": "STV", "support_token": "STK", "teacher_log_prob": "STK", "label": "ST"},
         DIVERGENCE + ", bool tail=True, float tail_floor=1e-7", wide=("teacher_log_prob",)),
    Loss("logits_grpo", {"logits": "STV", "label": "ST", "old_log_prob": "ST", "ref_log_prob": "ST", "advantage": "ST"},
         POLICY + ", float temperature=1.0", wide=("old_log_prob", "ref_log_prob", "advantage")),
)

# What the library calls otherwise: `return` is no name in Python.
NAMES = {"returns": "return"}
