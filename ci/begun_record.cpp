// SPDX-License-Identifier: Apache-2.0
#include "ci/begun_record.h"

#include <set>

#include "ci/environment.h"
#include "ci/never_told.h"
#include "ci/tasks.h"

namespace lossgate::ci {
namespace {

report::Subject subject_of(const impl::Implementation& implementation) {
  report::Subject subject;
  subject.loss = implementation.loss;
  subject.name = implementation.name;
  subject.device = implementation.device;
  subject.file = implementation.source.file;
  subject.line = implementation.source.line;
  if (implementation.fault) {
    subject.twin = implementation.fault->twin;
    subject.thread = implementation.fault->thread;
    subject.cause = implementation.fault->cause;
    subject.trigger = implementation.fault->trigger;
    subject.killers = implementation.fault->killers;
  }
  return subject;
}

}  // namespace

report::RunRecord begun_record(const Plan& plan, properties::Grade fail_on) {
  const PlanOptions& options = plan.options();
  report::RunRecord record;
  record.version = version();
  record.commit = commit();
  const Filters& filters = options.filters;
  record.environment = read_environment(filters.subjects.empty());
  std::vector<std::string> corpora;
  for (const std::string& folder : options.corpora) corpora.push_back(corpus_name(folder));
  record.request = {.profile = std::string(name(options.profile)),
                    .seed = options.seed,
                    .cases = options.cases,
                    .losses = filters.losses,
                    .implementations = filters.implementations,
                    .properties = filters.properties,
                    .dtypes = filters.dtypes,
                    .hardening = filters.hardening,
                    .corpora = corpora,
                    .fail_on = std::string(name(fail_on)),
                    .causes = options.causes};
  record.cases_planned = plan.size();
  record.unfit = plan.unfit();
  for (const properties::Property* property : plan.selection().properties) {
    record.properties.push_back(
        {property->name, std::string(name(property->tier)), property->statement});
  }
  for (const report::PropertyEntry& entry : run_properties()) record.properties.push_back(entry);
  std::set<std::string> listed;  // several brought subjects may have one loss
  for (const reference::Loss* loss : plan.selection().losses) {
    if (!listed.insert(loss->signature.id).second) continue;
    for (const impl::Implementation* implementation : plan.selection().implementations) {
      if (implementation->loss != loss->signature.id) continue;
      record.subjects.push_back(subject_of(*implementation));
      for (const auto& brought : plan.selection().brought) {
        if (brought->implementation.name != implementation->name) continue;
        record.subjects.back().never_told = never_told(*brought);
        record.subjects.back().taken_as = taken_as(*brought);
      }
    }
  }
  return record;
}

}  // namespace lossgate::ci
