// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "ci/evidence/subjects.h"
#include "ci/findings.h"
#include "ci/selection.h"
#include "ci/simplest.h"
#include "corpora/case_id.h"
#include "impl/catalog.h"
#include "properties/diagnosis.h"
#include "properties/sibling.h"
#include "report/faults.h"

/// Whether the many failures of one fault are taken for one.
namespace lossgate::ci::evidence {
namespace {

using nlohmann::json;
using properties::CaseStudy;
using properties::Evaluation;

/// Hostile cases for each failure that is wanted: a fault that shows less often gives fewer.
constexpr std::int64_t kPatience = 40;

/// The failures of one implementation that is wrong on purpose, named and put together as a
/// campaign does: the first one of each fingerprint is made simple and explained.
class Failures {
 public:
  Failures(const impl::Implementation& variant, const Effort& effort)
      : variant_(variant),
        twin_(impl::twin_of(variant)),
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
      if (!variant_.unsupported(c)) ask(c, draw);
    }
    report::group_by_fault(record_);
    return {{"loss", variant_.loss},
            {"variant", variant_.name},
            {"fault", variant_.fault->cause},
            {"draws", draw},
            {"failures", failures_},
            {"fingerprints", record_.findings.size()},
            {"faults", faults()}};
  }

 private:
  /// The first thing that is seen on the case, as a gate has its properties in order.
  void ask(const Case& c, std::int64_t ordinal) {
    CaseStudy study(loss_, c);
    if (twin_) properties::give_sibling(study, *twin_);
    Evaluation evaluation(study, variant_);
    const auto outcomes = properties::check_all(evaluation, properties_, true);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (!outcomes[i].violation) continue;
      ++failures_;
      return enter(study, *properties_[i], *outcomes[i].violation, ordinal);
    }
  }

  void enter(CaseStudy& study, const properties::Property& property,
             const properties::Violation& violation, std::int64_t ordinal) {
    properties::Finding finding = name_finding(study, variant_, property, violation, false);
    if (!fingerprints_.insert(finding.fingerprint).second) {
      return add_finding(record_, counted(finding, ordinal));
    }
    auto simple = simplest(finding, loss_, variant_, property, study.split(), properties_);
    if (!simple) finding.diagnosis = properties::diagnose(study, variant_, property, violation);
    report::RecordedFinding entry = counted(finding, ordinal);
    entry.case_id = corpora::case_id(simple ? simple->c : study.split());  // it has been looked at
    if (simple) entry.shows = std::move(simple->shows);
    add_finding(record_, std::move(entry));
  }

  /// How many failures each fault has, and what it is called.
  json faults() const {
    std::map<std::string, std::int64_t> failures;
    for (const auto& finding : record_.findings) failures[finding.fault] += finding.count;
    json all = json::array();
    for (const auto& finding : record_.findings) {
      if (finding.fingerprint != finding.fault) continue;
      all.push_back({{"cause", finding.cause}, {"failures", failures[finding.fault]}});
    }
    return all;
  }

  const impl::Implementation& variant_;
  const impl::Implementation* twin_;
  const reference::Loss& loss_;
  std::vector<const properties::Property*> properties_;
  std::uint64_t seed_;
  std::int64_t wanted_, failures_ = 0;
  std::set<std::string> fingerprints_;
  report::RunRecord record_;
};

}  // namespace

std::vector<Unit> buckets(const Effort& effort) {
  return of_each_fault(false, [effort](const impl::Implementation& variant) {
    return Failures(variant, effort).run();
  });
}

}  // namespace lossgate::ci::evidence
