// SPDX-License-Identifier: Apache-2.0
// What divides a distance from a mean: whether its squares are counted otherwise, or its epsilon
// stands elsewhere.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "properties/agreement.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// The quotients that are looked for are farther from 1 than eight times this.
constexpr double kSame = 1.0 / 4096;

/// Numbers that were divided by one deviation: of the output that is wrong, all that count.
struct Divided {
  std::vector<ReadEntry> entries = {};
  double mean = 0.0, squares = 0.0;  ///< the formula's, and of its distances from the mean

  double count() const { return static_cast<double>(entries.size()); }
  double deviation(double less) const { return std::sqrt(squares / (count() - less)); }
  /// Whether every distance is this many times the formula's.
  bool by(double factor) const {
    return std::fabs(factor - 1.0) > 8.0 * kSame &&
           std::ranges::all_of(entries, [&](const ReadEntry& e) {
             const double wanted = factor * (e.expected - mean);
             const double slack = (1.0 + factor) * e.accepted + kSame * std::fabs(wanted);
             return std::fabs(e.actual - (mean + wanted)) <= slack;
           });
  }
};

/// Empty where one of the numbers is not known.
Divided divided(const Reading& reading) {
  Divided result;
  const auto wrong = std::ranges::find_if(reading.entries(), &ReadEntry::wrong);
  if (wrong == reading.entries().end()) return result;
  const OutputInfo& output = reading.outputs()[wrong->output];
  const auto counts = [&](std::int64_t i) { return place_of(reading.study(), output, i).valid; };
  for (const ReadEntry& e : reading.entries()) {
    if (e.output == wrong->output && counts(e.index)) result.entries.push_back(e);
  }
  std::int64_t all = 0;
  for (std::int64_t i = 0; i < element_count(output.extents); ++i) all += counts(i);
  if (all != std::ssize(result.entries)) return {};
  for (const ReadEntry& e : result.entries) result.mean += e.expected / result.count();
  for (const ReadEntry& e : result.entries) {
    result.squares += (e.expected - result.mean) * (e.expected - result.mean);
  }
  return result;
}

bool has_groups(const LossSignature& signature) {
  return std::ranges::find(signature.fields, Quantity::group, &Field::quantity) !=
         signature.fields.end();
}

/// Plain numbers, all in one group, times `size`.
std::optional<Case> of_size(const Suspect& suspect, double size) {
  auto c = suspect.plain_case({.padding = false});
  if (!c) return std::nullopt;
  for (const Field& field : suspect.signature().fields) {
    const bool group = field.quantity == Quantity::group;
    const bool number = field.quantity == Quantity::reward || field.quantity == Quantity::value;
    if (!group && !number) continue;
    Tensor& tensor = c->batch.at(field.name);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      tensor.set(i, group ? 0.0 : round_to(tensor.dtype, size * tensor.at(i)));
    }
  }
  return c;
}

/// Distances over sqrt(variance + epsilon), the variance with one less for a divisor.
bool has_other_count(const Reading& reading) {
  const Divided it = divided(reading);
  if (it.count() < 2.0) return false;
  const double own = std::pow(it.deviation(1.0), 2.0);  // of variance + epsilon that is variance
  const double other = own * (it.count() - 1.0) / it.count();
  return it.by(1.0 / std::sqrt(other + std::max(1.0 - own, 0.0)));
}

/// The same over deviation + epsilon.
bool has_epsilon_outside(const Reading& reading) {
  const Divided it = divided(reading);
  if (it.count() < 2.0) return false;
  const double own = it.deviation(1.0), added = reading.given().spec.number("epsilon");
  return it.by(1.0 / (own + std::sqrt(added * std::max(1.0 - own * own, 0.0))));
}

/// Distances over deviation + epsilon, over sqrt(variance + epsilon).
bool has_epsilon_inside(const Reading& reading) {
  const Divided it = divided(reading);
  if (it.count() < 2.0) return false;
  const LossSpec& spec = reading.given().spec;
  double own = it.deviation(spec.choice("scale") == "std" ? 1.0 : 0.0);
  if (spec.choice("baseline") == "leave_one_out") own *= (it.count() - 1.0) / it.count();
  const double rest = 1.0 - own;  // of deviation + epsilon that is epsilon
  return it.by(1.0 / std::sqrt(own * own + rest * rest / spec.number("epsilon")));
}

/// Of groups an option says how many squares count. Where callers fix it there is none to misread,
/// and the other word for it is another count.
Opinion count_of_group(Suspect& suspect) {
  const Option* scale = suspect.signature().find_option("scale");
  const auto& plain = suspect.plain();
  if (!scale || scale->choices.size() != 1 || !is_wrong(plain) || !plain->finite()) {
    return std::nullopt;
  }
  const bool unbiased = scale->choices.front() == "std";
  const auto is_it = [&](const Reading& reading) {
    Case c = reading.given();
    c.spec.set("scale", std::string(unbiased ? "population_std" : "std"));
    return reading.answers(c);
  };
  if (!suspect.fits(*plain, is_it)) return std::nullopt;
  return Diagnosis{"wrong deviation", 0.95,
                   unbiased ? "its squares are divided by n where the formula has n - 1"
                            : "its squares are divided by n - 1 where the formula has n"};
}

}  // namespace

Opinion probe_deviation(Suspect& suspect) {
  const LossSpec& spec = suspect.given().spec;
  const bool groups = has_groups(suspect.signature());
  if (!suspect.signature().reductions.empty() || !spec.find("epsilon")) return std::nullopt;
  if (groups && (!spec.find("scale") || spec.choice("scale") == "unscaled")) return std::nullopt;
  if (spec.find("whiten") && spec.number("whiten") == 0.0) return std::nullopt;
  if (groups) {
    if (auto opinion = count_of_group(suspect)) return opinion;
  } else {
    const auto plain = suspect.read_if_made(of_size(suspect, 1.0));
    if (is_wrong(plain) && plain->finite() && suspect.fits(*plain, has_other_count)) {
      return Diagnosis{"wrong deviation", 0.95,
                       "its squares are divided by n where the formula has n - 1"};
    }
  }
  // As large as the epsilon's root numbers show where it stands.
  const auto stands = groups ? has_epsilon_inside : has_epsilon_outside;
  for (const double times : {1.0, 3.0}) {
    const double size = times * std::sqrt(spec.number("epsilon"));
    const auto small = suspect.read_if_made(of_size(suspect, size));
    if (!is_wrong(small) || !small->finite() || !stands(*small)) return std::nullopt;
  }
  return Diagnosis{"wrong deviation", 0.95,
                   groups
                       ? "epsilon is added to the variance where the formula adds it to the root"
                       : "epsilon is added to the root where the formula adds it to the variance"};
}

}  // namespace lossgate::properties
