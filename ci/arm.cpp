// SPDX-License-Identifier: Apache-2.0
#include "ci/arm.h"

#include <algorithm>
#include <utility>

#include "ci/errors.h"
#include "corpora/format_error.h"
#include "corpora/text_codec.h"
#include "fuzz/long_case.h"
#include "impl/catalog.h"

namespace lossgate::ci {

Case decode_case(const Arm& arm, const std::string& text) {
  const LossSignature& signature = arm.loss->signature;
  const auto lookup = [&](std::string_view loss) {
    return loss == signature.id ? &signature : nullptr;
  };
  try {
    return corpora::decode(text, "a worker's case", lookup);
  } catch (const corpora::FormatError& error) {
    throw MachineError(error.what());
  }
}

PlannedCase planned_for(const Arm& arm, Case c) {
  PlannedCase planned;
  planned.loss = arm.loss;
  planned.only = arm.only;
  planned.dtype = float_dtype(arm.loss->signature, c);
  planned.long_axis = fuzz::long_axis_of(arm.loss->signature, c.shape);
  planned.benign = planned.long_axis.has_value();
  planned.c = std::move(c);
  planned.c.provenance.title = "a finding of the campaign";
  return planned;
}

std::optional<PlannedCase> long_case(const Plan& plan, const Arm& arm, std::int64_t number) {
  const LossSignature& signature = arm.loss->signature;
  const auto lengths = fuzz::lengths_of(plan.options().seed, signature, arm.dtypes);
  if (number >= std::ssize(lengths)) return std::nullopt;
  const fuzz::Length& length = lengths.at(static_cast<std::size_t>(number));
  PlannedCase planned = planned_for(arm, draw_long_case(plan.options().seed, signature, length));
  planned.long_axis = length.extents.axis;
  planned.benign = is_plain(length);
  return planned;
}

std::vector<Arm> arms_of(const Plan& plan) {
  const auto& named = plan.options().filters.implementations;
  std::vector<Arm> arms;
  for (const impl::Implementation* declared : plan.selection().implementations) {
    const bool is_named = std::ranges::find(named, declared->name) != named.end();
    if (declared->fault && !is_named) continue;
    Arm arm;
    arm.loss = reference::find_loss(declared->loss);
    arm.declared = declared;
    for (const auto& brought : plan.selection().brought) {
      if (&brought->implementation != declared) continue;
      arm.loss = &brought->loss;
      arm.only = declared;
      arm.dtypes = brought->dtypes;
    }
    if (!arm.only) arm.dtypes = dtypes_of(arm.loss->signature);
    if (declared->fault) arm.twin = impl::twin_of(*declared);
    std::erase_if(arm.dtypes, [&](Dtype dtype) { return !plan.selection().has(dtype); });
    if (!arm.dtypes.empty()) arms.push_back(std::move(arm));
  }
  return arms;
}

std::vector<Arm> dealt(std::vector<Arm> all, const Shard& shard) {
  std::vector<Arm> mine;
  const auto count = std::ssize(all);
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % shard.count == (shard.index - 1) % std::min(shard.count, count)) {
      mine.push_back(std::move(all[static_cast<std::size_t>(i)]));
    }
  }
  return mine;
}

}  // namespace lossgate::ci
