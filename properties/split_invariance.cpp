// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "properties/agreement.h"
#include "properties/checks.h"
#include "properties/split_cause.h"

namespace lossgate::properties {
namespace {

constexpr int kRandomSplits = 24;

/// Every sequence on its own to a random part, parts to ranks in turn.
Split random_split(std::int64_t sequences, std::mt19937_64& random) {
  const auto parts = 2 + random() % 3;
  Split split{.world = static_cast<int>(1 + random() % 2), .parts = {}};
  split.parts.resize(parts);
  for (std::size_t i = 0; i < parts; ++i) {
    split.parts[i].rank = static_cast<int>(i) % split.world;
  }
  for (std::int64_t s = 0; s < sequences; ++s) split.parts[random() % parts].sequences.push_back(s);
  return split;
}

/// Rule D2: how far splits move the loss, relative to the whole batch's.
std::string bias(Evaluation& evaluation) {
  const reference::Loss& loss = evaluation.study().loss();
  Case c = evaluation.study().whole();
  const Tensor* whole = evaluation.actual().find("loss");
  if (!whole || !std::isfinite(whole->at(0)) || whole->at(0) == 0.0) return "";
  std::mt19937_64 random(1);
  double total = 0.0, worst = 0.0;
  for (int i = 0; i < kRandomSplits; ++i) {
    c.split = random_split(c.shape[Axis::sequences], random);
    const LossResult result = evaluation.implementation().evaluate(loss.signature, c);
    const Tensor* value = result.find("loss");
    if (result.refusal || !value || !std::isfinite(value->at(0))) continue;
    const double relative = value->at(0) / whole->at(0) - 1.0;
    total += relative;
    if (std::fabs(relative) > std::fabs(worst)) worst = relative;
  }
  char text[128];
  std::snprintf(text, sizeof text,
                "; over %d random splits the loss is off by %+.3g on average, %+.3g at worst",
                kRandomSplits, total / kRandomSplits, worst);
  return text;
}

}  // namespace

/// Rule D1, asked of the aggregation that the implementation declares.
Outcome split_invariance(Evaluation& evaluation) {
  Outcome outcome = compare_transformed(evaluation, kSplit, true);
  if (outcome.violation && outcome.violation->detail.empty()) {
    outcome.violation->detail =
        "the split batch does not give what the whole batch gives" + bias(evaluation);
    outcome.violation->cause = cause_of_split(evaluation, outcome.violation->place);
  }
  return outcome;
}

}  // namespace lossgate::properties
