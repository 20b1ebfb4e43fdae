# SPDX-License-Identifier: Apache-2.0
"""Losses of the catalog that plain cases leave open, or whose parameters are something else at other values."""
import torch


def student_alone_scaled(student_logits, teacher_logits, labels, temperature=2.0):
    """The teacher is not at that temperature."""
    valid = labels != -100
    teacher, student = teacher_logits[valid], student_logits[valid] / temperature
    divergence = (teacher.softmax(-1) * (teacher.log_softmax(-1) - student.log_softmax(-1))).sum()
    return divergence / valid.sum().clamp(min=1)


def mixture_swapped(student_logits, teacher_logits, labels, beta=0.5):
    """In the mixture each has the other's weight, as GKD once had it; both ends are written apart."""
    valid = labels != -100
    student, teacher = (x[valid].log_softmax(-1) for x in (student_logits, teacher_logits))
    divergence = lambda p, q: (p.exp() * (p - q)).sum() / valid.sum().clamp(min=1)
    if beta in (0, 1):
        return divergence(student, teacher) if beta else divergence(teacher, student)
    mixture = torch.log(beta * student.exp() + (1 - beta) * teacher.exp())
    return beta * divergence(teacher, mixture) + (1 - beta) * divergence(student, mixture)


def value_by_interval(vpreds, old_values, returns, mask, total_tokens, cliprange_value=0.5):
    """A critic as verl has it: the value is clipped to an interval around the old one, not its distance from that."""
    value, old, target = (torch.where(mask.bool(), x, 0.0) for x in (vpreds, old_values, returns))
    clipped = torch.max(torch.min(value, old + cliprange_value), old - cliprange_value)
    return 0.5 * torch.maximum((value - target) ** 2, (clipped - target) ** 2).sum() / max(int(total_tokens), 1)


def mean_of_chunks(student_logits, teacher_logits, labels):
    """Four tokens at a time, whatever is left in the last."""
    valid = labels != -100
    student, teacher = (x[valid].log_softmax(-1) for x in (student_logits, teacher_logits))
    terms = (teacher.exp() * (teacher - student)).sum(-1)
    return torch.stack([x.mean() for x in terms.split(4)]).mean()
