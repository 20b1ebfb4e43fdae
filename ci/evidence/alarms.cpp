// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "ci/evidence/subjects.h"
#include "ci/selection.h"
#include "impl/catalog.h"
#include "properties/sibling.h"

/// Whether a sound implementation is accused of anything, in hostile cases on which nothing was
/// calibrated (rule F2).
namespace lossgate::ci::evidence {
namespace {

using impl::Implementation;
using nlohmann::json;
using properties::CaseStudy;
using properties::Evaluation;

/// The sound implementations that compute the case.
std::vector<const Implementation*> able(const reference::Loss& loss, const Case& c) {
  std::vector<const Implementation*> found;
  for (const Implementation& implementation : impl::catalog()) {
    if (implementation.loss != loss.signature.id || implementation.fault) continue;
    if (!implementation.unsupported(c)) found.push_back(&implementation);
  }
  return found;
}

struct Counted {
  std::int64_t cases = 0;
  std::map<std::string, std::int64_t> asked;  ///< cases of each implementation
  std::map<std::string, std::int64_t> verdicts;
  std::vector<std::string> alarms;  ///< who was accused of what, and the case's index
  double nearest = 0.0;             ///< the largest ratio of an error to the allowed one
  std::string nearest_of;           ///< whose, and the case's index

  void add(const reference::Loss& loss, const Case& c, std::int64_t index) {
    static const auto properties = asked_properties();
    const auto all = able(loss, c);
    if (all.empty()) return;
    const auto turn = static_cast<std::size_t>(index) % all.size();
    const Implementation& subject = *all[turn];
    CaseStudy study(loss, c);
    if (all.size() > 1) properties::give_sibling(study, *all[(turn + 1) % all.size()]);
    Evaluation evaluation(study, subject);
    const auto outcomes = properties::check_all(evaluation, properties, true);
    ++cases;
    ++asked[subject.name];
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      ++verdicts[std::string(name(outcomes[i].verdict))];
      // Other properties count in their ratios what is exempt, such as either side of a kink.
      if (properties[i]->name == "reference_agreement" && outcomes[i].worst_ratio > nearest) {
        // No JSON has an infinity.
        nearest = std::min(outcomes[i].worst_ratio, std::numeric_limits<double>::max());
        nearest_of = subject.name + ", case " + std::to_string(index);
      }
      if (!outcomes[i].violation) continue;
      alarms.push_back(subject.name + ": " + properties[i]->name + ", case " +
                       std::to_string(index));
    }
  }
};

/// Cases [begin, end) of the stream that a gate with that seed draws, each of another sound
/// implementation, beside the next one.
json ask(const reference::Loss& loss, Dtype dtype, std::uint64_t seed, std::int64_t begin,
         std::int64_t end) {
  Counted counted;
  for (std::int64_t i = begin; i < end; ++i) {
    counted.add(loss, drawn(loss, dtype, fuzz::Profile::hostile, seed, i), i);
  }
  return {{"loss", loss.signature.id},    {"dtype", name(dtype)},
          {"cases", counted.cases},       {"asked", counted.asked},
          {"verdicts", counted.verdicts}, {"alarms", counted.alarms},
          {"nearest", counted.nearest},   {"nearest_of", counted.nearest_of}};
}

}  // namespace

std::vector<Unit> alarms(const Effort& effort) {
  const std::int64_t each = effort.of(100, 500);
  const std::int64_t cases = effort.cases > 0 ? effort.cases : effort.of(200, 20'000);
  Filters filters;
  filters.losses = effort.losses;
  const Selection selection = select(filters);
  std::vector<Unit> units;
  // Of a run that is stopped every class has as many.
  for (std::int64_t begin = 0; begin < cases; begin += each) {
    for (const reference::Loss* loss : selection.losses) {
      for (const Dtype dtype : dtypes_of(loss->signature)) {
        units.push_back(
            {loss->signature.id + "/" + std::string(name(dtype)) + "/" + std::to_string(begin),
             [loss, dtype, seed = effort.seed, begin, end = begin + each] {
               return ask(*loss, dtype, seed, begin, end);
             }});
      }
    }
  }
  return units;
}

}  // namespace lossgate::ci::evidence
