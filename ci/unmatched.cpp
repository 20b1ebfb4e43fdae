// SPDX-License-Identifier: Apache-2.0
#include "ci/unmatched.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace lossgate::ci {
namespace {

/// Most known, then fewest left.
auto merit(const impl::ParametersUnmatched& error) {
  return std::pair(error.taken.size(), -static_cast<int>(error.lacking.size()));
}

}  // namespace

void Unmatched::add(const LossSignature& loss, const impl::ParametersUnmatched& error) {
  ++losses_;
  if (nearest_ && merit(error) <= merit(nearest_->error)) return;
  nearest_.emplace(&loss, error);
}

std::string Unmatched::text() const {
  if (!nearest_) return "";
  const auto& [loss, error] = *nearest_;
  if (losses_ == 1) return error.what();
  const std::string missed = fmt::format("{}", fmt::join(error.lacking, ", "));
  if (error.taken.empty()) {
    return fmt::format(
        "of {} losses none can be called with these names, and none has a field with one of the "
        "names {}; of the loss that it should be, lossgate init LOSS begins a file that says "
        "which is which",
        losses_, missed);
  }
  std::string fields;
  for (const Field& field : loss->fields) fields += (fields.empty() ? "" : ", ") + field.name;
  return fmt::format(
      "of {} losses none can be called with these names; the nearest, {}, takes {} of {}, not {}: "
      "lossgate init {} begins a file that says the rest, as arguments = {{ {} = \"field:...\" }}, "
      "its fields being {}",
      losses_, loss->id, error.taken.size(), error.taken.size() + error.lacking.size(), missed,
      loss->id, error.lacking.front(), fields);
}

}  // namespace lossgate::ci
