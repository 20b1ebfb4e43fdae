# SPDX-License-Identifier: Apache-2.0
"""`as shifted`: functions that move labels by one position themselves."""

from __future__ import annotations

import json
import unittest
from typing import Any

import torch
from torch.nn.functional import cross_entropy, pad

import given_conversation as talk
from given_faulty_losses import critic, logits
from given_worker import asked, batch, stepped

PLAIN = {"logits": "field:student_logits", "labels": "field:label"}
SOURCES = {"logits": "field:student_logits as shifted", "labels": "field:label as shifted"}
LAYOUTS = ("contiguous", "offset", "padded_rows", "transposed", "sliced", "transposed,contiguous,sliced")


def summed(logits, labels):
    return cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100, reduction="sum")


def slices(logits, labels):
    return summed(logits[..., :-1, :], labels[..., 1:])


def pads(logits, labels):
    """As transformers has it: the last logits meet a label that is ignored."""
    return summed(logits, pad(labels, (0, 1), value=-100)[..., 1:])


def tensors() -> dict:
    """Of which the last logits have a label that counts."""
    return {**logits(), "label": torch.tensor([[1, 2], [-100, 3]])}


def shifted(subject: Any, given: Any = None, **more: Any) -> tuple[dict, dict]:
    return stepped(subject, given or tensors(), "jsd", SOURCES, **more)


class AsShifted(unittest.TestCase):
    def test_a_function_that_shifts_gives_what_the_plain_one_gives(self) -> None:
        for layout in LAYOUTS:
            for history in ("alone", "two_forwards", "summed_losses", "backward_twice", "updated"):
                _, expected = stepped(summed, tensors(), "jsd", PLAIN, layout=layout, history=history, upstream=-0.5)
                for subject in (slices, pads):
                    metadata, found = shifted(subject, layout=layout, history=history, upstream=-0.5)
                    self.assertEqual(metadata["op"], "result", metadata)
                    self.assertEqual((metadata["mutated"], metadata["without_gradient"]), ("[]", "[]"))
                    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)

    def test_logits_have_one_position_more_behind_and_labels_one_ahead(self) -> None:
        def subject(logits, labels):
            seen.append((logits.detach()[:, -1].tolist(), labels.tolist(), logits.stride()))
            return slices(logits, labels)
        seen: list = []
        shifted(subject)
        shifted(subject, layout="transposed")
        self.assertEqual(seen[0], ([[0.5] * 4] * 2, [[1, 1, 2], [-100, -100, 3]], (12, 4, 1)))
        self.assertEqual(seen[1], (*seen[0][:2], (4, 8, 1)))

    def test_masks_begin_with_what_follows_and_further_words_follow(self) -> None:
        def subject(x, mask, number):
            seen.append((mask.tolist(), number.tolist(), number.dtype))
            return x.sum()
        seen: list = []
        more = {"x": "field:log_prob", "mask": "field:mask as shifted", "number": "field:mask as shifted as float"}
        stepped(subject, batch(), "grpo", more)
        rows = [[row[0], *row] for row in batch()["mask"].bool().tolist()]
        self.assertEqual(seen, [(rows, rows, torch.float32)])

    def test_numbers_of_tokens_begin_with_what_follows_and_get_their_gradients(self) -> None:
        def subject(log_prob, old, advantage, mask, cut=slice(1, None)):
            seen.append((old.tolist(), advantage.tolist()))
            log_prob, old, advantage, mask = (x[:, cut] for x in (log_prob, old, advantage, mask))
            return ((log_prob - old).exp() * advantage * mask).sum()
        seen: list = []
        plain = {"log_prob": "field:log_prob", "old": "field:old_log_prob", "advantage": "field:advantage", "mask": "field:mask"}
        moved = {parameter: f"{source} as shifted" for parameter, source in plain.items()}
        whole = lambda log_prob, old, advantage, mask: subject(log_prob, old, advantage, mask, slice(None))
        for layout in (*LAYOUTS[:-1], "transposed,contiguous,sliced,offset,padded_rows"):
            for history in ("alone", "two_forwards", "summed_losses", "backward_twice", "updated"):
                asked_so = {"layout": layout, "history": history, "upstream": 3.0}
                expected = stepped(whole, batch(), "grpo", plain, **asked_so)[1]
                metadata, found = stepped(subject, batch(), "grpo", moved, **asked_so)
                self.assertEqual((metadata["op"], metadata.get("mutated")), ("result", "[]"), metadata)
                torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)
        stepped(subject, batch(), "grpo", moved)
        for name, given in zip(("old_log_prob", "advantage"), seen[-1]):
            self.assertEqual(given, torch.cat([batch()[name][:, :1], batch()[name]], 1).tolist())
        metadata, _ = stepped(lambda log_prob, old, advantage, mask: log_prob.sum(), batch(), "grpo", moved)
        self.assertIn("'log_prob' is 1 in sequence 0 at the first position, which no logits predict", metadata["message"])

    def test_values_have_one_position_more_behind(self) -> None:
        def subject(value, rewards):
            seen.append(value.tolist())
            return (value[:, :-1] - rewards[:, :-1]).square().sum()
        seen: list = []
        plain = {"value": "field:value", "rewards": "field:return"}
        expected = stepped(lambda value, rewards: (value - rewards).square().sum(), critic(), "value_clip", plain)[1]
        moved = {parameter: f"{source} as shifted" for parameter, source in plain.items()}
        metadata, found = stepped(subject, critic(), "value_clip", moved)
        self.assertEqual(metadata["op"], "result", metadata)
        torch.testing.assert_close(found, expected)
        self.assertEqual([row[-1] for row in seen[0]], [0.5, 0.5])

    def test_a_number_that_is_none_is_no_change(self) -> None:
        given = batch()
        given["advantage"][:, 0] = torch.nan
        moved = {"log_prob": "field:log_prob", "advantage": "field:advantage as shifted"}
        metadata, _ = stepped(lambda log_prob, advantage: (log_prob * advantage[:, 1:]).sum(), given, "grpo", moved)
        self.assertEqual((metadata["op"], metadata["mutated"]), ("result", "[]"), metadata)

    def test_the_gradient_of_what_was_added_is_0(self) -> None:
        def weighed(last):
            return lambda logits, labels: (logits * torch.tensor([1.0, 2.0, last])[:, None]).sum()
        _, found = shifted(weighed(0.0))
        self.assertEqual(found["gradient.student_logits"].tolist(), [[[1.0] * 4, [2.0] * 4]] * 2)
        for layout in LAYOUTS:
            metadata, _ = shifted(weighed(50.0), layout=layout)
            self.assertEqual((metadata["op"], metadata["type"]), ("raised", "StrayGradient"))
            self.assertEqual(metadata["output"], "gradient.student_logits")
            self.assertEqual(metadata["message"], "the gradient of 'student_logits' is 50 in sequence 0 at the last position, "
                             "which no label follows: a function that shifts leaves it out by [:, :-1], before it flattens, "
                             "rolls or counts anything")

    def test_whoever_counts_or_pairs_before_shifting_is_seen(self) -> None:
        def counts(logits, labels):
            return slices(logits, labels) / (labels != -100).sum()
        def rolls(logits, labels):
            return summed(logits, labels.roll(-1, 1))
        def flattens(logits, labels):
            return cross_entropy(logits.reshape(-1, 4)[:-1], labels.reshape(-1)[1:], ignore_index=-100, reduction="sum")
        given = {**logits(), "label": torch.tensor([[1, 2], [0, 3]])}
        expected = shifted(slices, given)[1]["loss"].item()
        self.assertNotAlmostEqual(shifted(counts, given)[1]["loss"].item(), expected / 4)
        for subject in (rolls, flattens):
            self.assertEqual(shifted(subject, given)[0]["op"], "raised", subject.__name__)

    def test_lengths_count_the_token_ahead(self) -> None:
        def subject(logits, labels, lengths):
            seen.append(lengths.tolist())
            return slices(logits, labels)
        seen: list = []
        more = {**SOURCES, "lengths": "field:label as shifted as lengths"}
        stepped(subject, {**logits(), "label": torch.tensor([[1, 2], [3, -100]])}, "jsd", more)
        self.assertEqual(seen, [[3, 2]])

    def test_sequences_without_a_token_have_the_added_position_alone(self) -> None:
        empty = {"student_logits": torch.zeros(2, 0, 4), "teacher_logits": torch.zeros(2, 0, 4),
                 "label": torch.zeros(2, 0, dtype=torch.int64)}
        metadata, found = shifted(slices, empty)
        self.assertEqual(metadata["op"], "result", metadata)
        self.assertEqual((found["loss"].item(), found["gradient.student_logits"].shape), (0.0, (2, 0, 4)))

    def test_terms_that_are_returned_are_those_of_the_field(self) -> None:
        def terms(logits, labels):
            return cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], ignore_index=-100, reduction="none")
        answering, _ = asked(terms, "jsd", SOURCES, returns="per_token")
        frame = talk.write_frame(talk.step("jsd", reduction="sum"), tensors())
        metadata, found = talk.read_document(answering.answer(frame[8:])[8:])
        self.assertEqual(metadata["op"], "result", metadata)
        expected = stepped(summed, tensors(), "jsd", PLAIN)[1]
        torch.testing.assert_close({name: found[name] for name in expected}, expected)
        self.assertEqual(found["per_token"].shape, (2, 2))

    def test_whoever_writes_into_it_is_seen(self) -> None:
        def writes(name, at):
            def subject(logits, labels):
                loss = slices(logits.clone(), labels.clone())
                with torch.no_grad():
                    {"logits": logits, "labels": labels}[name][at] = 7
                return loss
            return subject
        for name, field in (("logits", "student_logits"), ("labels", "label")):
            for at in ((0, 0), (1, 1), (1, 2)):
                for layout in LAYOUTS:
                    metadata, _ = shifted(writes(name, at), layout=layout)
                    self.assertEqual(json.loads(metadata["mutated"]), [field], (at, layout))

    def test_a_field_of_the_same_numbers_that_is_not_shifted_shares_no_memory(self) -> None:
        def subject(logits, labels, teacher):
            seen.append((teacher.shape, teacher.data_ptr() == logits.data_ptr()))
            return slices(logits, labels)
        seen: list = []
        given = {**tensors(), "teacher_logits": tensors()["student_logits"]}
        for teacher in ("field:teacher_logits", "field:teacher_logits as shifted"):
            stepped(subject, given, "jsd", {**SOURCES, "teacher": teacher}, layout="transposed,contiguous,sliced")
        self.assertEqual(seen, [((2, 2, 4), False), ((2, 3, 4), True)])

    def test_the_guilty_line_is_found_through_it(self) -> None:
        def subject(logits, labels):
            x = logits[:, :-1]
            return torch.where(x > 50, x, x.exp()).sum()  # guilty
        hot = tensors()
        hot["student_logits"][1, 0, 2] = 100.0
        metadata, found = shifted(subject, hot, explain=1)
        self.assertTrue(found["loss"].isfinite() and found["gradient.student_logits"][1, 0, 2].isnan())
        guilty = json.loads(metadata["guilty"])
        self.assertEqual((guilty["pass"], guilty["element"]), ("backward", [1, 0, 2]))
        self.assertIn("# guilty", guilty["code"])
        def forward(logits, labels):
            return (logits[:, :-1] - logits[:, :-1]).sum()  # guilty
        hot["student_logits"][1, 0, 2] = torch.inf
        guilty = json.loads(shifted(forward, hot, explain=1)[0]["guilty"])
        self.assertIn("inf (student_logits) - inf (student_logits) = nan", guilty["text"])

    def test_what_cannot_be_shifted_is_refused(self) -> None:
        complaints = {"option:clip_low as shifted": "is of a field along sequences and tokens, which 'option:clip_low' is not",
                      "fact:total_tokens as shifted": "is of a field along",
                      "field:advantage as shifted as rows": "'as rows' goes without 'as shifted'; write field:advantage as rows",
                      "field:advantage as shifted as expanded": "'as expanded' goes without 'as shifted'",
                      "field:mask as float as shifted": "comes first, and once: field:mask as shifted as ...",
                      "field:mask as shifted as shifted": "comes first, and once",
                      "field:mask": "is shifted for another parameter: it is so for all or for none"}
        def subject(x, y, z):
            return x.sum()
        for source, complaint in complaints.items():
            said = asked(subject, "grpo", {"x": "field:log_prob", "y": source, "z": "field:mask as shifted"})[1]
            self.assertEqual(said["op"], "trouble", source)
            self.assertIn(complaint, said["message"])


if __name__ == "__main__":
    unittest.main()
