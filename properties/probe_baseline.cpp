// SPDX-License-Identifier: Apache-2.0
// What is subtracted from each answer's reward, whose mean it is and of how many; and whose
// deviation divides what is left.
#include <algorithm>
#include <cmath>
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
    {mean_of_all,
     "the baseline takes in the sample itself: all is (n - 1) / n of what it should be"},
    {mean_of_others,
     "the baseline leaves out the sample itself: all is n / (n - 1) of what it should be"},
    {[](double sum, double own, double n) { return (sum - own) / n; },
     "the sum of the others is divided by the number of all"},
    {[](double sum, double, double n) { return sum / (n - 1.0); },
     "the sum of all is divided by the number of the others"},
};

using Right = decltype(&mean_of_all);

/// What the case asks for; null where its loss subtracts nothing.
Right asked_baseline(const LossSpec& spec) {
  const OptionValue* value = spec.find("baseline");
  const auto* choice = value ? std::get_if<std::string>(value) : nullptr;
  if (!choice) return nullptr;
  return *choice == "leave_one_out" ? &mean_of_others : &mean_of_all;
}

/// So many numbers are no chance.
constexpr std::size_t kFewest = 3;
/// More sequences than plain cases have.
constexpr std::int64_t kEveryone = 1024;

/// Plain numbers, so many sequences side by side in a group.
std::optional<Case> in_groups_of(const Suspect& suspect, std::int64_t members) {
  auto c = suspect.plain_case({.padding = false});
  if (!c) return std::nullopt;
  for (const Field& field : suspect.signature().fields) {
    if (field.quantity != Quantity::group) continue;
    Tensor& tensor = c->batch.at(field.name);
    for (std::int64_t s = 0; s < tensor.size(); ++s) {
      tensor.set(s, static_cast<double>(s / members));
    }
  }
  return c;
}

double sum_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
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

/// Every number is the quotient of two distances from a baseline, whatever divides them: that from
/// another one over that from the right one.
Opinion of_another_count(const Suspect& suspect, Right right) {
  const auto one = suspect.read_if_made(in_groups_of(suspect, kEveryone));
  if (!is_wrong(one) || !one->finite()) return std::nullopt;
  for (const Baseline& baseline : kBaselines) {
    if (baseline.of == right) continue;
    const auto is_it = [&](const Reading& reading) {
      const std::vector<double> rewards = rewards_of(suspect.signature(), reading.given());
      const RowFactors factors = row_factors(reading);
      // Two members have one distance, which explains nothing.
      if (factors.size() < kFewest || factors.size() != rewards.size()) return false;
      const double sum = sum_of(rewards);
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

/// A reward and those beside it.
struct Sample {
  double own = 0.0;
  std::vector<double> group = {}, others = {}, batch = {};  ///< others: of its group
};

std::vector<Sample> samples_of(const LossSignature& signature, const Case& c) {
  const std::vector<double> rewards = rewards_of(signature, c);
  const auto field = std::ranges::find(signature.fields, Quantity::group, &Field::quantity);
  const auto group_of = [&](std::size_t s) {
    return c.batch.at(field->name).integer_at(static_cast<std::int64_t>(s));
  };
  std::vector<Sample> samples;
  if (field == signature.fields.end() || c.batch.at(field->name).size() != std::ssize(rewards)) {
    return samples;
  }
  for (std::size_t s = 0; s < rewards.size(); ++s) {
    Sample& sample = samples.emplace_back(Sample{.own = rewards[s]});
    for (std::size_t other = 0; other < rewards.size(); ++other) {
      sample.batch.push_back(rewards[other]);
      if (group_of(other) != group_of(s)) continue;
      sample.group.push_back(rewards[other]);
      if (other != s) sample.others.push_back(rewards[other]);
    }
  }
  return samples;
}

/// What a distance among these rewards is divided by.
double divisor_of(const LossSpec& spec, const std::vector<double>& rewards) {
  if (spec.choice("scale") == "unscaled") return 1.0;
  const auto n = static_cast<double>(rewards.size());
  const double mean = sum_of(rewards) / n;
  double squares = 0.0;
  for (const double reward : rewards) squares += (reward - mean) * (reward - mean);
  const double count = spec.choice("scale") == "std" ? n - 1.0 : n;
  return std::sqrt(squares / count) + spec.number("epsilon");
}

/// Of whom mean and deviation are taken in place of the sample's group.
struct Mistake {
  std::vector<double> Sample::*mean_of, Sample::*deviation_of;
  const char *cause, *because;
};

const Mistake kMistakes[] = {
    {&Sample::batch, &Sample::group, "wrong baseline", "the baseline is that of the whole batch"},
    {&Sample::batch, &Sample::batch, "wrong baseline",
     "baseline and deviation are those of the whole batch"},
    {&Sample::group, &Sample::batch, "wrong deviation", "the deviation is that of the whole batch"},
    {&Sample::group, &Sample::others, "wrong deviation",
     "the deviation leaves out the sample itself"},
};

/// Every number of a sample that is not alone is what others make of it, over what its group does.
Opinion of_others(const Suspect& suspect, Right right) {
  const auto advantage = [&](const LossSpec& spec, const Sample& sample, const Mistake& of) {
    const std::vector<double>& compared = sample.*of.mean_of;
    const double baseline =
        right(sum_of(compared), sample.own, static_cast<double>(compared.size()));
    return (sample.own - baseline) / divisor_of(spec, sample.*of.deviation_of);
  };
  constexpr Mistake kNone = {&Sample::group, &Sample::group, "", ""};
  for (const std::int64_t members : {3, 2}) {  // one is left then, or groups are even
    const auto grouped = suspect.read_if_made(in_groups_of(suspect, members));
    if (!is_wrong(grouped) || !grouped->finite()) continue;
    for (const Mistake& mistake : kMistakes) {
      const auto is_it = [&](const Reading& reading) {
        const LossSpec& spec = reading.given().spec;
        const auto samples = samples_of(suspect.signature(), reading.given());
        if (samples.empty()) return false;
        RowFactors factors = row_factors(reading);
        std::erase_if(factors,
                      [&](const auto& each) { return samples[each.first].others.empty(); });
        // Where nothing is divided any deviation is the right one.
        const bool another =
            std::ranges::any_of(factors, [](const auto& each) { return !each.second.is(1.0); });
        return another && factors.size() >= kFewest &&
               std::ranges::all_of(factors, [&](const auto& each) {
                 const Sample& sample = samples[each.first];
                 return each.second.is(advantage(spec, sample, mistake) /
                                       advantage(spec, sample, kNone));
               });
      };
      if (suspect.fits(*grouped, is_it)) return Diagnosis{mistake.cause, 0.95, mistake.because};
    }
  }
  return std::nullopt;
}

}  // namespace

Opinion probe_baseline(Suspect& suspect) {
  const LossSpec& spec = suspect.given().spec;
  const Right right = asked_baseline(spec);
  if (!right) return std::nullopt;
  if (auto opinion = of_another_count(suspect, right)) return opinion;
  return spec.find("scale") && spec.find("epsilon") ? of_others(suspect, right) : std::nullopt;
}

}  // namespace lossgate::properties
