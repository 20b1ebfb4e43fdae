// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <nlohmann/json.hpp>

#include "ci/evidence/subjects.h"
#include "ci/selection.h"
#include "impl/catalog.h"
#include "properties/filtered.h"

/// Whether a verdict depends on who is asked first, double or long double.
namespace lossgate::ci::evidence {
namespace {

using nlohmann::json;
using properties::Outcome;

/// Those that compare with the reference, or ask it what must be finite.
std::vector<const properties::Property*> compared_properties() {
  std::vector<const properties::Property*> asked;
  for (const char* name :
       {"finite_forward", "finite_backward", "reference_agreement", "split_invariance"}) {
    asked.push_back(properties::find_property(name));
  }
  return asked;
}

/// All that is said of a case but the worst ratio, of which the filter gives an upper estimate.
bool same(const Outcome& a, const Outcome& b) {
  const bool same_counts = a.compared == b.compared && a.no_digit == b.no_digit;
  const bool close =
      a.worst_ratio >= b.worst_ratio && a.worst_ratio <= b.worst_ratio * (1.0 + 0x1p-12) + 0x1p-12;
  if (a.verdict != b.verdict || a.reason != b.reason || !same_counts || !close) return false;
  if (!a.violation || !b.violation) return a.violation.has_value() == b.violation.has_value();
  return a.violation->place.output == b.violation->place.output &&
         a.violation->place.index == b.violation->place.index &&
         a.violation->error_ratio == b.violation->error_ratio &&
         a.violation->cause == b.violation->cause;
}

struct Counted {
  std::int64_t cases = 0, verdicts = 0, held = 0, decided = 0, different = 0;
  std::map<std::string, std::int64_t> by_verdict;
  std::vector<std::string> differences;  ///< the first few

  void add(const reference::Loss& loss, const impl::Implementation& asked, const Case& c,
           const std::string& label) {
    static const auto properties = compared_properties();
    properties::CaseStudy fast(loss, c), slow(loss, c);
    slow.filtered = false;
    properties::Evaluation one(fast, asked), other(slow, asked);
    const auto first = check_all(one, properties, false),
               second = check_all(other, properties, false);
    ++cases;
    for (std::size_t i = 0; i < first.size(); ++i) {
      ++verdicts;
      ++by_verdict[std::string(name(second[i].verdict))];
      if (same(first[i], second[i])) continue;
      ++different;
      if (differences.size() < 5) differences.push_back(label + " " + properties[i]->name);
    }
    const Outcome& agreement = second[2];
    if (agreement.violation || agreement.compared == 0) return;
    ++held;
    decided += properties::compare_filtered(
                   {.study = fast, .arithmetic = one.arithmetic(), .actual = one.actual()})
                   .has_value();
  }
};

/// Cases [begin, end) of the loss in that dtype, each of another implementation, the wrong ones
/// too.
json compare_verdicts(const reference::Loss& loss, Dtype dtype, std::uint64_t seed,
                      std::int64_t begin, std::int64_t end) {
  std::vector<const impl::Implementation*> all;
  for (const impl::Implementation& implementation : impl::catalog()) {
    if (implementation.loss == loss.signature.id) all.push_back(&implementation);
  }
  Counted counted;
  for (std::int64_t i = begin; i < end; ++i) {
    const auto profile = i % 2 == 0 ? fuzz::Profile::benign : fuzz::Profile::hostile;
    const Case c = drawn(loss, dtype, profile, seed, i);
    // Not in step with the profiles, so that each meets every implementation.
    const auto at = static_cast<std::size_t>(i / 2) % all.size();
    if (all[at]->unsupported(c)) continue;
    counted.add(loss, *all[at], c, std::to_string(i) + " " + all[at]->name);
  }
  return {{"loss", loss.signature.id},
          {"dtype", name(dtype)},
          {"cases", counted.cases},
          {"verdicts", counted.verdicts},
          {"held", counted.held},
          {"decided", counted.decided},
          {"different", counted.different},
          {"differences", counted.differences},
          {"by_verdict", counted.by_verdict}};
}

}  // namespace

std::vector<Unit> filter(const Effort& effort) {
  constexpr std::int64_t kEach = 1000;
  const std::int64_t cases = effort.of(1000, 60'000);
  std::vector<Unit> units;
  for (const reference::Loss& loss : reference::catalog()) {
    if (reference::approximators_of(loss).empty()) continue;
    for (const Dtype dtype : dtypes_of(loss.signature)) {
      if (!reference::is_coarse(plain_arithmetic(dtype, ""))) continue;
      for (std::int64_t begin = 0; begin < cases; begin += kEach) {
        units.push_back(
            {loss.signature.id + "/" + std::string(name(dtype)) + "/" + std::to_string(begin),
             [&loss, dtype, seed = effort.seed, begin] {
               return compare_verdicts(loss, dtype, seed, begin, begin + kEach);
             }});
      }
    }
  }
  return units;
}

}  // namespace lossgate::ci::evidence
