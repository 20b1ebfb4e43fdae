// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "properties/agreement.h"
#include "properties/probes.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

/// Of so many a plain case has fewer as well, of fewer more.
constexpr std::int64_t kManyEntries = 4;

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

/// The axes that a loss's terms are summed over, and what they are called.
constexpr std::pair<Axis, const char*> kSummed[] = {{Axis::vocab, "the vocabulary"},
                                                    {Axis::support, "the tokens of a list"}};

/// Terms that are divided, besides, by what they are summed over. A mean of all numbers is that of
/// all that were selected, or of all that there are.
std::vector<Hypothesis> hypotheses_of_entries(const LossSpec& spec, double extent,
                                              const std::string& summed) {
  const Reduction declared = declared_reduction(spec);
  const auto weight = [spec, declared](const BatchCounts& n, std::size_t row) {
    return token_weight(spec, declared, n, row);
  };
  using N = const BatchCounts&;
  const std::string besides = "by " + summed + " as well, as a mean over all entries is";
  return {{"wrong divisor", "terms are divided " + besides,
           [extent](N, std::size_t) { return 1.0 / extent; }},
          {"wrong divisor", "terms are divided by the valid tokens and " + besides,
           [extent, weight](N n, std::size_t row) {
             return 1.0 / (extent * n.tokens * weight(n, row));
           }},
          {"padding counted", "terms are divided by all positions and " + besides,
           [extent, weight](N n, std::size_t row) {
             return 1.0 / (extent * n.positions() * weight(n, row));
           }}};
}

bool explains(const Hypothesis& hypothesis, const RowFactors& factors, const BatchCounts& counts) {
  return !factors.empty() && std::ranges::all_of(factors, [&](const auto& each) {
    return each.second.is(hypothesis.factor(counts, each.first));
  });
}

/// Divisors that count what is summed over: in the plain case, and in one that has another number
/// of them, as any constant is one divided by some extent.
Opinion divided_by_entries(const Suspect& suspect, const Reading& plain,
                           const RowFactors& factors) {
  for (const auto& [axis, summed] : kSummed) {
    const std::int64_t extent = plain.given().shape[axis];
    if (extent < 2) continue;
    auto c = suspect.plain_case(
        {.few = {axis}, .at_most = extent > kManyEntries ? extent - 2 : extent + 1});
    if (!c || c->shape[axis] == extent) continue;
    c->spec = plain.given().spec;
    const auto other = suspect.read(c);
    if (!is_wrong(other)) continue;
    const RowFactors others = row_factors(*other);
    const auto here = hypotheses_of_entries(c->spec, static_cast<double>(extent), summed);
    const auto there = hypotheses_of_entries(c->spec, static_cast<double>(c->shape[axis]), summed);
    for (std::size_t i = 0; i < here.size(); ++i) {
      if (!explains(here[i], factors, BatchCounts(plain.study()))) continue;
      if (!explains(there[i], others, BatchCounts(other->study()))) continue;
      return Diagnosis{here[i].cause, 0.95, here[i].because};
    }
  }
  return std::nullopt;
}

/// Whether these are the factors of so many groups, each of which has its own tokens' mean, and of
/// whose means the mean is taken: all weights together are 1. Groups of as many tokens have one
/// factor. `tokens_of` says how many tokens have the factor.
bool is_mean_of_group_means(const RowFactors& factors, double tokens,
                            const std::function<double(std::size_t)>& tokens_of) {
  constexpr int kMostGroups = 16;
  std::vector<std::pair<RowFactor, double>> kinds;  // with their tokens
  for (const auto& [key, factor] : factors) {
    auto known =
        std::ranges::find_if(kinds, [&](const auto& kind) { return kind.first.is(factor.value); });
    if (known == kinds.end()) known = kinds.insert(kinds.end(), {factor, 0.0});
    known->second += tokens_of(key);
  }
  // What a narrow format adds and takes is noise about 1.
  if (std::ranges::all_of(kinds, [](const auto& kind) { return kind.first.is(1.0); })) return false;
  for (int groups = 2; kinds.size() > 1 && groups <= kMostGroups; ++groups) {
    double counted = 0.0;
    const bool fit = std::ranges::all_of(kinds, [&](const auto& kind) {
      const double whole = std::round(groups * kind.second * kind.first.value / tokens);
      counted += whole;
      return whole >= 1.0 && kind.first.is(tokens * whole / (groups * kind.second));
    });
    if (fit && counted == groups) return true;
  }
  return false;
}

}  // namespace

Opinion probe_weights(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain)) return std::nullopt;
  const RowFactors factors = row_factors(*plain);
  const auto unmoved = [](const auto& each) { return each.second.is(1.0); };
  const BatchCounts counts(plain->study());
  if (factors.empty()) {
    const auto one = [](std::size_t) { return 1.0; };
    if (!is_mean_of_group_means(position_factors(*plain), counts.tokens, one)) return std::nullopt;
    return Diagnosis{"mean of means", 0.9, "groups of tokens are averaged one by one"};
  }
  if (std::ranges::all_of(factors, unmoved)) return std::nullopt;
  for (const Hypothesis& hypothesis : hypotheses(plain->given().spec)) {
    if (explains(hypothesis, factors, counts)) {
      return Diagnosis{hypothesis.cause, 0.95, hypothesis.because};
    }
  }
  if (auto opinion = divided_by_entries(suspect, *plain, factors)) return opinion;
  const auto of_row = [&](std::size_t row) { return counts.row_tokens[row]; };
  if (is_mean_of_group_means(factors, counts.tokens, of_row)) {
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
