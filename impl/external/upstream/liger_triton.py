# SPDX-License-Identifier: Apache-2.0
"""Liger Kernel, its Triton kernels: on CPU tensors through Triton's interpreter (triton 3.6 with numpy below 2.4)."""
from __future__ import annotations

import torch.nn.functional as F
from release import Release, file_of
from torch import Tensor

JSD, PRIMITIVE = "liger_kernel.ops.jsd", "liger_kernel.ops.backends._triton.jsd"
CROSS_ENTROPY, LINEAR = "liger_kernel.ops.cross_entropy", "liger_kernel.ops.fused_linear_cross_entropy"
MODULES = (JSD, PRIMITIVE, CROSS_ENTROPY, LINEAR, "liger_kernel.ops.utils", "liger_kernel.utils")
release = Release("liger-kernel", MODULES, also=("packaging",))
kernels = release.load(JSD)
REDUCTIONS = {"token_mean": "mean", "sum": "sum"}
if file_of(PRIMITIVE):  # 0.8 looks its kernels up by device; there is one for this
    kernels.dispatch = lambda name, *arguments, **choice: release.load(PRIMITIVE).jsd_loss_and_grad_triton(*arguments)


def jsd(student_logits: Tensor, teacher_logits: Tensor, label: Tensor, beta: float, temperature: float) -> Tensor:
    student = F.log_softmax(student_logits.flatten(0, 1) / temperature, dim=-1)
    teacher = F.log_softmax(teacher_logits.flatten(0, 1) / temperature, dim=-1)
    return kernels.LigerJSDFunction.apply(student, teacher, label.flatten().long(), beta, -100)


def cross_entropy(logits: Tensor, label: Tensor, label_smoothing: float, z_loss: float, reduction: str) -> Tensor:
    loss = release.load(CROSS_ENTROPY).LigerCrossEntropyFunction
    rows = logits.flatten(0, 1).clone()  # the gradient is written over them
    return loss.apply(rows, label.flatten().long(), None, -100, z_loss, label_smoothing,
                      REDUCTIONS[reduction], None, False)[0]


def linear_cross_entropy(hidden: Tensor, weight: Tensor, bias: Tensor, label: Tensor, label_smoothing: float,
                         z_loss: float, reduction: str) -> Tensor:
    loss = release.load(LINEAR).LigerFusedLinearCrossEntropyFunction
    return loss.apply(hidden.flatten(0, 1), weight, label.flatten().long(), bias, None, -100, z_loss, label_smoothing,
                      REDUCTIONS[reduction])[0]
