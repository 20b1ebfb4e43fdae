// SPDX-License-Identifier: Apache-2.0
// What is subtracted from each answer's reward: whose mean it is, and of how many.
#include <algorithm>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "properties/probes.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

/// A mean over n members of a group, or something like it, of their sum and a member's own reward.
struct Baseline {
  double (*of)(double sum, double own, double n);
  const char* because;  ///< where it stands in place of another
};

constexpr double mean_of_all(double sum, double, double n) { return sum / n; }
constexpr double mean_of_others(double sum, double own, double n) {
  return (sum - own) / (n - 1.0);
}

const Baseline kBaselines[] = {
    {mean_of_all, "the baseline takes in the sample itself"},
    {mean_of_others, "the baseline leaves out the sample itself"},
    {[](double sum, double own, double n) { return (sum - own) / n; },
     "the sum of the others is divided by the number of all"},
    {[](double sum, double, double n) { return sum / (n - 1.0); },
     "the sum of all is divided by the number of the others"},
};

/// What the case asks for; null where its loss subtracts nothing.
auto asked_baseline(const LossSpec& spec) -> decltype(&mean_of_all) {
  const OptionValue* value = spec.find("baseline");
  const auto* choice = value ? std::get_if<std::string>(value) : nullptr;
  if (!choice) return nullptr;
  return *choice == "leave_one_out" ? &mean_of_others : &mean_of_all;
}

/// Plain numbers of one group, which has every sequence.
std::optional<Case> one_group(const Suspect& suspect) {
  auto c = suspect.plain_case({.padding = false});
  if (!c) return std::nullopt;
  for (const Field& field : suspect.signature().fields) {
    if (field.quantity != Quantity::group) continue;
    Tensor& tensor = c->batch.at(field.name);
    for (std::int64_t s = 0; s < tensor.size(); ++s) tensor.set(s, 0.0);
  }
  return c;
}

std::vector<double> rewards_of(const LossSignature& signature, const Case& c) {
  std::vector<double> rewards;
  for (const Field& field : signature.fields) {
    if (field.quantity != Quantity::reward) continue;
    const Tensor& tensor = c.batch.at(field.name);
    for (std::int64_t s = 0; s < tensor.size(); ++s) rewards.push_back(tensor.at(s));
  }
  return rewards;
}

}  // namespace

/// Every number is the quotient of two distances from a baseline, whatever divides them: that from
/// another one over that from the right one.
Opinion probe_baseline(Suspect& suspect) {
  const auto right = asked_baseline(suspect.given().spec);
  const auto group = right ? one_group(suspect) : std::nullopt;
  const auto one = suspect.read_if_made(group);
  if (!is_wrong(one) || !one->finite()) return std::nullopt;
  for (const Baseline& baseline : kBaselines) {
    if (baseline.of == right) continue;
    const auto is_it = [&](const Reading& reading) {
      const std::vector<double> rewards = rewards_of(suspect.signature(), reading.given());
      const RowFactors factors = row_factors(reading);
      // Two members have one distance, which explains nothing.
      if (factors.size() < 3 || factors.size() != rewards.size()) return false;
      const double sum = std::accumulate(rewards.begin(), rewards.end(), 0.0);
      const auto n = static_cast<double>(rewards.size());
      return std::ranges::all_of(factors, [&](const auto& each) {
        const double own = rewards[each.first];
        return each.second.is((own - baseline.of(sum, own, n)) / (own - right(sum, own, n)));
      });
    };
    if (suspect.fits(*one, is_it)) return Diagnosis{"wrong baseline", 0.95, baseline.because};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
