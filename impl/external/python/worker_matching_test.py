# SPDX-License-Identifier: Apache-2.0
"""Which argument each parameter gets, and what is refused."""

from __future__ import annotations

import functools
import json
import unittest

import torch

import given_conversation as talk
from given_worker import asked, batch, sources, stepped, sum_loss
from lossgate.worker.aliases import ALIASES
from lossgate.worker.conversion import CONVERSIONS
from lossgate.worker.matching import FACTS


def trl_style(per_token_logps, old_per_token_logps, ref_per_token_logps, advantages, completion_mask, epsilon_low=0.2,
              epsilon_high=0.2, beta=0.0, num_items_in_batch=None, importance_sampling_level="token", delta=None,
              max_completion_length=None, temperature=1.0): ...


def liger_style(per_token_logps, attention_mask, advantages, full_attention_mask, ref_per_token_logps=None,
                old_per_token_logps=None, epsilon_low=0.2, epsilon_high=0.2, beta=0.04, loss_type="dapo",
                max_completion_length=None, importance_sampling_level="token", vllm_is_ratio=None, delta=None,
                use_bias_correction_kl=False, num_items_in_batch=None): ...


def verl_policy(old_log_prob, log_prob, advantages, response_mask, cliprange=None, cliprange_low=None,
                cliprange_high=None, clip_ratio_c=3.0, loss_agg_mode="token-mean"): ...


def verl_value(vpreds, returns, values, response_mask, cliprange_value, loss_agg_mode="token-mean"): ...


def verl_kl(logprob, ref_logprob, kl_penalty): ...


def skyrl_kl(log_probs, log_probs_base, loss_mask=None, kl_estimator_type="k3"): ...


def skyrl_critic(values, old_values, returns, loss_mask=None, value_clip=0.2): ...


def areal_actor(logprobs, proximal_logprobs, old_logprobs, advantages, eps_clip, loss_mask, eps_clip_higher=None,
                c_clip=None, behav_imp_weight_cap=None): ...


def areal_critic(value, old_value, target_value, value_eps_clip, loss_mask=None, loss_fn_type="mse"): ...


def torchtune_ppo(pi_old_logprobs, pi_logprobs, advantages, padding_masks=None): ...


def unsloth_style(ref, new, old, input_ids=None, mask=None, beta=0.04, advantages=None, **kwargs): ...


def gkd_style(student_logits, teacher_logits, labels=None, beta=0.5, temperature=1.0, reduction="batchmean",
              num_items_in_batch=None): ...


def liger_linear(_input, lin_weight, selected_token_ids, bias, ref_per_token_logps, old_per_token_logps,
                 advantages): ...


def sparse_style(student_logits, teacher_topk_ids, teacher_topk_logprobs, labels, beta=0.5, loss_add_tail=True): ...


def selective(logits, index, grad_log_prob, grad_entropy): ...


def roll_style(log_probs, old_log_probs, advantages, response_mask, pg_clip=0.2, pg_clip_low=None, pg_clip_high=None,
               loss_agg_mode="seq-mean-token-mean"): ...


def skyrl_policy(log_probs, old_log_probs, advantages, loss_mask, eps_clip_low=0.2, eps_clip_high=0.2,
                 loss_reduction="token_mean"): ...


def prime_style(trainer_logprobs, inference_logprobs, advantages, loss_mask, kl_ctl=0.0, use_unbiased_kl=False): ...


def short(lp, old, adv, m, eps=0.2): ...


def torchtune_dpo(policy_chosen_logps, policy_rejected_logps, reference_chosen_logps, reference_rejected_logps,
                  beta=0.1, label_smoothing=0.0): ...


def trl_simpo(policy_chosen_logps, policy_rejected_logps, beta, simpo_gamma, label_smoothing=0.0): ...


def liger_simpo(chosen_logps, rejected_logps, beta=0.1, gamma=0.5, label_smoothing=0.0): ...


def halos_kto(policy_logps, reference_logps, labels, kl, beta=0.1, desirable_weight=1.0, undesirable_weight=1.0): ...


def liger_kto(log_prob_chunk, preference_labels_chunk, ref_log_prob_chunk=None, beta=0.1, kl=None): ...


def llama_factory_orpo(chosen_logps, rejected_logps, pref_beta=0.1): ...


def axolotl_orpo(pos_prob, neg_prob, orpo_alpha): ...


def colossal_orpo(chosen_logp, reject_logp): ...


def trl_rollout(old_per_token_logps, sampling_per_token_logps, completion_mask, vllm_importance_sampling_cap=2.0): ...


def verl_rollout(old_log_prob, rollout_log_prob, response_mask, rollout_is="token", rollout_is_threshold=2.0): ...


def verl_gpg(log_prob, advantages, response_mask, loss_agg_mode="token-mean", config=None, rollout_is_weights=None): ...


def tinker_style(logprobs, advantages, weights, mask): ...


def verl_gae(token_level_rewards, values, response_mask, gamma, lam): ...


def verl_group(scores, index, epsilon=1e-6): ...


EXPECTED = [
    (trl_style, "grpo", "log_prob old_log_prob ref_log_prob advantage mask clip_low clip_high kl_penalty "
                        "fact:total_tokens level dual_clip max_length -"),
    (liger_style, "grpo", "log_prob mask advantage mask ref_log_prob old_log_prob clip_low clip_high kl_penalty - "
                          "max_length level - dual_clip kl_weighted fact:total_tokens"),
    (verl_policy, "grpo", "old_log_prob log_prob advantage mask - clip_low clip_high dual_clip reduction"),
    (verl_value, "value_clip", "value return old_value mask value_clip reduction"),
    (verl_kl, "kl_penalty", "log_prob ref_log_prob kl_estimator"),
    (skyrl_kl, "kl_penalty", "log_prob ref_log_prob mask kl_estimator"),
    (skyrl_critic, "value_clip", "value old_value return mask value_clip"),
    (areal_actor, "grpo", "log_prob old_log_prob old_log_prob advantage clip_low mask clip_high dual_clip -"),
    (areal_critic, "value_clip", "value old_value return value_clip mask -"),
    (torchtune_ppo, "grpo", "old_log_prob log_prob advantage mask"),
    (gkd_style, "jsd", "student_logits teacher_logits label beta temperature reduction num_items"),
    (liger_linear, "linear_grpo", "hidden weight label bias ref_log_prob old_log_prob advantage"),
    (sparse_style, "sparse_jsd", "student_logits support_token teacher_log_prob label beta tail"),
    (selective, "log_prob", "logits label log_prob_weight entropy_weight"),
    (torchtune_dpo, "dpo", "chosen_log_prob rejected_log_prob ref_chosen_log_prob ref_rejected_log_prob beta "
                           "label_smoothing"),
    (trl_simpo, "dpo", "chosen_log_prob rejected_log_prob beta margin label_smoothing"),
    (liger_simpo, "dpo", "chosen_log_prob rejected_log_prob beta margin label_smoothing"),
    (halos_kto, "kto", "log_prob ref_log_prob desirable kl beta desirable_weight undesirable_weight"),
    (liger_kto, "kto", "log_prob desirable ref_log_prob beta kl"),
    (llama_factory_orpo, "orpo", "chosen_log_prob rejected_log_prob beta"),
    (axolotl_orpo, "orpo", "chosen_log_prob rejected_log_prob beta"),
    (colossal_orpo, "orpo", "chosen_log_prob rejected_log_prob"),
    (lambda source, target, num_items_in_batch=None, ignore_index=-100: 0, "dft", "logits label num_items -"),
    (lambda logits, labels, n_items=None: 0, "dft", "logits label num_items"),
    (trl_rollout, "rollout_correction", "old_log_prob sampler_log_prob mask weight_high"),
    (verl_rollout, "rollout_correction", "old_log_prob sampler_log_prob mask level weight_high"),
    (verl_gpg, "reinforce", "log_prob advantage mask reduction - importance_weight"),
    (lambda old_log_prob, log_prob, advantages, response_mask, loss_agg_mode, rollout_is_weights=None: ..., "dro",
     "old_log_prob log_prob advantage mask reduction importance_weight"),
    (lambda target_logprobs, sampling_logprobs, advantages, dro_beta: ..., "dro", "log_prob old_log_prob advantage beta"),
    (tinker_style, "reinforce", "log_prob advantage importance_weight mask"),
    (verl_gae, "gae", "reward value mask gamma lambda"),
    (verl_group, "group_advantage", "reward group epsilon"),
    (roll_style, "grpo", "log_prob old_log_prob advantage mask - clip_low clip_high reduction"),
    (skyrl_policy, "grpo", "log_prob old_log_prob advantage mask clip_low clip_high reduction"),
    (prime_style, "grpo", "log_prob old_log_prob advantage mask kl_penalty kl_weighted"),
    (short, "grpo", "log_prob old_log_prob advantage mask clip_low"),
]


class Matching(unittest.TestCase):
    def full(self, loss: str, name: str) -> str:
        fields = [field["name"] for field in talk.FIELDS[loss]]
        if ":" in name or name == "reduction":
            return name
        return f"field:{name}" if name in fields else f"option:{name}"

    def test_the_signatures_of_released_trainers(self) -> None:
        for function, loss, expected in EXPECTED:
            with self.subTest(function.__name__):
                names = function.__code__.co_varnames[:function.__code__.co_argcount]
                wanted = {name: self.full(loss, source) for name, source in zip(names, expected.split())
                          if source != "-"}
                self.assertEqual(len(names), len(expected.split()))
                self.assertEqual(sources(function, loss), wanted)

    def test_only_the_order_of_sources_tells_these_apart(self) -> None:
        twice = set()
        for loss, options in talk.OPTIONS.items():
            names = [source["name"] for source in (*talk.FIELDS[loss], *options)] + ["reduction", *FACTS]
            known = [alias for name in names for alias in ALIASES.get(name, ())]
            twice |= {alias for alias in known if known.count(alias) > 1}
        self.assertEqual(twice, {"numitemsinbatch", "targettokenids", "lossreduction"})

    def test_masks_are_known_by_how_many_tokens_count(self) -> None:
        self.assertEqual(sources(lambda log_prob, response_lengths: 0)["response_lengths"], "field:mask as lengths")
        message = asked(lambda x, y: 0, "grpo", {"x": "field:log_prob", "y": "field:advantage as lengths"})[1]["message"]
        self.assertIn("'as lengths' is of a mask or a label", message)

    def test_groups_are_known_by_their_size_or_their_numbers(self) -> None:
        self.assertEqual(sources(lambda rewards, num_generations=4: ..., "group_advantage"),
                         {"rewards": "field:reward", "num_generations": "field:group as size"})
        for numbers, size in (([0, 0, 0, 1, 1, 1], 3), ([0, 0], 2), ([], 1)):
            found = CONVERSIONS["size"](torch.tensor(numbers, dtype=torch.int64), None)
            self.assertTrue(type(found) is int and found == size)
        message = asked(lambda x, y: 0, "group_advantage", {"x": "field:reward", "y": "field:reward as size"})[1]["message"]
        self.assertIn("'as size' is of a field that numbers groups", message)

    def test_unsloth_takes_the_rest_by_keyword(self) -> None:
        found = sources(unsloth_style)
        self.assertEqual((found["new"], found["old"], found["ref"]),
                         ("field:log_prob", "field:old_log_prob", "field:ref_log_prob"))
        self.assertEqual(found["clip_high"], "option:clip_high")
        self.assertNotIn("input_ids", found)

    def test_every_catalogue_name_matches_itself(self) -> None:
        for loss, fields in talk.FIELDS.items():
            names = [field["name"] for field in fields] + [option["name"] for option in talk.OPTIONS[loss]]
            names = [name for name in names if name != "return"]
            function = eval(f"lambda {', '.join(name.upper() for name in names)}: 0")
            self.assertEqual([source.split(":")[1] for source in sources(function, loss).values()], names)

    def test_overrides_and_json(self) -> None:
        def loss(a, b, config, agg="token-mean"): ...
        found = sources(loss, arguments={"a": "field:log_prob", "b": "field:mask as float", "config": 'json:{"x": [1]}',
                                         "agg": "reduction"})
        self.assertEqual(found["b"], "field:mask as float")
        self.assertEqual(found["config"], 'json:{"x": [1]}')

    def test_default_leaves_a_parameter_alone(self) -> None:
        def loss(log_prob, mask, clip_low=0.7): return log_prob.sum() * clip_low
        self.assertNotIn("clip_low", sources(loss, arguments={"clip_low": "default"}))
        _, tensors = stepped(loss, arguments={"clip_low": "default"})
        self.assertAlmostEqual(tensors["gradient.log_prob"][0, 0].item(), 0.7, places=6)

    def test_a_reduction_in_another_language_keeps_its_default(self) -> None:
        reductions = {"reductions": '["token_mean", "sum"]'}
        self.assertNotIn("reduction", sources(gkd_style, "jsd", **reductions))
        self.assertNotIn("loss_agg_mode", sources(verl_policy, **reductions))
        self.assertEqual(sources(skyrl_policy, **reductions)["loss_reduction"], "reduction")
        def loss(student_logits, teacher_logits, label, reduction="sum"): ...
        self.assertEqual(sources(loss, "jsd", **reductions)["reduction"], "reduction")

    def test_partial_keeps_what_was_given(self) -> None:
        def loss(log_prob, mask, clip_low): return log_prob.sum() * clip_low
        given = functools.partial(loss, clip_low=0.5)
        self.assertEqual(list(sources(given)), ["log_prob", "mask"])
        self.assertEqual(stepped(given)[1]["gradient.log_prob"][0, 0].item(), 0.5)

    def test_partial_of_a_module(self) -> None:
        class Module(torch.nn.Module):
            def forward(self, log_prob, mask, clip_low): return log_prob.sum() * clip_low
        given = functools.partial(Module(), clip_low=0.5)
        self.assertEqual(list(sources(given)), ["log_prob", "mask"])
        self.assertEqual(stepped(given)[1]["gradient.log_prob"][0, 0].item(), 0.5)

    def test_positional_only(self) -> None:
        def loss(advantage, log_prob, clip_low=0.25, /, scale=2.0, *, mask): return log_prob.sum() * scale * clip_low
        metadata, tensors = stepped(loss, option__clip_low="0.5")
        self.assertEqual(tensors["gradient.log_prob"][0, 0].item(), 1.0)
        _, tensors = stepped(loss, arguments={"clip_low": "default"})
        self.assertEqual(tensors["gradient.log_prob"][0, 0].item(), 0.5)

    def test_keywords_get_everything_but_facts(self) -> None:
        def loss(**everything):
            assert "world" not in everything and everything["reduction"] == "token_mean"
            return everything["log_prob"].sum() * everything["clip_low"]
        self.assertEqual(stepped(loss)[0]["op"], "result")
        found = sources(loss, arguments={"n": "fact:total_tokens"})
        self.assertEqual(found["n"], "fact:total_tokens")
        def strict(log_prob, mask, **others):
            assert not others
            return log_prob.sum()
        self.assertEqual(stepped(strict, arguments={"others": "default"})[0]["op"], "result")

    def test_modules_classes_instances_and_static_methods(self) -> None:
        class Module(torch.nn.Module):
            def __init__(self, clip_eps_low, clip_eps_high=0.2, log_prob=None):
                super().__init__()
                self.factor = clip_eps_low + clip_eps_high

            def forward(self, log_probs, old_log_probs, action_mask):
                return log_probs.sum() * self.factor
        found = sources(Module)
        self.assertEqual(list(found), ["clip_eps_low", "clip_eps_high", "log_probs", "old_log_probs", "action_mask"])
        answering, _ = asked(Module)
        for low in (0.25, 0.5):  # another instance for other options
            frame = talk.write_frame(talk.step("grpo", option__clip_low=low, option__clip_high=0.5), batch())
            self.assertEqual(talk.read_document(answering.answer(frame[8:])[8:])[1]["gradient.log_prob"][0, 0], low + 0.5)
        self.assertEqual(stepped(Module(1.0, 1.0))[1]["gradient.log_prob"][0, 0], 2.0)

        class Callable:
            def __call__(self, log_prob, mask): return log_prob.sum()

            @staticmethod
            def static(log_prob, mask): return log_prob.sum()

            def method(self, log_prob, mask): return log_prob.sum()
        for subject in (Callable, Callable(), Callable.static, Callable().method):
            self.assertEqual(stepped(subject)[0]["op"], "result")
        self.assertIn("a method, and nobody made the object", asked(Callable.method)[1]["message"])

        class Bad(torch.nn.Module):
            def __init__(self): raise RuntimeError("no such luck")
            def forward(self, log_prob, mask): ...
        metadata, _ = stepped(Bad)
        self.assertEqual((metadata["op"], metadata["message"]), ("raised", "no such luck"))

    def test_autograd_functions(self) -> None:
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, log_prob, mask): return log_prob.sum() * 2

            @staticmethod
            def backward(ctx, gradient): return gradient * 2 * torch.ones(2, 3), None

        class SetUp(torch.autograd.Function):
            @staticmethod
            def forward(log_prob, mask): return log_prob.sum() * 2

            @staticmethod
            def setup_context(ctx, inputs, output): pass

            @staticmethod
            def backward(ctx, gradient): return gradient * 2 * torch.ones(2, 3), None
        for subject in (Double, Double.apply, SetUp, SetUp.apply):
            metadata, tensors = stepped(subject)
            self.assertEqual(tensors["gradient.log_prob"].tolist(), [[2.0] * 3] * 2)

    def test_an_epsilon_that_guards_a_divisor(self) -> None:
        def clip(log_prob, mask, clip_eps=0.2, eps=1e-8): ...
        def written_in(log_prob, mask, epsilon=1e-6): ...
        def asked_for(log_prob, mask, cliprange, eps): ...
        self.assertEqual(sources(clip), {"log_prob": "field:log_prob", "mask": "field:mask", "clip_eps": "option:clip_low"})
        self.assertNotIn("epsilon", sources(written_in))
        self.assertIn("wants 'eps'", asked(asked_for)[1]["message"])
        def critic(values, old_values, returns, mask, cliprange=0.2, eps=1e-8): ...
        self.assertNotIn("eps", sources(critic, "value_clip"))

    def test_a_compiled_module_is_read_as_what_it_compiles(self) -> None:
        class Loss(torch.nn.Module):
            def forward(self, log_probs, response_mask): return (log_probs * response_mask).sum()
        self.assertEqual(sources(torch.compile(Loss())), {"log_probs": "field:log_prob", "response_mask": "field:mask"})

    def test_a_decorator_that_hands_on_no_keywords(self) -> None:
        def timed(function):
            @functools.wraps(function)
            def inner(*args): return function(*args)
            return inner
        metadata, _ = stepped(timed(lambda log_probs, old_log_probs, advantages, mask: (log_probs * mask).sum()))
        self.assertEqual(metadata["op"], "result", metadata)

    def test_what_is_passed_by_hand_is_passed_once(self) -> None:
        def loss(**kwargs): return kwargs["lps"].sum()
        bound = sources(loss, arguments={"lps": "field:log_prob"})
        self.assertEqual([name for name, source in bound.items() if source == "field:log_prob"], ["lps"])

    def test_what_reaches_the_function(self) -> None:
        def loss(log_prob, mask, cliprange, reduction, total_tokens, world_size): ...
        metadata = asked(loss)[1]
        self.assertEqual(metadata["options"], '["clip_low"]')
        self.assertEqual(metadata["tied"], '{"clip_high": "clip_low"}')
        converted = asked(loss, arguments={"cliprange": "option:clip_low as tensor"})[1]
        self.assertEqual(converted["tied"], '{"clip_high": "clip_low"}')
        self.assertEqual(metadata["reduction"], "1")
        self.assertEqual(metadata["facts"], '["total_tokens", "world"]')
        metadata = asked(sum_loss)[1]
        self.assertEqual((metadata["options"], metadata["reduction"], metadata["facts"]), ("[]", "0", "[]"))
        self.assertNotIn("tied", metadata)
        self.assertTrue(metadata["code"].startswith("def sum_loss("))
        self.assertTrue(metadata["file"].endswith("given_worker.py"))

    def test_how_long_outputs_are_is_a_fact_where_no_field_has_their_axes(self) -> None:
        def merged(reward, extent_tokens): ...
        outputs = json.dumps([{"name": "advantage", "axes": ["sequences", "tokens"]}])
        metadata = asked(merged, "group_advantage", outputs=outputs)[1]
        self.assertEqual(metadata["facts"], '["extent_tokens"]')  # the sequences are those of a field
        self.assertIn("micro_batches, extent_tokens)", asked(lambda x, y: 0, "group_advantage", outputs=outputs)[1]["message"])
        self.assertNotIn("extent_tokens", asked(lambda x, y: 0)[1]["message"])  # a field tells

    def test_what_stands_for_an_option_by_itself(self) -> None:
        def loss(log_prob, mask, eps=0.1, beta=None, kl_estimator="k1", dual_clip=float("inf"), level=(1,), kl_weighted=False): ...
        defaults = json.loads(asked(loss)[1]["defaults"])
        self.assertEqual(defaults, {"clip_low": 0.1, "kl_penalty": None, "kl_estimator": "k1", "kl_weighted": False})
        self.assertNotIn("defaults", asked(sum_loss)[1])

    def test_what_nothing_reaches_stays_at_its_default(self) -> None:
        def loss(log_prob, mask, kl_penalty=0.1, loss_agg_mode="token-mean", *rest, **more): ...
        self.assertEqual(json.loads(asked(loss, reductions='["token_mean"]')[1]["left"]), {"loss_agg_mode": "'token-mean'"})
        self.assertNotIn("left", asked(sum_loss)[1])

    def test_refusals_say_what_to_write(self) -> None:
        def config(log_prob, mask, config): ...
        def nothing(x1, x2): ...
        class Holder: ...
        cases = [(config, {}, "arguments.config = "), (config, {"config": "field:lp"}, "no field 'lp'"),
                 (config, {"config": "option:nope"}, "no option 'nope'"), (config, {"config": "fact:no"}, "no fact"),
                 (config, {"config": "json:token-mean"}, 'json:"token-mean"'), (config, {"config": "x"}, "no source"),
                 (config, {"config": "field:mask as words"}, "unknown conversion"), (config, {"config": 3}, "write a source"),
                 (sum_loss, {"maks": "field:mask"}, "has no parameter 'maks'"), (nothing, {}, "x1"),
                 (Holder, {}, "without __call__"), (lambda: 0, {}, "no parameter of"), (3, {}, "not a function"), (max, {}, "does not tell")]
        for subject, arguments, fragment in cases:
            metadata = asked(subject, arguments=arguments)[1]
            self.assertEqual(metadata["op"], "trouble", fragment)
            self.assertIn(fragment, metadata["message"])
            self.assertNotIn("\n", metadata["message"])

    def test_a_refusal_tells_which_parameters_stand_for_something(self) -> None:
        def foreign(student, log_prob, mask, topk, eps=0.1): ...
        for subject, taken, lacking in ((foreign, ["log_prob", "mask", "eps"], ["student", "topk"]),
                                        (lambda a=1, b=2: 0, [], ["a", "b"])):
            self.assertEqual([json.loads(asked(subject)[1][key]) for key in ("taken", "lacking")], [taken, lacking])


if __name__ == "__main__":
    unittest.main()
