# SPDX-License-Identifier: Apache-2.0
"""What every operator of lossgate is called with, here and by the fused losses: tensors, counts, options."""

import torch

S, T, V, H, K = 2, 3, 5, 4, 2
TOTALS = {"total_tokens": 5, "total_sequences": 2}
TOKENS = {"total_tokens": 5}


def random(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


def arguments(dtype=torch.float64):
    """Of each operator: tensors (those that get a gradient first in the second), and the counts."""
    torch.manual_seed(7)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    label = torch.tensor([[1, 2, 0], [4, 3, -100]])
    tokens = torch.tensor([1, 4]).expand(S, T, K)
    log_probs = [random(S, T, dtype=dtype) - 2 for _ in range(3)]
    logits = [random(S, T, V, dtype=dtype) for _ in range(2)]
    hidden = [random(S, T, H, dtype=dtype) for _ in range(2)]
    weight = [random(V, H, dtype=dtype) for _ in range(2)]
    plain = random(S, T, dtype=dtype)
    support = logits[1].log_softmax(-1)[..., :K]
    return {
        "grpo": ([*log_probs, plain, mask], [0], TOTALS),
        "reinforce": ([log_probs[0], plain, log_probs[1].exp(), mask], [0], TOTALS),
        "dro": ([*log_probs[:2], plain, log_probs[2].exp(), mask], [0], TOTALS),
        "cispo": ([*log_probs[:2], plain, mask], [], TOTALS),  # its gradient is no derivative
        "dppo": ([*log_probs[:2], plain, mask], [], TOTALS),  # nor is its own, by default
        "sapo": ([*log_probs[:2], plain, mask], [0], TOTALS),
        "vespo": ([*log_probs[:2], plain, mask], [], TOTALS),  # neither is its own
        "gmpo": ([*log_probs[:2], plain, mask], [0], {"total_sequences": 2}),
        "kl_penalty": ([*log_probs, mask], [0], TOTALS),
        "value_clip": ([*log_probs, mask], [0], TOTALS),
        "dpo": ([*log_probs[0].flatten(0, 1).split(2)[:3], log_probs[1].flatten()[:2]], [0, 1], {"total_pairs": 2}),
        "kto": ([log_probs[0].flatten()[:4], log_probs[1].flatten()[:4], mask.flatten()[2:]], [0],
                {"total_sequences": 4}),
        "orpo": ([-values.flatten()[:2].abs() for values in log_probs[:2]], [0, 1], {"total_pairs": 2}),
        "log_prob": ([logits[0], label], [0], {}),
        "cross_entropy": ([logits[0], label], [0], TOKENS),
        "dft": ([logits[0], label], [], TOKENS),  # nor is this one's
        "entropy_bonus": ([logits[0], mask], [0], TOTALS),
        "jsd": ([*logits, label], [0], TOKENS),
        "sparse_jsd": ([logits[0], tokens, support, label], [0], TOKENS),
        "linear_grpo": ([hidden[0], weight[0], random(V, dtype=dtype), label, *log_probs[1:],
                         plain], [0, 1, 2], TOTALS),
        "linear_cross_entropy": ([hidden[0], weight[0], random(V, dtype=dtype), label], [0, 1, 2], TOKENS),
        "linear_jsd": ([hidden[0], weight[0], hidden[1], weight[1], label], [0, 1], TOKENS),
        "scale_advantages": ([plain, mask], [], TOTALS),
        "group_advantage": ([plain.flatten(), torch.tensor([3, 1, 3, 2, 1, 3])], [], {}),
        "gae": ([plain, log_probs[0], mask], [], {}),
        "whiten": ([plain, mask], [], {}),
        "rollout_correction": ([*log_probs[:2], mask], [], {}),
    }


DIVERGENCES = [{"beta": beta, "temperature": 0.7} for beta in (0.0, 0.3, 1.0)]
POLICIES = [
    {"level": "sequence", "reduction": "sequence_mean"},
    {"kl_weighted": True, "log_ratio_clamp": None, "kl_penalty": 0.5},
    {"level": "sequence", "kl_weighted": True, "dual_clip": 1.5, "kl_estimator": "k2"},
]
TARGETS = [{"label_smoothing": 0.3, "z_loss": 0.1}, {"label_smoothing": 1.0}]
VARIANTS = {
    "grpo": POLICIES,
    "linear_grpo": POLICIES,
    "dro": [{"beta": 2.0}, {"beta": 2.0, "reduction": "sequence_mean"}],
    "cispo": [{"weight_low": 0.8, "weight_high": 1.2}],
    "dppo": [{"divergence": "kl", "divergence_high": 0.01, "weight_high": None}, {"surrogate": "weight", "epsilon": 0.0}],
    "sapo": [{"tau_positive": 2.0, "log_ratio_clamp": None}],
    "vespo": [{"k_positive": 1.0, "lambda_negative": 0.5, "log_ratio_clamp": None}],
    "gmpo": [{"clip_low": 2.0, "clip_high": 0.1}, {"clip_low": 0.1, "reduction": "sum"}],
    "kl_penalty": [{"kl_weighted": True}, {"kl_estimator": "k1"}, {"kl_estimator": "k2"}],
    "value_clip": [{"value_clip": None}, {"clip_form": "interval"}],
    "dpo": [{"loss_type": "hinge", "beta": 2.0}, {"loss_type": "ipo"}, {"label_smoothing": 0.2, "reduction": "sum"},
            {"beta": 2.0, "margin": 1.6}],
    "kto": [{"beta": 2.0, "kl": 0.5}, {"desirable_weight": 2.0, "undesirable_weight": 0.5, "reduction": "sum"}],
    "orpo": [{"beta": 2.0}, {"reduction": "sum"}],
    "log_prob": [{"temperature": 0.7}],
    "cross_entropy": TARGETS,
    "linear_cross_entropy": TARGETS,
    "entropy_bonus": [{"coefficient": 0.5, "reduction": "sequence_mean"}],
    "jsd": [*DIVERGENCES, {"beta": 0.0, "soft_cross_entropy": True}],
    "sparse_jsd": [*DIVERGENCES, {"tail": False}, {"tail_floor": 0.9, "beta": 1.0}],
    "linear_jsd": DIVERGENCES,
}


def call(name, tensors, counts, **options):
    result = getattr(torch.ops.lossgate, name)(*tensors, **counts, **options)
    return result if isinstance(result, tuple) else (result,)
