// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "ci/brought.h"
#include "ci/evidence/subjects.h"
#include "ci/variant.h"
#include "impl/external/config.h"

/// Losses that are brought, asked as a gate asks them until the first violation.
namespace lossgate::ci::evidence {
namespace {

using nlohmann::json;
using properties::CaseStudy;
using properties::Evaluation;

/// The violated property, or what ended the call; empty where the case holds.
std::string alarm_of(const Brought& brought, const impl::Implementation& subject, const Case& c) {
  static const auto asked = asked_properties();
  try {
    CaseStudy study(brought.loss, c);
    Evaluation evaluation(study, subject);
    const auto outcomes = properties::check_all(evaluation, asked, true);
    const auto at = std::ranges::find_if(
        outcomes, [](const properties::Outcome& outcome) { return outcome.violation.has_value(); });
    return at == outcomes.end() ? "" : asked[static_cast<std::size_t>(at - outcomes.begin())]->name;
  } catch (const ImplementationThrew& error) {
    return error.property;
  }
}

json ask(const SubjectFile& file, const std::string& name, const Effort& effort) {
  const auto brought = bring(file, {name}).front();
  const impl::Implementation subject = guarded(brought->implementation);
  const auto start = std::chrono::steady_clock::now();
  const auto dtypes = static_cast<std::int64_t>(brought->dtypes.size());
  const std::int64_t most = effort.of(100, 4000);
  std::string alarm;
  std::int64_t cases = 0;
  for (std::int64_t i = 0; i < most && alarm.empty(); ++i) {
    const Dtype dtype = brought->dtypes[static_cast<std::size_t>(i % dtypes)];
    const Case c = drawn(brought->loss, dtype, fuzz::Profile::hostile, effort.seed, i / dtypes);
    if (subject.unsupported(c)) continue;
    ++cases;
    alarm = alarm_of(*brought, subject, c);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return {{"subject", name},
          {"alarm", !alarm.empty()},
          {"why", alarm},
          {"cases", cases},
          {"seconds", elapsed.count()}};
}

}  // namespace

std::vector<Unit> gated(const Effort& effort) {
  if (effort.config.empty()) return {};
  const SubjectFile file = read_subject_file(effort.config);
  std::vector<Unit> units;
  for (const impl::Subject& subject :
       impl::parse_config(file.text, file.name, file.folder, reference::find_signature)) {
    units.push_back(
        {subject.name, [file, name = subject.name, effort] { return ask(file, name, effort); }});
  }
  return units;
}

}  // namespace lossgate::ci::evidence
