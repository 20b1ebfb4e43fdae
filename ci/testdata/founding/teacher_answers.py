# SPDX-License-Identifier: Apache-2.0
"""What a teacher server answered, decoded and merged (reference/teacher_message.h), rightly or with one fault."""

from __future__ import annotations

import base64
import json
import math
import struct

import torch


def _binary(message: dict, name: str, letter: str, entries: int) -> list:
    """A rectangle of base64, cut to the completions."""
    rows, width = message["shape"][0], message["shape"][1]
    flat = struct.unpack(f"<{rows * width * entries}{letter}", base64.b64decode(message[name]))
    return [[list(flat[(row * width + token) * entries:(row * width + token + 1) * entries]) for token in range(length)]
            for row, length in enumerate(message["completion_lengths"])]


def lists_of(message: dict) -> tuple:
    """Log-probs and ids of the most probable tokens, and those of the sampled ones or None."""
    if "shape" in message:
        most = message["shape"][2]
        return (_binary(message, "logprobs_b64", "f", most), _binary(message, "token_ids_b64", "i", most),
                _binary(message, "actual_logprobs_b64", "f", 1) if "actual_logprobs_b64" in message else None,
                _binary(message, "actual_token_ids_b64", "i", 1) if "actual_token_ids_b64" in message else None)
    return (message["logprobs"], message["logprob_token_ids"], message.get("actual_logprobs"),
            message.get("actual_token_ids"))


def answers(payload: torch.Tensor, merges_what_is_there: bool = False, trusts_prompts: bool = False,
            leaves_out_json: bool = False) -> dict:
    merged: list = [[], [], [], []]
    carried = []
    for response in payload:
        message = json.loads(bytes(response.tolist()).decode())
        for prompt, whole in zip(message["prompt_lengths"], message["sequence_lengths"]):
            if not trusts_prompts and not 0 < prompt < whole:
                raise ValueError(f"payload: prompt length {prompt} of a sequence of {whole}")
        lists = lists_of(message)
        if leaves_out_json and "shape" not in message:
            lists = (*lists[:2], None, None)
        carried.append(lists[2] is not None)
        for into, rows in zip(merged, lists):
            into += rows or []
    if not merges_what_is_there and any(carried) and not all(carried):
        raise ValueError("payload: only some responses have the log-probs of the sampled tokens")
    tokens = max(map(len, merged[0]))
    most = max(len(token) for row in merged[0] for token in row)
    shape = (len(merged[0]), tokens, most)
    result = {"loss": torch.zeros(()), "token_log_prob": torch.full(shape, -math.inf), "token_id": torch.zeros(shape),
              "actual_log_prob": torch.full(shape[:2], -math.inf), "actual_token_id": torch.zeros(shape[:2])}
    for (name, table), rows in zip(list(result.items())[1:], merged):
        for at, row in enumerate(rows):
            for token, entries in enumerate(row):
                place = table[at, token]
                place[...] = torch.tensor([float(entry) for entry in entries]).reshape(place.shape)
    return {name: table.int() if name.endswith("id") else table for name, table in result.items()}
