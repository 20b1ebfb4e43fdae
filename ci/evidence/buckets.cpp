// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ci/evidence/subjects.h"
#include "ci/selection.h"
#include "fuzz/minimise.h"
#include "properties/diagnosis.h"
#include "properties/sibling.h"

/// Whether the many failures of one fault are taken for one.
namespace lossgate::ci::evidence {
namespace {

using nlohmann::json;
using properties::CaseStudy;
using properties::Evaluation;

/// Hostile cases for each failure that is wanted: a fault that shows less often gives fewer.
constexpr std::int64_t kPatience = 40;

/// What is spent to make a failing case small.
constexpr fuzz::Effort kEffort = {.tries = 200, .time = std::chrono::seconds(2)};

/// How often failures were given each name.
struct Names {
  std::map<std::string, std::int64_t> fingerprints, causes;

  json text() const { return {{"fingerprints", fingerprints}, {"causes", causes}}; }
};

/// The failures of one implementation that is wrong on purpose, as a campaign would name them.
class Failures {
 public:
  Failures(const impl::Implementation& variant, const Effort& effort)
      : variant_(variant),
        twin_(twin_of(variant)),
        loss_(*reference::find_loss(variant.loss)),
        properties_(asked_properties()),
        seed_(effort.seed),
        wanted_(effort.of(10, 200)) {}

  json run() {
    const std::vector<Dtype> dtypes = dtypes_of(loss_.signature);
    const auto each = static_cast<std::int64_t>(dtypes.size());
    std::int64_t draw = 0;
    for (; failures_ < wanted_ && draw < wanted_ * kPatience; ++draw) {
      const Dtype dtype = dtypes[static_cast<std::size_t>(draw % each)];
      const Case c = drawn(loss_, dtype, fuzz::Profile::hostile, seed_, draw / each);
      if (!variant_.unsupported(c)) ask(c);
    }
    return {{"loss", variant_.loss},          {"variant", variant_.name},
            {"fault", variant_.fault->cause}, {"draws", draw},
            {"failures", failures_},          {"met", met_.text()},
            {"minimal", minimal_.text()}};
  }

 private:
  /// What is seen first, as a gate has its properties in order: as it was met, and made small.
  void ask(const Case& c) {
    const properties::Property* property = seen(c, properties_, met_);
    if (!property) return;
    ++failures_;
    const auto failure = fuzz::Failure::on(loss_, variant_, *property, c);
    seen(failure ? fuzz::minimise(*failure, c, kEffort).c : c, {property}, minimal_);
  }

  /// Counts the first violation of these properties under its names; null where there is none.
  const properties::Property* seen(const Case& c,
                                   const std::vector<const properties::Property*>& properties,
                                   Names& names) {
    CaseStudy study(loss_, c);
    if (twin_) properties::give_sibling(study, *twin_);
    Evaluation evaluation(study, variant_);
    const auto outcomes = properties::check_all(evaluation, properties, true);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const auto& violation = outcomes[i].violation;
      if (!violation) continue;
      const properties::Property& property = *properties[i];
      const auto finding = name_finding(study, variant_, property, *violation, false);
      ++names.fingerprints[finding.fingerprint];
      ++names.causes[properties::diagnose(study, variant_, property, *violation).cause];
      return &property;
    }
    return nullptr;
  }

  const impl::Implementation& variant_;
  const impl::Implementation* twin_;
  const reference::Loss& loss_;
  std::vector<const properties::Property*> properties_;
  std::uint64_t seed_;
  std::int64_t wanted_, failures_ = 0;
  Names met_, minimal_;
};

}  // namespace

std::vector<Unit> buckets(const Effort& effort) {
  return of_each_fault(
      [effort](const impl::Implementation& variant) { return Failures(variant, effort).run(); });
}

}  // namespace lossgate::ci::evidence
