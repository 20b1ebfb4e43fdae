// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/catalog.h"

#include <ATen/Parallel.h>

void lossgate_register(std::vector<lossgate::impl::Implementation>* implementations) {
  using namespace lossgate::impl;
  at::set_num_threads(1);
  implementations->push_back(grpo_implementation());
  implementations->push_back(reinforce_implementation());
  implementations->push_back(dro_implementation());
  implementations->push_back(cispo_implementation());
  implementations->push_back(dppo_implementation());
  implementations->push_back(sapo_implementation());
  implementations->push_back(vespo_implementation());
  implementations->push_back(gmpo_implementation());
  implementations->push_back(kl_penalty_implementation());
  implementations->push_back(value_clip_implementation());
  implementations->push_back(dpo_implementation());
  implementations->push_back(kto_implementation());
  implementations->push_back(orpo_implementation());
  implementations->push_back(log_prob_implementation());
  implementations->push_back(cross_entropy_implementation());
  implementations->push_back(dft_implementation());
  implementations->push_back(entropy_bonus_implementation());
  implementations->push_back(jsd_implementation());
  implementations->push_back(sparse_jsd_implementation());
  implementations->push_back(linear_grpo_implementation());
  implementations->push_back(linear_cross_entropy_implementation());
  implementations->push_back(linear_jsd_implementation());
  implementations->push_back(advantage_scaling_implementation());
  implementations->push_back(group_advantage_implementation());
  implementations->push_back(gae_implementation());
  implementations->push_back(whitening_implementation());
  implementations->push_back(rollout_correction_implementation());
}
