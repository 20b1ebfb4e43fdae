# SPDX-License-Identifier: Apache-2.0
"""Frames to the byte, and what is wrong with others."""

from __future__ import annotations

import base64
import json
import platform
import struct
import unittest
from typing import Any
from unittest import mock

import torch

import given_conversation as talk
from given_worker import asked, batch, stepped, sum_loss
from lossgate.worker.conversation import Worker
from lossgate.worker.layout import place_of
from lossgate.worker.subject import Subject


class Golden(unittest.TestCase):
    """Exchanges as bytes: they change only when the protocol does."""

    def test_hello(self) -> None:
        request, reply = GOLDEN["hello"]
        with mock.patch.object(platform, "python_version", lambda: "3.11.2"), \
                mock.patch.object(torch, "__version__", "2.11.0"), \
                mock.patch.object(Subject, "_place", lambda *_: ("", 7, "def sum_loss(...):")):
            answer = Worker(sum_loss).answer(base64.b64decode(request)[8:])
        self.assertEqual(base64.b64encode(answer).decode(), reply)

    def test_step(self) -> None:
        answering, _ = asked(sum_loss)
        request, reply = GOLDEN["step"]
        answer = answering.answer(base64.b64decode(request)[8:])
        self.assertEqual(base64.b64encode(answer).decode(), reply)

    def test_the_reply_is_what_it_should_be(self) -> None:
        metadata, tensors = talk.read_document(base64.b64decode(GOLDEN["step"][1])[8:])
        self.assertEqual(metadata, {"op": "result", "id": "17", "mutated": "[]", "without_gradient": "[]"})
        self.assertEqual(tensors["loss"].item(), -1.5)
        self.assertEqual(tensors["gradient.log_prob"].tolist(), [[0.5, 0.0]])
        self.assertEqual(tensors["gradient.log_prob"].dtype, torch.bfloat16)


class Frames(unittest.TestCase):
    def answer(self, document: bytes, said: bool = True) -> dict:
        answering = asked(sum_loss)[0] if said else Worker(sum_loss)
        return talk.read_document(answering.answer(document)[8:])[0]

    def refused(self, document: bytes, fragment: str, said: bool = True) -> None:
        metadata = self.answer(document, said)
        self.assertEqual(metadata["op"], "trouble")
        self.assertIn(fragment, metadata["message"])

    def with_header(self, header: Any, data: bytes = b"") -> bytes:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data

    def test_broken_documents(self) -> None:
        one = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
        self.refused(b"", "ends within")
        self.refused(struct.pack("<Q", 99) + b"{}", "ends within")
        self.refused(self.with_header(b"no json"), "no safetensors document")
        self.refused(self.with_header(b"[]"), "no safetensors document")
        self.refused(self.with_header(b'{"__metadata__":{"op":"step","op":"step"}}'), "twice")
        self.refused(self.with_header({"__metadata__": {"op": 3}}), "strings")
        self.refused(self.with_header({"__metadata__": {}}), "unknown op None")
        self.refused(self.with_header({"__metadata__": {"op": "dance", "id": "5"}}), "'dance'")
        step = talk.step("grpo")
        self.refused(self.with_header({"__metadata__": step, "log_prob": one}), "bytes of data", True)
        self.refused(self.with_header({"__metadata__": step, "log_prob": {**one, "shape": [2]}}, b"1234"), "4 bytes")
        self.refused(self.with_header({"__metadata__": step, "log_prob": {**one, "dtype": "F8"}}, b"1234"), "F8")
        self.refused(self.with_header({"__metadata__": step, "log_prob": {**one, "data_offsets": [4, 8]}}, b"12345678"), "hole")
        self.refused(self.with_header({"__metadata__": step, "log_prob": one, "mask": one}, b"1234"), "overlap")
        self.refused(self.with_header({"__metadata__": step, "other": one}, b"1234"), "no field of grpo")
        self.refused(self.with_header({"__metadata__": step, "log_prob": one}, b"1234"), "lacks the field")
        self.refused(self.with_header({"__metadata__": step}), "before a successful hello", said=False)

    def test_a_bad_request_leaves_the_worker_alive_and_is_named(self) -> None:
        answering, _ = asked(sum_loss)
        bad = talk.write_frame({"op": "dance", "id": "5"})[8:]
        self.assertEqual(talk.read_document(answering.answer(bad)[8:])[0]["id"], "5")
        metadata = talk.read_document(answering.answer(talk.write_frame(talk.step("grpo", "6"), batch())[8:])[8:])[0]
        self.assertEqual((metadata["op"], metadata["id"]), ("result", "6"))

    def test_what_breaks_the_worker_itself_is_said(self) -> None:
        self.refused(self.with_header(b'{"__metadata__":{"op":"step","id":"\xff"}}'), "the worker itself failed")

    def test_metadata_anywhere_and_braces_in_strings(self) -> None:
        frame = talk.write_frame(talk.step("grpo", '}"},{', note='a},"b{'), batch())[8:]
        metadata = self.answer(frame)
        self.assertEqual((metadata["op"], metadata["id"]), ("result", '}"},{'))
        size = struct.unpack("<Q", frame[:8])[0]
        header = json.loads(frame[8:8 + size])
        header["__metadata__"] = header.pop("__metadata__")  # now last
        metadata = self.answer(self.with_header(header, frame[8 + size:]))
        self.assertEqual(metadata["op"], "result")

    def test_bits_of_every_dtype_survive(self) -> None:
        patterns = {torch.float64: [0x7ff8dead0000beef, 1, -1 << 63], torch.float32: [0x7fc01234, 1, -1 << 31],
                    torch.float16: [0x7e01, 1, -1 << 15], torch.bfloat16: [0x7fc1, 1, -1 << 15]}
        integers = {8: torch.int64, 4: torch.int32, 2: torch.int16}
        for dtype, values in patterns.items():
            raw = torch.tensor([values], dtype=integers[dtype.itemsize])
            tensors = {name: torch.zeros(1, 3, dtype=dtype) for name in ("log_prob", "old_log_prob", "ref_log_prob")}
            tensors.update(advantage=raw.view(dtype), mask=torch.ones(1, 3, dtype=torch.uint8))
            _, reply = stepped(lambda log_prob, advantage, mask:
                               {"loss": log_prob.sum(), "per_token": advantage}, tensors)
            self.assertEqual(reply["per_token"].dtype, dtype)
            self.assertEqual(reply["per_token"].view(integers[dtype.itemsize]).tolist(), [values])
            self.assertEqual(reply["gradient.log_prob"].dtype, dtype)

    def test_empty_tensors(self) -> None:
        tensors = {name: tensor[:0] for name, tensor in batch().items()}
        metadata, reply = stepped(sum_loss, tensors)
        self.assertEqual((metadata["op"], reply["loss"].item()), ("result", 0.0))
        self.assertEqual(list(reply["gradient.log_prob"].shape), [0, 3])

    def test_equal_headers_with_other_values_and_equal_shapes_with_other_options(self) -> None:
        answering, _ = asked(lambda log_prob, mask, clip_low: log_prob.sum() * clip_low)
        for index, (clip, value) in enumerate([("0.5", 1.0), ("0.5", 2.0), ("0.25", 2.0), ("0.5", 4.0)]):
            tensors = {**batch(), "log_prob": torch.full((2, 3), value)}
            frame = talk.write_frame(talk.step("grpo", str(index), option__clip_low=clip), tensors)
            metadata, reply = talk.read_document(answering.answer(frame[8:])[8:])
            self.assertEqual(metadata["id"], str(index))
            self.assertEqual(reply["loss"].item(), 6 * value * float(clip))


def golden_requests() -> dict:
    tensors = {"log_prob": torch.tensor([[-3.0, -0.5]]), "old_log_prob": torch.zeros(1, 2),
               "ref_log_prob": torch.zeros(1, 2), "advantage": torch.tensor([[0.5, 2.0]])}
    tensors = {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}
    tensors["mask"] = torch.tensor([[1, 0]], dtype=torch.uint8)
    return {"hello": talk.write_frame(talk.hello("grpo")), "step": talk.write_frame(talk.step("grpo", "17"), tensors)}


GOLDEN = {
    "hello": ((
        "OAYAAAAAAAAwBgAAAAAAAHsiX19tZXRhZGF0YV9fIjp7Im9wIjoiaGVsbG8iLCJwcm90b2NvbCI6IjEiLCJlbnRyeSI6IiIsInBhdGgi"
        "OiJbXSIsImRldmljZSI6ImNwdSIsInRocmVhZHMiOiIxIiwibG9zcyI6ImdycG8iLCJmaWVsZHMiOiJbe1wibmFtZVwiOiBcImxvZ19w"
        "cm9iXCIsIFwicm9sZVwiOiBcImRpZmZlcmVudGlhYmxlXCIsIFwicXVhbnRpdHlcIjogXCJsb2dfcHJvYlwiLCBcImF4ZXNcIjogW1wi"
        "c2VxdWVuY2VzXCIsIFwidG9rZW5zXCJdfSwge1wibmFtZVwiOiBcIm9sZF9sb2dfcHJvYlwiLCBcInJvbGVcIjogXCJjb25zdGFudFwi"
        "LCBcInF1YW50aXR5XCI6IFwibG9nX3Byb2JcIiwgXCJheGVzXCI6IFtcInNlcXVlbmNlc1wiLCBcInRva2Vuc1wiXX0sIHtcIm5hbWVc"
        "IjogXCJyZWZfbG9nX3Byb2JcIiwgXCJyb2xlXCI6IFwiY29uc3RhbnRcIiwgXCJxdWFudGl0eVwiOiBcImxvZ19wcm9iXCIsIFwiYXhl"
        "c1wiOiBbXCJzZXF1ZW5jZXNcIiwgXCJ0b2tlbnNcIl19LCB7XCJuYW1lXCI6IFwiYWR2YW50YWdlXCIsIFwicm9sZVwiOiBcImNvbnN0"
        "YW50XCIsIFwicXVhbnRpdHlcIjogXCJhZHZhbnRhZ2VcIiwgXCJheGVzXCI6IFtcInNlcXVlbmNlc1wiLCBcInRva2Vuc1wiXX0sIHtc"
        "Im5hbWVcIjogXCJtYXNrXCIsIFwicm9sZVwiOiBcIm1hc2tcIiwgXCJxdWFudGl0eVwiOiBcIm1hc2tcIiwgXCJheGVzXCI6IFtcInNl"
        "cXVlbmNlc1wiLCBcInRva2Vuc1wiXX1dIiwib3V0cHV0cyI6Ilt7XCJuYW1lXCI6IFwicGVyX3Rva2VuXCIsIFwiYXhlc1wiOiBbXCJz"
        "ZXF1ZW5jZXNcIiwgXCJ0b2tlbnNcIl19XSIsIm9wdGlvbnMiOiJbe1wibmFtZVwiOiBcImNsaXBfbG93XCIsIFwia2luZFwiOiBcInJl"
        "YWxcIiwgXCJzdGFuZGFyZFwiOiAwLjJ9LCB7XCJuYW1lXCI6IFwiY2xpcF9oaWdoXCIsIFwia2luZFwiOiBcInJlYWxcIiwgXCJzdGFu"
        "ZGFyZFwiOiAwLjJ9LCB7XCJuYW1lXCI6IFwiZHVhbF9jbGlwXCIsIFwia2luZFwiOiBcInJlYWxcIiwgXCJzdGFuZGFyZFwiOiBudWxs"
        "fSwge1wibmFtZVwiOiBcImxvZ19yYXRpb19jbGFtcFwiLCBcImtpbmRcIjogXCJyZWFsXCIsIFwic3RhbmRhcmRcIjogMjB9LCB7XCJu"
        "YW1lXCI6IFwibGV2ZWxcIiwgXCJraW5kXCI6IFwiY2hvaWNlXCIsIFwic3RhbmRhcmRcIjogXCJ0b2tlblwifSwge1wibmFtZVwiOiBc"
        "ImtsX3BlbmFsdHlcIiwgXCJraW5kXCI6IFwicmVhbFwiLCBcInN0YW5kYXJkXCI6IDAuMDR9LCB7XCJuYW1lXCI6IFwia2xfZXN0aW1h"
        "dG9yXCIsIFwia2luZFwiOiBcImNob2ljZVwiLCBcInN0YW5kYXJkXCI6IFwiazNcIn0sIHtcIm5hbWVcIjogXCJrbF9pbnB1dF9jbGFt"
        "cFwiLCBcImtpbmRcIjogXCJyZWFsXCIsIFwic3RhbmRhcmRcIjogMjB9LCB7XCJuYW1lXCI6IFwia2xfb3V0cHV0X2NsYW1wXCIsIFwi"
        "a2luZFwiOiBcInJlYWxcIiwgXCJzdGFuZGFyZFwiOiAxMH0sIHtcIm5hbWVcIjogXCJrbF93ZWlnaHRlZFwiLCBcImtpbmRcIjogXCJm"
        "bGFnXCIsIFwic3RhbmRhcmRcIjogMH0sIHtcIm5hbWVcIjogXCJtYXhfbGVuZ3RoXCIsIFwia2luZFwiOiBcImludGVnZXJcIiwgXCJz"
        "dGFuZGFyZFwiOiAxNn1dIiwiYXJndW1lbnRzIjoie30ifX0gICAgIA=="),
     (
        "QAEAAAAAAAA4AQAAAAAAAHsiX19tZXRhZGF0YV9fIjp7Im9wIjoiaGVsbG8iLCJwcm90b2NvbCI6IjEiLCJ2ZXJzaW9ucyI6IntcInB5"
        "dGhvblwiOiBcIjMuMTEuMlwiLCBcInRvcmNoXCI6IFwiMi4xMS4wXCJ9IiwiZmlsZSI6IiIsImxpbmUiOiI3IiwiY29kZSI6ImRlZiBz"
        "dW1fbG9zcyguLi4pOiIsImFyZ3VtZW50cyI6IntcImxvZ19wcm9iXCI6IFwiZmllbGQ6bG9nX3Byb2JcIiwgXCJhZHZhbnRhZ2VcIjog"
        "XCJmaWVsZDphZHZhbnRhZ2VcIiwgXCJtYXNrXCI6IFwiZmllbGQ6bWFza1wifSIsIm9wdGlvbnMiOiJbXSIsInJlZHVjdGlvbiI6IjAi"
        "LCJmYWN0cyI6IltdIn19IA==")),
    "step": ((
        "cgMAAAAAAABYAwAAAAAAAHsiX19tZXRhZGF0YV9fIjp7Im9wIjoic3RlcCIsImlkIjoiMTciLCJyZWR1Y3Rpb24iOiJ0b2tlbl9tZWFu"
        "Iiwib3B0aW9uLmNsaXBfbG93IjoiMC4yIiwib3B0aW9uLmNsaXBfaGlnaCI6IjAuMiIsIm9wdGlvbi5kdWFsX2NsaXAiOiJub25lIiwi"
        "b3B0aW9uLmxvZ19yYXRpb19jbGFtcCI6IjIwIiwib3B0aW9uLmxldmVsIjoidG9rZW4iLCJvcHRpb24ua2xfcGVuYWx0eSI6IjAuMDQi"
        "LCJvcHRpb24ua2xfZXN0aW1hdG9yIjoiazMiLCJvcHRpb24ua2xfaW5wdXRfY2xhbXAiOiIyMCIsIm9wdGlvbi5rbF9vdXRwdXRfY2xh"
        "bXAiOiIxMCIsIm9wdGlvbi5rbF93ZWlnaHRlZCI6IjAiLCJvcHRpb24ubWF4X2xlbmd0aCI6IjE2IiwidG90YWxfdG9rZW5zIjoiNSIs"
        "InRvdGFsX3NlcXVlbmNlcyI6IjIiLCJyYW5rX3Rva2VucyI6IjUiLCJyYW5rX3NlcXVlbmNlcyI6IjIiLCJyYW5rIjoiMCIsIndvcmxk"
        "IjoiMSIsIm1pY3JvX2JhdGNoIjoiMCIsIm1pY3JvX2JhdGNoZXMiOiIxIiwidXBzdHJlYW0iOiIxIiwiZXhwbGFpbiI6IjAifSwibG9n"
        "X3Byb2IiOnsiZHR5cGUiOiJCRjE2Iiwic2hhcGUiOlsxLDJdLCJkYXRhX29mZnNldHMiOlswLDRdfSwib2xkX2xvZ19wcm9iIjp7ImR0"
        "eXBlIjoiQkYxNiIsInNoYXBlIjpbMSwyXSwiZGF0YV9vZmZzZXRzIjpbNCw4XX0sInJlZl9sb2dfcHJvYiI6eyJkdHlwZSI6IkJGMTYi"
        "LCJzaGFwZSI6WzEsMl0sImRhdGFfb2Zmc2V0cyI6WzgsMTJdfSwiYWR2YW50YWdlIjp7ImR0eXBlIjoiQkYxNiIsInNoYXBlIjpbMSwy"
        "XSwiZGF0YV9vZmZzZXRzIjpbMTIsMTZdfSwibWFzayI6eyJkdHlwZSI6IlU4Iiwic2hhcGUiOlsxLDJdLCJkYXRhX29mZnNldHMiOlsx"
        "NiwxOF19fSAgICAgICBAwAC/AAAAAAAAAAAAPwBAAQA="),
     (
        "5gAAAAAAAADYAAAAAAAAAHsiX19tZXRhZGF0YV9fIjp7Im9wIjoicmVzdWx0IiwiaWQiOiIxNyIsIm11dGF0ZWQiOiJbXSIsIndpdGhv"
        "dXRfZ3JhZGllbnQiOiJbXSJ9LCJsb3NzIjp7ImR0eXBlIjoiQkYxNiIsInNoYXBlIjpbXSwiZGF0YV9vZmZzZXRzIjpbMCwyXX0sImdy"
        "YWRpZW50LmxvZ19wcm9iIjp7ImR0eXBlIjoiQkYxNiIsInNoYXBlIjpbMSwyXSwiZGF0YV9vZmZzZXRzIjpbMiw2XX19ICAgICAgIMC/"
        "AD8AAA==")),
}


class Layouts(unittest.TestCase):
    def test_logits_without_their_last_token_lie_as_a_slice_does(self) -> None:
        self.assertEqual(place_of((2, 3, 5), "sliced"), (40, (20, 5, 1), 0))
        self.assertEqual(place_of((2, 3), "sliced"), (8, (4, 1), 1), "labels without their first")


if __name__ == "__main__":
    unittest.main()
