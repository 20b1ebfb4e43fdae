// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>

#include "properties/agreement.h"
#include "properties/checks.h"
#include "properties/split_cause.h"
#include "reference/spec/even_parts.h"

namespace lossgate::properties {
namespace {

constexpr int kRandomSplits = 24;

/// Whether a micro-batch of the split is without a valid position.
bool has_empty_part(const CaseStudy& study) {
  const auto counts = [&](std::int64_t sequence) {
    for (std::int64_t token = 0; token < study.whole().shape.positions(); ++token) {
      if (study.valid(sequence, token)) return true;
    }
    return false;
  };
  return std::ranges::any_of(study.split().split.parts, [&](const Split::Part& part) {
    return std::ranges::none_of(part.sequences, counts);
  });
}

/// Every sequence on its own to a random part, parts to ranks in turn.
Split random_split(std::int64_t sequences, bool shardable, std::mt19937_64& random) {
  const auto parts = 2 + random() % 3;
  const auto ranks = 1 + random() % 2;
  Split split{.world = shardable ? static_cast<int>(ranks) : 1, .parts = {}};
  split.parts.resize(parts);
  for (std::size_t i = 0; i < parts; ++i) {
    split.parts[i].rank = static_cast<int>(i) % split.world;
  }
  for (std::int64_t s = 0; s < sequences; ++s) split.parts[random() % parts].sequences.push_back(s);
  return split;
}

/// "[0, 2] [1] [] on 2 ranks": the sequences of each part, the parts dealt to the ranks in turn.
std::string text_of(const Split& split) {
  std::string text;
  for (const Split::Part& part : split.parts) {
    std::string sequences;
    for (const std::int64_t s : part.sequences) {
      sequences += (sequences.empty() ? "" : ", ") + std::to_string(s);
    }
    text += "[" + sequences + "] ";
  }
  return text + "on " + std::to_string(split.world) + (split.world == 1 ? " rank" : " ranks");
}

/// Rule D2. Empty where the whole batch's loss is nothing to compare with.
SplitBias bias_of(Evaluation& evaluation) {
  const reference::Loss& loss = evaluation.study().loss();
  Case c = evaluation.study().whole();
  const Tensor* whole = evaluation.actual().find("loss");
  if (!whole || !std::isfinite(whole->at(0)) || whole->at(0) == 0.0) return {};
  std::mt19937_64 random(1);
  SplitBias bias;
  double worst = 0.0;
  for (int i = 0; i < kRandomSplits; ++i) {
    c.split = random_split(c.shape[Axis::sequences], loss.signature.shardable, random);
    make_parts_even(loss.signature, c);
    if (c.split.whole()) continue;
    const LossResult result = evaluation.implementation().evaluate(loss.signature, c);
    const Tensor* value = result.find("loss");
    if (!value || !std::isfinite(value->at(0))) continue;
    const double off_by = value->at(0) / whole->at(0) - 1.0;
    bias.off_by.push_back(off_by);
    if (std::fabs(off_by) <= std::fabs(worst)) continue;
    worst = off_by;
    bias.worst = text_of(c.split);
  }
  return bias;
}

std::string sentence_of(const SplitBias& bias) {
  if (bias.off_by.empty()) return "";
  double total = 0.0, worst = 0.0;
  for (const double off_by : bias.off_by) {
    total += off_by;
    if (std::fabs(off_by) > std::fabs(worst)) worst = off_by;
  }
  const auto count = static_cast<int>(bias.off_by.size());
  if (worst == 0.0) {
    return "; over " + std::to_string(count) + " random splits the loss is that of the whole";
  }
  char text[128];
  std::snprintf(text, sizeof text,
                "; over %d random splits the loss is off by %+.3g on average, %+.3g at worst",
                count, total / count, worst);
  return text;
}

}  // namespace

/// Rule D1, asked of the aggregation that the implementation declares; of a micro-batch without a
/// valid position its contract may say something else (rule C6), and of parts that are not as large
/// as each other (rule D1).
Outcome split_invariance(Evaluation& evaluation) {
  const impl::Contract& contract = evaluation.implementation().contract;
  if (!contract.splits) return skipped("contract: micro_batches");
  const CaseStudy& study = evaluation.study();
  if (!has_even_parts(study.signature(), study.split())) return skipped("contract");
  if (auto outcome = incomparable(evaluation)) return *outcome;
  if (contract.empty != Empty::zero && has_empty_part(study)) return skipped("contract");
  Outcome outcome = compare_transformed(evaluation, kSplit, true);
  if (outcome.violation && outcome.violation->detail.empty()) {
    SplitBias& bias = outcome.violation->split_bias;
    if (evaluation.tells_bias) bias = bias_of(evaluation);
    outcome.violation->detail =
        "the split batch does not give what the whole batch gives" + sentence_of(bias);
    outcome.violation->cause = cause_of_split(evaluation, outcome.violation->place);
  }
  return outcome;
}

}  // namespace lossgate::properties
