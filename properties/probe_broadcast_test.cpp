// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "properties/fake_answer.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

constexpr const char* kCause = "broadcast to a matrix";
constexpr const char* kBecause = "the loss is that of every row beside every other one";

double log1p_exp(double x) {
  return x > 0.0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

/// Of log-ratios (n, 1) less those of the reference (n).
impl::Implementation preference() {
  return answering("dpo", nullptr, [](const Case& c, LossResult& result) {
    const std::int64_t n = c.shape[Axis::sequences];
    const auto difference = [&](const char* chosen, const char* rejected, std::int64_t s) {
      return c.batch.at(chosen).at(s) - c.batch.at(rejected).at(s);
    };
    double sum = 0.0;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double margin = difference("chosen_log_prob", "rejected_log_prob", i) -
                              difference("ref_chosen_log_prob", "ref_rejected_log_prob", j);
        sum += log1p_exp(-c.spec.number("beta") * margin);
      }
    }
    if (n > 0) output(result, "loss").set(0, sum / static_cast<double>(n * n));
  });
}

TEST(ProbeBroadcast, NamesTheMatrixOfAllPairs) {
  expect_shown(preference(), ordinary_case("dpo"), kCause, kBecause);
}

/// The squared distance of each value from each return, over what is selected by the mask; their
/// mean, or their sum by the count of tokens.
impl::Implementation squared(bool mean) {
  return answering("value_clip", nullptr, [mean](const Case& c, LossResult& result) {
    std::vector<double> values, returns;
    at_positions(c, true, [&](std::int64_t p) {
      values.push_back(c.batch.at("value").at(p));
      returns.push_back(c.batch.at("return").at(p));
    });
    double sum = 0.0;
    for (const double v : values) {
      for (const double r : returns) sum += 0.5 * (v - r) * (v - r);
    }
    const auto n = static_cast<double>(values.size());
    if (n > 0.0) output(result, "loss").set(0, sum / (mean ? n * n : n));
  });
}

Case values() {
  Case c = ordinary_case("value_clip");
  c.spec.reduction = Reduction::token_mean;
  c.spec.set("value_clip", None{});
  return c;
}

TEST(ProbeBroadcast, NamesTheMatrixOfAllTokensWhateverDividesIt) {
  expect_shown(squared(true), values(), kCause, kBecause);
  expect_shown(squared(false), values(), kCause, kBecause);
}

TEST(ProbeBroadcast, SaysNothingOfOneOtherSequenceOrOfAnotherDivisor) {
  const auto moved = answering("value_clip", [](Case& c) {
    Tensor& target = c.batch.at("return");
    const Tensor given = target;
    for (std::int64_t i = 0; i < target.size(); ++i) {
      target.set(i, given.at((i + c.shape[Axis::tokens]) % target.size()));
    }
  });
  const auto added_up = answering("value_clip", [](Case& c) {
    if (c.spec.reduction == Reduction::token_mean) c.spec.reduction = Reduction::sum;
  });
  EXPECT_TRUE(speaks(probe_broadcast, squared(true), values()));
  EXPECT_FALSE(speaks(probe_broadcast, moved, values()));
  EXPECT_FALSE(speaks(probe_broadcast, added_up, values()));
}

}  // namespace
}  // namespace lossgate::properties
