# SPDX-License-Identifier: Apache-2.0
"""What trainers and papers call the fields and options. Case and underscores do not matter."""

from __future__ import annotations


def plain_name(name: str) -> str:
    return name.replace("_", "").lower()


def _plain_names(names: str) -> set[str]:
    return {plain_name(name) for name in names.split()}


# For each name of ours; read from trl, liger-kernel, verl, skyrl, openrlhf, areal, torchtune, unsloth-zoo.
_ALIASES = {
    "log_prob": "logps lprob logprobs log_probs per_token_logps new_logps new_log_prob new_log_probs new_logprobs "
                "curr_logps curr_logprobs current_log_prob current_log_probs cur_log_prob pi_logprobs "
                "policy_logps policy_logprobs policy_log_probs action_log_probs selected_logprobs "
                "next_token_logprobs student_logps token_logps logp lp "
                "per_token_logprobs per_token_log_probs token_logprobs token_log_probs current_logps "
                "current_logprobs policy_logprob policy_log_prob train_logprobs trainer_logprobs completion_logps "
                "log_prob_chunk",
    "old_log_prob": "old_logp old_logps old_lp lp_old logp_old old_logprobs old_log_probs old_per_token_logps "
                    "pi_old_logprobs old_action_log_probs old_policy_logprobs proximal_logprobs prox_logp "
                    "prev_logprobs prev_logps prev_log_probs behavior_log_probs behaviour_log_probs "
                    "behav_logprobs log_probs_old log_prob_old logprobs_old sampled_logprobs proximal_logps prox_logps "
                    "prox_logprobs old_per_token_logprobs old_token_logps old_policy_log_probs",
    "ref_log_prob": "ref_logp ref_logps ref_lp lp_ref logp_ref ref_logprobs ref_log_probs ref_per_token_logps "
                    "reference_logps reference_logprobs reference_log_prob reference_log_probs base_log_probs "
                    "base_logps log_probs_base log_prob_base log_probs_ref ref_logprob ref_policy_logprobs "
                    "reference_policy_logprobs base_action_log_probs ref_action_log_probs reference_action_log_probs "
                    "ref_policy_log_probs reference_per_token_logps ref_per_token_logprobs ref_completion_logps "
                    "ref_log_prob_chunk",
    "sampler_log_prob": "sampler_log_probs sampler_logprobs sampler_logps sampling_log_prob sampling_log_probs "
                        "sampling_logprobs sampling_logps sampling_per_token_logps rollout_log_prob rollout_log_probs "
                        "rollout_logprobs rollout_logps inference_logprobs inference_log_probs inference_logps "
                        "generation_logprobs vllm_logprobs vllm_log_probs vllm_logps",
    "advantage": "advantages adv advs adv_t token_advantages token_level_advantages advantage_estimates",
    "importance_weight": "importance_weights importance_ratio importance_ratios importance_sampling_ratio "
                         "importance_sampling_weight importance_sampling_weights rollout_is_weight rollout_is_weights "
                         "is_weight is_weights is_ratio vllm_is_ratio tis_ratio tis_weight tis_weights weight weights "
                         "actor_importance_weights behave_imp_weight token_weight token_weights",
    "mask": "masks attention_mask loss_mask loss_masks response_mask completion_mask action_mask token_mask "
            "full_attention_mask full_mask assistant_mask assistant_masks valid_mask padding_masks "
            "value_padding_masks response_masks experience_mask token_loss_mask eos_mask seq_mask valid "
            "assistant_tokens_mask generation_mask label_mask labels_mask response_loss_mask",
    "value": "values vpred vpreds value_pred value_preds values_pred new_value new_values phi_values "
             "current_values predicted_values critic_values",
    "old_value": "old_values value_old values_old phi_old_values prev_values prev_value vpreds_old "
                 "value_preds_old",
    "return": "returns ret rets target_value target_values value_target value_targets returns_t target",
    "chosen_log_prob": "chosen_logps chosen_logprobs chosen_log_probs policy_chosen_logps policy_chosen_logprobs "
                       "policy_chosen_log_probs policy_chosen_lp chosen_lp pi_chosen_logps logps_chosen logp_chosen "
                       "chosen_logp policy_chosen pos_prob",
    "rejected_log_prob": "rejected_logps rejected_logprobs rejected_log_probs policy_rejected_logps "
                         "policy_rejected_logprobs policy_rejected_log_probs policy_rejected_lp rejected_lp "
                         "pi_rejected_logps logps_rejected logp_rejected rejected_logp policy_rejected "
                         "reject_logp neg_prob",
    "ref_chosen_log_prob": "ref_chosen_logps ref_chosen_logprobs ref_chosen_log_probs reference_chosen_logps "
                           "reference_chosen_logprobs reference_chosen_log_probs reference_chosen_lp ref_chosen_lp "
                           "ref_chosen_logp ref_logps_chosen reference_chosen",
    "ref_rejected_log_prob": "ref_rejected_logps ref_rejected_logprobs ref_rejected_log_probs "
                             "reference_rejected_logps reference_rejected_logprobs reference_rejected_log_probs "
                             "reference_rejected_lp ref_rejected_lp ref_rejected_logp ref_logps_rejected "
                             "reference_rejected",
    "desirable": "desirables is_desirable label labels bool_labels preference_labels preference_labels_chunk is_chosen "
                 "chosen_mask",
    "logits": "logit lm_logits shift_logits policy_logits next_token_logits",
    "label": "labels target targets target_ids target_token_ids input_ids index ids token_ids tokens "
             "selected_token_ids completion_ids action_ids actions shift_labels "
             "shifted_labels response_ids responses output_ids next_tokens",
    "student_logits": "logits student s_logits logits_s student_logit policy_logits logits_student",
    "teacher_logits": "teacher t_logits logits_t teacher_logit target_logits ref_logits reference_logits "
                      "logits_teacher",
    "support_token": "support_tokens support_ids topk_ids top_k_ids teacher_token_ids teacher_topk_ids "
                     "teacher_topk_indices topk_indices top_k_indices target_token_ids teacher_indices",
    "teacher_log_prob": "teacher_logprobs teacher_log_probs teacher_logps teacher_topk_logprobs "
                        "teacher_topk_log_probs topk_logprobs top_k_logprobs target_logprobs",
    "hidden": "hidden_states hidden_state last_hidden_state input _input inputs hiddens",
    "weight": "lm_head_weight lin_weight head_weight linear_weight vocab_weight vocab_weights output_weight lm_head",
    "bias": "lm_head_bias lin_bias head_bias linear_bias output_bias",
    "student_hidden": "student_hidden_states student_input hidden_student h_s",
    "student_weight": "student_lm_head student_lin_weight student_head weight_student w_s student_lm_head_weight",
    "teacher_hidden": "teacher_hidden_states teacher_input hidden_teacher h_t",
    "teacher_weight": "teacher_lm_head teacher_lin_weight teacher_head weight_teacher w_t teacher_lm_head_weight",
    "entropy": "entropies token_entropy token_entropies per_token_entropy per_token_entropies",
    "log_prob_weight": "grad_log_prob grad_logp log_prob_grad",
    "entropy_weight": "grad_entropy entropy_grad entropy_coef entropy_coeff",
    "clip_low": "epsilon_low eps_low eps_lo clip_eps_low cliprange_low clip_range_low clip_ratio_low "
                "eps_clip_low ratio_clip_min clip_lower pg_clip_low",
    "clip_high": "epsilon_high eps_high eps_hi clip_eps_high cliprange_high clip_range_high clip_ratio_high "
                 "eps_clip_high eps_clip_higher ratio_clip_max clip_higher pg_clip_high",
    "weight_low": "clip_low_threshold weight_min min_weight",
    "weight_high": "clip_high_threshold weight_max max_weight threshold rollout_is_threshold is_threshold cap weight_cap "
                   "importance_sampling_cap vllm_importance_sampling_cap tis_imp_ratio_cap tis_cap imp_ratio_cap clip_ratio_c",
    "divergence": "divergence_type dppo_divergence_type",
    "divergence_low": "clip_divergence_low divergence_threshold_low delta_low dppo_mask_low dppo_diff_low clip_ratio_low "
                      "clip_low",
    "divergence_high": "clip_divergence_high divergence_threshold_high delta_high dppo_mask_high dppo_diff_high "
                       "clip_ratio_high clip_high",
    "dual_clip": "delta clip_ratio_c c_clip eps_clip_c dual_clip_c dual_clip_ratio ratio_clip_c",
    "log_ratio_clamp": "log_ratio_clamp_value ratio_clamp log_ratio_max",
    "level": "importance_sampling_level is_level rollout_is",
    "kl_penalty": "beta kl_coef kl_coeff kl_beta kl_loss_coef kl_loss_coeff init_kl_coef kl_loss_weight "
                  "reference_policy_kl_penalty kl_penalty_coef kl_ctl kl_weight",
    "kl_estimator": "kl_estimator_type kl_type kl_loss_type estimator kl_penalty kl_penalty_type "
                    "reference_policy_kl_type",
    "kl_input_clamp": "kl_input_clamp_value",
    "kl_output_clamp": "kl_output_clamp_value",
    "kl_weighted": "use_bias_correction_kl use_unbiased_kl unbiased_kl",
    "kl_straight_through": "straight_through",
    "max_length": "max_completion_length max_seq_len max_response_length max_tokens loss_scale_factor "
                  "max_new_tokens max_generation_length",
    "value_clip": "cliprange_value clip_range_value value_clip_range value_eps_clip value_cliprange clip_value "
                  "clip_eps eps_clip cliprange clip_range epsilon eps clip_range_vf value_clip_eps value_clip_ratio",
    "temperature": "temp tau kd_temperature distill_temperature distillation_temperature",
    "tau_positive": "tau_pos sapo_temperature_pos temperature_pos sapo_tau_pos",
    "tau_negative": "tau_neg sapo_temperature_neg temperature_neg sapo_tau_neg",
    "k_positive": "k_pos vespo_k_pos",
    "lambda_positive": "lambda_pos lam_pos vespo_lambda_pos",
    "k_negative": "k_neg vespo_k_neg",
    "lambda_negative": "lambda_neg lam_neg vespo_lambda_neg",
    "beta": "jsd_beta jsd_alpha gkd_beta dpo_beta kto_beta orpo_beta orpo_alpha pref_beta dro_beta",
    "num_items": "num_items_in_batch n_items",
    "label_smoothing": "smoothing label_smooth label_smoothing_factor dpo_label_smoothing",
    "kl": "kl_divergence kl_estimate z0 z_ref reference_point",
    "desirable_weight": "chosen_weight weight_desirable lambda_d kto_chosen_weight",
    "undesirable_weight": "rejected_weight weight_undesirable lambda_u kto_rejected_weight",
    "margin": "gamma simpo_gamma reward_margin target_reward_margin",
    "z_loss": "z_loss_coef z_loss_coeff z_loss_weight z_loss_multiplier lse_square_scale softmax_auxiliary_loss_multiplier",
    "coefficient": "entropy_coef entropy_coeff ent_coef entropy_coefficient entropy_bonus coef coeff",
    "tail": "add_tail loss_add_tail with_tail",
    "reward": "rewards rew rews score scores token_rewards token_level_rewards token_level_scores r_t",
    "group": "groups group_id group_ids uid uids prompt_id prompt_ids prompt_index prompt_indices index indices "
             "group_index group_indices prompt_uids",
    "gamma": "discount discount_factor gae_gamma",
    "lambda": "lam lambd lmbda lambda_ gae_lambda gae_lam",
    "whiten": "whitening normalize_advantages normalise_advantages whiten_advantages",
    "epsilon": "eps std_eps adv_eps variance_eps advantage_eps norm_eps",
    "normalisation": "normalization loss_reduction reduction",
    "reduction": "loss_reduction loss_agg_mode agg_mode loss_aggregation loss_aggregation_mode aggregation_mode "
                 "reduction_mode reduction_type loss_reduction_type",
    "total_tokens": "num_items_in_batch num_items batch_num_tokens global_valid_toks global_num_tokens "
                    "num_tokens total_valid_tokens num_valid_tokens total_num_tokens",
    "total_sequences": "global_batch_size global_valid_seqs num_sequences num_seqs total_seqs",
    "world": "world_size dp_size num_processes dp_world_size data_parallel_size num_ranks",
    "micro_batches": "gradient_accumulation_steps grad_accum_steps num_micro_batches "
                     "current_gradient_accumulation_steps num_mb accumulation_steps grad_acc_steps",
    "micro_batch": "micro_batch_index",
}
# One number for both sides of a clip or of a bound, by the lower one.
_SYMMETRIC = {
    "clip_low": "epsilon eps clip_eps cliprange clip_range clip_ratio eps_clip clip_param clip_epsilon clip clip_coef pg_clip",
    "divergence_low": "divergence_threshold dppo_divergence_threshold dppo_threshold clip_divergence max_divergence "
                      "delta clip_ratio",
}
# Only for a parameter that has no default: too short to be sure.
_WEAK = {"log_prob": "new cur pi l lps x target_logprobs", "old_log_prob": "old inference_logprobs sampling_logprobs", "ref_log_prob": "ref base",
         "advantage": "a x values", "reward": "r", "mask": "m", "value": "v", "old_value": "v_old old_v", "return": "r g",
         "label": "y", "logits": "x z source", "hidden": "x h", "weight": "w", "importance_weight": "w", "bias": "b",
         "student_logits": "s p x", "teacher_logits": "t q y", "student_hidden": "s", "teacher_hidden": "t"}

# What says less than the field: the size of groups that are as large as each other; how many tokens of a sequence count,
# where those come first.
_SUMMARIES = {
    ("group", "size"): "num_generations group_size samples_per_prompt n_samples_per_prompt num_samples_per_prompt "
                       "responses_per_prompt num_responses_per_prompt num_return_sequences num_samples n_samples rollout_n",
    ("mask", "lengths"): "lengths seq_lens seq_lengths sequence_lengths response_lengths response_lens "
                         "completion_lengths completion_lens action_lengths output_lengths",
}

ALIASES = {target: _plain_names(names) for target, names in _ALIASES.items()}
SYMMETRIC = {low: _plain_names(names) for low, names in _SYMMETRIC.items()}
SUMMARIES = {key: _plain_names(names) for key, names in _SUMMARIES.items()}
WEAK = {target: _plain_names(names) for target, names in _WEAK.items()}
