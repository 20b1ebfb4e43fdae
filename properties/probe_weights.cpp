// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "properties/agreement.h"
#include "properties/probes.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

/// What stands in the denominator instead of what should, as the factor of each sequence.
struct Hypothesis {
  const char* cause;
  std::string because;
  std::function<double(const BatchCounts&, std::size_t row)> factor;
};

std::vector<Hypothesis> hypotheses(const LossSpec& spec) {
  const Reduction declared = declared_reduction(spec);
  const auto weight = [spec, declared](const BatchCounts& n, std::size_t row) {
    return token_weight(spec, declared, n, row);
  };
  const auto instead = [weight](const char* cause, std::string text, auto&& other) {
    return Hypothesis{cause, std::move(text),
                      [weight, other](const BatchCounts& n, std::size_t row) {
                        return other(n, row) / weight(n, row);
                      }};
  };
  using N = const BatchCounts&;
  using R = std::size_t;
  const char* divisor = "wrong divisor";
  std::vector<Hypothesis> all;
  all.push_back({"scaled twice", "each term is divided by its count twice", weight});
  all.push_back(instead("padding counted", "terms are divided by all positions",
                        [](N n, R) { return 1.0 / n.positions(); }));
  all.push_back(instead(divisor, "terms are not divided at all", [](N, R) { return 1.0; }));
  all.push_back(instead(divisor, "terms are divided by the valid tokens",
                        [](N n, R) { return 1.0 / n.tokens; }));
  all.push_back(
      instead(divisor, "terms are divided by the sequences", [](N n, R) { return 1.0 / n.rows; }));
  all.push_back(instead(divisor, "terms are divided by the tokens of their sequence alone",
                        [](N n, R row) { return 1.0 / n.row_tokens[row]; }));
  all.push_back(instead(divisor, "terms are divided by the longest sequence",
                        [](N n, R) { return 1.0 / n.columns; }));
  for (const Reduction other : kAllReductions) {
    all.push_back(instead(divisor, "terms are reduced as " + std::string(name(other)) + " says",
                          [spec, other](N n, R row) { return token_weight(spec, other, n, row); }));
  }
  return all;
}

bool explains(const Hypothesis& hypothesis, const RowFactors& factors, const BatchCounts& counts) {
  return std::ranges::all_of(factors, [&](const auto& each) {
    return each.second.is(hypothesis.factor(counts, each.first));
  });
}

/// Sequences of one factor are one group: does each have its own tokens' mean, and is their mean
/// taken?
bool is_mean_of_group_means(const RowFactors& factors, const BatchCounts& counts) {
  std::vector<std::pair<RowFactor, double>> groups;  // with their tokens
  for (const auto& [row, factor] : factors) {
    auto known = std::ranges::find_if(
        groups, [&](const auto& group) { return group.first.is(factor.value); });
    if (known == groups.end()) known = groups.insert(groups.end(), {factor, 0.0});
    known->second += counts.row_tokens[row];
  }
  const auto count = static_cast<double>(groups.size());
  return std::ranges::all_of(groups, [&](const auto& group) {
    return group.first.is(counts.tokens / (count * group.second));
  });
}

}  // namespace

Opinion probe_weights(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain)) return std::nullopt;
  const RowFactors factors = row_factors(*plain);
  const auto unmoved = [](const auto& each) { return each.second.is(1.0); };
  if (std::ranges::all_of(factors, unmoved)) return std::nullopt;
  const BatchCounts counts(plain->study());
  for (const Hypothesis& hypothesis : hypotheses(plain->given().spec)) {
    if (explains(hypothesis, factors, counts)) {
      return Diagnosis{hypothesis.cause, 0.95, hypothesis.because};
    }
  }
  if (is_mean_of_group_means(factors, counts)) {
    return Diagnosis{"mean of means", 0.9, "groups of sequences are averaged one by one"};
  }
  return std::nullopt;
}

/// Every wrong entry is the right one with the other sign.
Opinion probe_sign(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain)) return std::nullopt;
  for (const ReadEntry& entry : plain->entries()) {
    if (entry.wrong() && !(std::fabs(entry.actual + entry.expected) <= entry.accepted)) {
      return std::nullopt;
    }
  }
  return Diagnosis{"wrong sign", 0.95, "every wrong number is right with the other sign"};
}

}  // namespace lossgate::properties
