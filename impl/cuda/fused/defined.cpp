// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "impl/cuda/fused/call_arrays.h"

namespace lossgate::impl {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kSmallest = std::numeric_limits<float>::min();

/// Where an option's numbers lie. None is a number of its own kind: whoever reads it knows.
struct Range {
  std::string_view option;
  double low, high;
};

constexpr Range kRanges[] = {
    {"temperature", kSmallest, kLargest}, {"beta", 0, 1},
    {"tail_floor", kSmallest, 1},         {"clip_low", 0, 1},
    {"clip_high", 0, kLargest},           {"dual_clip", 1, kLargest},
    {"log_ratio_clamp", 0, kLargest},     {"kl_penalty", -kLargest, kLargest},
    {"kl_input_clamp", 0, kLargest},      {"kl_output_clamp", 0, kLargest},
    {"value_clip", 0, kLargest},          {"max_length", 1, kLargest},
    {"num_items", 1, kLargest},
};

struct Choices {
  std::string_view option;
  std::array<std::string_view, 3> words;
};

constexpr Choices kChoices[] = {
    {"level", {"token", "sequence"}},
    {"kl_estimator", {"k1", "k2", "k3"}},
    {"clip_form", {"around_old", "interval"}},
};

[[noreturn]] void refuse(std::string_view argument, std::string message) {
  throw Refusal{.argument = std::string(argument), .message = std::move(message)};
}

void require_counts(const lossgate_fused_call& call, const LossSpec& spec) {
  const auto require = [](const char* argument, std::int64_t count, std::int64_t least) {
    if (count < least) {
      refuse(argument,
             "is " + std::to_string(count) + ", must be at least " + std::to_string(least));
    }
  };
  require("sequences", call.sequences, 0);
  require("tokens", call.tokens, 0);
  if (call.tokens > 0 && call.sequences > std::numeric_limits<std::int64_t>::max() / call.tokens) {
    refuse("sequences", "and tokens make more positions than there are numbers");
  }
  if (!is_masked(spec)) require("vocab", call.vocab, 1);
  if (spec.loss == "sparse_jsd") require("support", call.support, 1);
  require("total_tokens", call.total_tokens, 0);
  const bool averaged = averages_sequences(spec.reduction) && call.total_tokens > 0;
  require("total_sequences", call.total_sequences, averaged ? 1 : 0);
}

}  // namespace

void require_defined(const lossgate_fused_call& call, const LossSpec& spec) {
  require_counts(call, spec);
  for (const auto& [name, value] : spec.options) {
    if (const double* const number = std::get_if<double>(&value)) {
      const auto* const range = std::ranges::find(kRanges, name, &Range::option);
      if (range == std::end(kRanges) || (*number >= range->low && *number <= range->high)) continue;
      refuse(name, "is " + std::to_string(*number) + ", out of its range");
    }
    if (const std::string* const word = std::get_if<std::string>(&value)) {
      const auto* const choices = std::ranges::find(kChoices, name, &Choices::option);
      if (choices != std::end(kChoices) &&
          (word->empty() || std::ranges::count(choices->words, *word) == 0)) {
        refuse(name, "cannot be '" + *word + "'");
      }
    }
  }
}

}  // namespace lossgate::impl
