# SPDX-License-Identifier: Apache-2.0
"""Fused losses for torch 2.4 or newer, on the CPU and on NVIDIA GPUs (sm_80 and newer):

    import lossgate_fused as fused
    loss, per_token = fused.grpo(log_prob, old_log_prob, ref_log_prob, advantage, mask,
                                 total_tokens=total_tokens, total_sequences=total_sequences)
    loss.backward()

Each is torch.ops.lossgate.fused_LOSS, with shapes for torch.compile. Arithmetic is in float32 whatever is
stored; masked positions are not read. The gradient by what comes first is that of the loss (of both
outputs for log_prob), formed in the backward from the upstream gradient; nothing waits for the GPU.
"""
import torch

from . import operators as _operators  # registers them
from .library import has_device_form

grpo = torch.ops.lossgate.fused_grpo
value_clip = torch.ops.lossgate.fused_value_clip
log_prob = torch.ops.lossgate.fused_log_prob
jsd = torch.ops.lossgate.fused_jsd
sparse_jsd = torch.ops.lossgate.fused_sparse_jsd
logits_grpo = torch.ops.lossgate.fused_logits_grpo

__all__ = ["grpo", "has_device_form", "jsd", "log_prob", "logits_grpo", "sparse_jsd", "value_clip"]
