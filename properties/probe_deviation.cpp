// SPDX-License-Identifier: Apache-2.0
// What divides a distance from a mean: whether its squares are counted otherwise, or its epsilon
// stands elsewhere.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "properties/agreement.h"
#include "properties/case_facts.h"
#include "properties/probes.h"
#include "properties/valid_numbers.h"

namespace lossgate::properties {
namespace {

/// The quotients that are looked for are farther from 1 than eight times this.
constexpr double kSame = 1.0 / 4096;
/// A distance is known where it is this many times what may be wrong with it.
constexpr double kClear = 8.0;

/// Numbers that were divided by one deviation: of one output all that count.
struct Divided {
  std::vector<ReadEntry> entries = {};
  double mean = 0.0, squares = 0.0;  ///< the formula's, and of its distances from the mean

  double count() const { return static_cast<double>(entries.size()); }
  double deviation(double less) const { return std::sqrt(squares / (count() - less)); }
  /// Whether every distance is this many times the formula's, and one of them is known.
  bool by(double factor) const {
    const auto slack = [&](const ReadEntry& e) {
      return (1.0 + factor) * e.accepted + kSame * std::fabs(wanted(e, factor));
    };
    return std::ranges::all_of(entries,
                               [&](const ReadEntry& e) {
                                 const double off = e.actual - (mean + wanted(e, factor));
                                 return std::fabs(off) <= slack(e);
                               }) &&
           std::ranges::any_of(entries, [&](const ReadEntry& e) {
             return kClear * slack(e) <= std::fabs(wanted(e, factor));
           });
  }

 private:
  double wanted(const ReadEntry& e, double factor) const { return factor * (e.expected - mean); }
};

bool is_another(double factor) { return std::fabs(factor - 1.0) > 8.0 * kSame; }

/// The output that is wrong, if one is.
std::optional<std::size_t> wrong_output(const Reading& reading) {
  const auto wrong = std::ranges::find_if(reading.entries(), &ReadEntry::wrong);
  return wrong == reading.entries().end() ? std::nullopt : std::optional(wrong->output);
}

/// Empty where one of the numbers is not known, or there is no such output.
Divided divided(const Reading& reading, std::optional<std::size_t> of) {
  Divided result;
  if (!of) return result;
  const OutputInfo& output = reading.outputs()[*of];
  const auto counts = [&](std::int64_t i) { return place_of(reading.study(), output, i).valid; };
  for (const ReadEntry& e : reading.entries()) {
    if (e.output == *of && counts(e.index)) result.entries.push_back(e);
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

/// Plain numbers, all in one group, changed: each by where it stands and what it is.
template <class Change>
std::optional<Case> in_one_group(const Suspect& suspect, Change&& change) {
  auto c = suspect.plain_case({.padding = false});
  if (!c) return std::nullopt;
  for (const Field& field : suspect.signature().fields) {
    const bool group = field.quantity == Quantity::group;
    const bool number = field.quantity == Quantity::reward || field.quantity == Quantity::value;
    if (!group && !number) continue;
    Tensor& tensor = c->batch.at(field.name);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      tensor.set(i, group ? 0.0 : change(i, tensor.at(i)));
    }
  }
  return c;
}

std::optional<Case> of_size(const Suspect& suspect, double size) {
  return in_one_group(suspect, [=](std::int64_t, double x) { return size * x; });
}

/// Distances over sqrt(variance + epsilon), the variance with one less for a divisor.
bool has_other_count(const Reading& reading) {
  const Divided it = divided(reading, wrong_output(reading));
  if (it.count() < 2.0) return false;
  const double own = std::pow(it.deviation(1.0), 2.0);  // of variance + epsilon that is variance
  const double other = own * (it.count() - 1.0) / it.count();
  const double factor = 1.0 / std::sqrt(other + std::max(1.0 - own, 0.0));
  return is_another(factor) && it.by(factor);
}

/// What a distance may be divided by.
using Divisor = double (*)(double deviation, double added);

double beside_root(double deviation, double added) { return deviation + added; }
double within_root(double deviation, double added) {
  return std::sqrt(deviation * deviation + added);
}
double least_root(double deviation, double added) { return std::max(deviation, added); }
double least_variance(double deviation, double added) {
  return std::max(deviation, std::sqrt(added));
}

struct OtherDivisor {
  Divisor divisor;
  const char* says;
};

/// Of groups epsilon is added to the deviation, else to its square.
const OtherDivisor kOfGroups[] = {
    {within_root, "epsilon is added to the variance where the formula adds it to the root"},
    {least_root, "epsilon is a floor of the deviation where the formula adds it"},
    {least_variance, "epsilon is a floor of the variance where the formula adds it to the root"}};
const OtherDivisor kOfAll[] = {
    {beside_root, "epsilon is added to the root where the formula adds it to the variance"},
    {least_root, "epsilon is a floor of the root where the formula adds it to the variance"},
    {least_variance, "epsilon is a floor of the variance where the formula adds it"}};

/// The deviation of numbers that the formula divided, from what came of it.
double deviation_of(const Divided& it, const LossSpec& spec, bool groups) {
  const double added = spec.number("epsilon");
  if (!groups) {
    const double own = std::pow(it.deviation(1.0), 2.0);  // of variance + epsilon
    return std::sqrt(added * own / (1.0 - own));
  }
  double own = it.deviation(spec.choice("scale") == "std" ? 1.0 : 0.0);  // of deviation + epsilon
  if (spec.choice("baseline") == "leave_one_out") own *= (it.count() - 1.0) / it.count();
  return added * own / (1.0 - own);
}

/// The case with the other word for how many squares of a group count.
Case of_other_count(Case c) {
  const bool unbiased = c.spec.choice("scale") == "std";
  c.spec.set("scale", std::string(unbiased ? "population_std" : "std"));
  return c;
}

std::string says_other_count(const LossSpec& spec) {
  return spec.choice("scale") == "std" ? "its squares are divided by n where the formula has n - 1"
                                       : "its squares are divided by n - 1 where the formula has n";
}

/// Of groups an option says how many squares count. Where callers fix it there is none to misread,
/// and the other word for it is another count.
Opinion count_of_group(Suspect& suspect) {
  const Option* scale = suspect.signature().find_option("scale");
  const auto& plain = suspect.plain();
  if (!scale || scale->choices.size() != 1 || !is_wrong(plain) || !plain->finite()) {
    return std::nullopt;
  }
  const auto is_it = [](const Reading& reading) {
    return reading.answers(of_other_count(reading.given()));
  };
  if (!suspect.fits(*plain, is_it)) return std::nullopt;
  return Diagnosis{"wrong deviation", 0.95, says_other_count(plain->given().spec)};
}

/// Numbers about as large as the epsilon, and as its root, show where it stands and what it does:
/// with one of them alone one divisor looks like another.
Opinion place_of_epsilon(const Suspect& suspect, bool groups) {
  const LossSpec& spec = suspect.given().spec;
  const double added = spec.number("epsilon");
  std::vector<Reading> readings;
  std::optional<std::size_t> wrong;
  for (const double size : {added, 3.0 * added, std::sqrt(added), 3.0 * std::sqrt(added)}) {
    auto small = suspect.read_if_made(of_size(suspect, size));
    if (!small || !small->finite()) return std::nullopt;
    if (!wrong) wrong = wrong_output(*small);
    readings.push_back(std::move(*small));
  }
  const Divisor own = groups ? beside_root : within_root;
  for (const auto& [divisor, says] : groups ? kOfGroups : kOfAll) {
    const auto is_it = [&](const Reading& reading) {
      const Divided it = divided(reading, wrong);
      if (it.count() < 2.0) return false;
      const double deviation = deviation_of(it, spec, groups);
      return it.by(own(deviation, added) / divisor(deviation, added));
    };
    if (std::ranges::all_of(readings, is_it)) return Diagnosis{"wrong deviation", 0.95, says};
  }
  return std::nullopt;
}

/// The case with every number that counts moved, no two of them equally far.
Case with_numbers_apart(const LossSignature& signature, Case c) {
  change_where_valid(
      signature, c, field_of(signature, Quantity::reward)->name,
      [](std::int64_t i, double x) { return x + 0.25 + static_cast<double>(i) / 64.0; });
  return c;
}

/// Whether there is a wrong answer to each of the cases, a number, and as is asked.
template <class Fit>
bool all_wrong(const Suspect& suspect, std::initializer_list<std::optional<Case>> cases,
               Fit&& fit) {
  return std::ranges::all_of(cases, [&](const std::optional<Case>& c) {
    const auto reading = suspect.read_if_made(c);
    return is_wrong(reading) && reading->finite() && fit(*reading);
  });
}

/// Rewards of 0 and 1 and numbers that are all the same have short cuts of their own: what is right
/// of plain numbers, and of the given ones once they are others.
Opinion of_usual_rewards(Suspect& suspect, bool groups) {
  const LossSignature& signature = suspect.signature();
  const auto is_number = [](const Field& field) {
    return field.role != Role::mask && field.role != Role::group;
  };
  const bool of_rewards = field_of(signature, Quantity::reward) &&
                          std::ranges::count_if(signature.fields, is_number) == 1;
  if (!of_rewards || !is_right(suspect.plain())) return std::nullopt;
  const auto& given = suspect.as_given();
  const auto apart = suspect.read_if_made(with_numbers_apart(signature, suspect.given()));
  if (!given || (is_wrong(given) && !is_right(apart))) return std::nullopt;
  const auto passed = [&](int which) {  // whose bits are who gets 1
    return in_one_group(suspect, [=](std::int64_t i, double) { return (which >> (i % 4)) & 1; });
  };
  const auto is_other_count = [](const Reading& reading) {
    return reading.answers(of_other_count(reading.given()));
  };
  if (groups &&
      all_wrong(suspect, {passed(0b0001), passed(0b0110), passed(0b1011)}, is_other_count)) {
    return Diagnosis{"wrong deviation", is_wrong(given) ? 0.95 : 0.8,
                     "of rewards that are 0 or 1, " + says_other_count(suspect.given().spec)};
  }
  // No rounding: their squares have few digits.
  const auto alike = [&](double number) {
    return in_one_group(suspect, [=](std::int64_t, double) { return number; });
  };
  if (all_wrong(suspect, {alike(1.0), alike(0.75)}, [](const Reading&) { return true; })) {
    return Diagnosis{"wrong deviation", is_wrong(given) ? 0.9 : 0.8,
                     "wrong where numbers are all the same, whose deviation is 0, and right where "
                     "they are not"};
  }
  return std::nullopt;
}

}  // namespace

Opinion probe_deviation(Suspect& suspect) {
  const LossSpec& spec = suspect.given().spec;
  const bool groups = field_of(suspect.signature(), Quantity::group);
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
  if (auto opinion = place_of_epsilon(suspect, groups)) return opinion;
  return of_usual_rewards(suspect, groups);
}

}  // namespace lossgate::properties
