// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "impl/cuda/grpo_math.h"
#include "impl/cuda/host_fields.h"

namespace lossgate::impl {

template <class F>
GrpoOptions<F> read_grpo_options(const LossSpec& spec) {
  GrpoOptions<F> options;
  options.clip.low = static_cast<F>(1.0 - spec.number("clip_low"));
  options.clip.high = static_cast<F>(1.0 + spec.number("clip_high"));
  options.clip.dual = limit_option<F>(spec, "dual_clip");
  options.log_ratio = limit_option<F>(spec, "log_ratio_clamp");
  options.kl_penalty = static_cast<F>(spec.number("kl_penalty"));
  const std::string& kind = spec.choice("kl_estimator");
  options.kl.kind = kind == "k1" ? KlKind::k1 : kind == "k2" ? KlKind::k2 : KlKind::k3;
  options.kl.input = limit_option<F>(spec, "kl_input_clamp");
  options.kl.output = limit_option<F>(spec, "kl_output_clamp");
  options.kl.weighted = spec.number("kl_weighted") != 0.0;
  options.sequence_level = spec.choice("level") == "sequence";
  return options;
}

}  // namespace lossgate::impl
