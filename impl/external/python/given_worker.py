# SPDX-License-Identifier: Apache-2.0
"""A worker that is asked inside the test process."""

from __future__ import annotations

import json
from typing import Any, Optional

import torch

import given_conversation as talk
import given_faulty_losses as faulty
from lossgate.worker.conversation import Worker


def batch(dtype: torch.dtype = torch.float32) -> dict:
    return {name: tensor.to(dtype) if tensor.dtype.is_floating_point else tensor
            for name, tensor in faulty.policy().items()}


def asked(subject: Any, loss: str = "grpo", arguments: Optional[dict] = None, **more: str) -> tuple:
    """A worker that has said hello for this subject, and what it said."""
    answering = Worker(subject, contained=True)
    answer = answering.answer(talk.write_frame(talk.hello(loss, arguments=arguments, **more))[8:])
    return answering, talk.read_document(answer[8:])[0]


def sources(subject: Any, loss: str = "grpo", arguments: Optional[dict] = None, **more: str) -> dict:
    metadata = asked(subject, loss, arguments, **more)[1]
    if metadata["op"] != "hello":
        raise AssertionError(metadata)
    return json.loads(metadata["arguments"])


def stepped(subject: Any, tensors: Optional[dict] = None, loss: str = "grpo", arguments: Optional[dict] = None,
            **more: Any) -> tuple[dict, dict]:
    answering, said = asked(subject, loss, arguments)
    if said["op"] != "hello":
        raise AssertionError(said)
    frame = talk.write_frame(talk.step(loss, **more), batch() if tensors is None else tensors)
    return talk.read_document(answering.answer(frame[8:])[8:])


def sum_loss(log_prob: torch.Tensor, advantage: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (log_prob * advantage * mask).sum()
