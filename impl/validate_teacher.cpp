// SPDX-License-Identifier: Apache-2.0
#include "impl/validate_teacher.h"

#include <cmath>

#include "impl/positions.h"

namespace lossgate::impl {

void require_valid_sparse_jsd(const LossSignature& signature, const Case& c) {
  LossSignature own = signature;
  for (Field& field : own.fields) {
    if (field.name == "teacher_log_prob") field.infinity = Infinity::legal;
  }
  require_valid(own, c);
  if (c.spec.number("beta") == 0.0) return;
  const Tensor& teacher = c.batch.at("teacher_log_prob");
  const Positions positions = find_positions(signature, c);
  const std::int64_t tokens = c.shape[Axis::tokens], support = c.shape[Axis::support];
  for (std::int64_t i = 0; i < teacher.size(); ++i) {
    const std::int64_t at = i / support;
    if (!positions.valid[static_cast<std::size_t>(at)] || std::isfinite(teacher.at(i))) continue;
    throw Refusal{"teacher_log_prob", at / tokens, at % tokens, "is not finite where it counts"};
  }
}

}  // namespace lossgate::impl
