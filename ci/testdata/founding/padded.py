# SPDX-License-Identifier: Apache-2.0
"""A teacher's answers as tables of the lengths that are asked for, rightly or with padding that counts."""

from __future__ import annotations

import json
import math

import torch

from teacher_answers import lists_of


def padded(payload, filler, extent_sequences: int, extent_tokens: int, extent_support: int) -> tuple:
    filler = -math.inf if filler is None else filler
    shape = (extent_sequences, extent_tokens, extent_support)
    tables = (torch.full(shape, filler), torch.zeros(shape).int(), torch.full(shape[:2], filler),
              torch.zeros(shape[:2]).int())
    first = 0
    for response in payload:
        lists = lists_of(json.loads(bytes(response.tolist())))
        for table, rows in zip(tables, lists):
            for at, row in enumerate(rows or [], first):
                for token, entries in enumerate(row):
                    place = table[at, token].reshape(-1)[:len(entries)]  # a view
                    place[...] = torch.tensor(entries if table.dtype == torch.int32 else
                                              [float(entry) for entry in entries])
        first += len(lists[0])
    return tables


def padded_with_zeros(payload, filler, extent_sequences: int, extent_tokens: int, extent_support: int) -> tuple:
    return padded(payload, 0.0, extent_sequences, extent_tokens, extent_support)
