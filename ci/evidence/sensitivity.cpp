// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ci/evidence/pushed.h"
#include "ci/evidence/tenfold.h"
#include "fuzz/hash.h"

/// The smallest fault that is noticed, beside the smallest that the bounds imply.
namespace lossgate::ci::evidence {
namespace {

using nlohmann::json;

struct Kinds {
  const char* name;
  Pushed::Fault place;
};

constexpr Kinds kFaults[] = {{"one gradient entry", &Pushed::gradient_entry},
                             {"one token's term in the loss", &Pushed::token_term},
                             {"the loss", &Pushed::loss},
                             {"the count that divides", &Pushed::count},
                             {"one token's weight", &Pushed::token_weight}};

/// In units of the smallest fault that the bounds imply: where each is noticed. Results are numbers
/// of their format, of which a sound one may lie half a step to one side of the truth and the first
/// that is not accepted one and a half to the other.
constexpr double kBeyond = 3.0;

/// Sizes from 2^-60 to 2^4 are tried, halved on a logarithmic scale down to 1/64 of a power of two.
constexpr double kSmallest = -60.0, kLargest = 4.0, kStep = 1.0 / 64.0;

/// The exponent of the smallest fault that is noticed; above kLargest where none is.
double smallest_noticed(const Pushed& pushed, const std::vector<Push>& pushes) {
  if (!pushed.noticed(pushes, std::exp2(kLargest))) return kLargest + 1.0;
  double unseen = kSmallest, seen = kLargest;
  while (seen - unseen > kStep) {
    const double middle = (seen + unseen) / 2.0;
    (pushed.noticed(pushes, std::exp2(middle)) ? seen : unseen) = middle;
  }
  return seen;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

/// All that one kind of fault showed.
struct Found {
  std::int64_t without_digit = 0, missed = 0;
  std::int64_t beyond = 0, beyond_tenfold = 0;   ///< noticed, of those of kBeyond
  std::vector<double> noticed, implied, ratios;  ///< sizes, and of those of a case the quotient

  /// `wide` is the same answer, judged with errors ten times as large.
  void add(const Pushed& pushed, const Pushed& wide, const std::vector<Push>& pushes) {
    const double least = pushed.implied(pushes);
    if (!(least < 1.0)) {
      ++without_digit;
      return;
    }
    beyond += pushed.noticed(pushes, kBeyond * least);
    beyond_tenfold += wide.noticed(pushes, kBeyond * least);
    const double exponent = smallest_noticed(pushed, pushes);
    if (exponent > kLargest) {
      ++missed;
      return;
    }
    noticed.push_back(std::exp2(exponent));
    implied.push_back(least);
    ratios.push_back(noticed.back() / least);
  }

  json text() const {
    json row = {{"faults", noticed.size() + static_cast<std::size_t>(missed)},
                {"missed", missed},
                {"beyond", {{"size", kBeyond}, {"noticed", beyond}, {"tenfold", beyond_tenfold}}},
                {"without_digit", without_digit}};
    if (noticed.empty()) return row;
    row["smallest_noticed"] = quantile(noticed, 0.0);
    row["smallest_implied"] = quantile(implied, 0.0);
    row["median_noticed"] = quantile(noticed, 0.5);
    row["ratio"] = {{"median", quantile(ratios, 0.5)},
                    {"p95", quantile(ratios, 0.95)},
                    {"largest", quantile(ratios, 1.0)}};
    return row;
  }
};

json measure(const Sound& sound, const Effort& effort) {
  const impl::Implementation erring = with_tenfold_errors(*sound.implementation);
  const Sound wide{sound.loss, &erring, sound.dtype};
  std::array<Found, std::size(kFaults)> found;
  std::int64_t asked = 0;
  const std::int64_t cases = effort.of(60, 4000);
  for (std::int64_t i = 0; i < cases; ++i) {
    const auto profile = i % 2 == 0 ? fuzz::Profile::benign : fuzz::Profile::hostile;
    const Case c = drawn(*sound.loss, sound.dtype, profile, effort.seed, i);
    const Pushed pushed(sound, c), widely(wide, c);
    if (!pushed.usable() || !widely.usable()) continue;
    ++asked;
    for (std::size_t f = 0; f < found.size(); ++f) {
      fuzz::Choices choices(effort.seed ^ fuzz::mix(static_cast<std::uint64_t>(i)));
      std::vector<Push> pushes = (pushed.*kFaults[f].place)(choices);
      if (pushes.empty()) continue;
      // A sound answer lies to one side of the truth: a fault may lead past it or away from it.
      for (const double turn : {1.0, -1.0}) {
        for (Push& push : pushes) push.amount *= turn;
        found[f].add(pushed, widely, pushes);
      }
    }
  }
  json faults = json::object();
  for (std::size_t f = 0; f < found.size(); ++f) faults[kFaults[f].name] = found[f].text();
  return {{"loss", sound.loss->signature.id},
          {"dtype", name(sound.dtype)},
          {"implementation", sound.implementation->name},
          {"cases", asked},
          {"faults", faults}};
}

}  // namespace

std::vector<Unit> sensitivity(const Effort& effort) {
  std::vector<Unit> units;
  for (const Sound& sound : sound_subjects(effort)) {
    if (sound.loss->signature.reductions.empty()) continue;
    units.push_back({sound.name(), [=] { return measure(sound, effort); }});
  }
  return units;
}

}  // namespace lossgate::ci::evidence
