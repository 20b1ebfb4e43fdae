// SPDX-License-Identifier: Apache-2.0
#include "ci/nearest_cause.h"

#include <filesystem>
#include <utility>

#include "ci/asked_under.h"
#include "ci/candidates.h"
#include "ci/config_text.h"
#include "ci/errors.h"
#include "ci/variant.h"
#include "impl/external/process.h"
#include "properties/case_study.h"
#include "properties/causes.h"
#include "properties/diagnosis.h"
#include "properties/evaluation.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

/// Cases on which it is wrong of which the cause is looked for: dozens of calls for each.
constexpr int kStudied = 3;

SubjectFile file_of(const IdentifyOptions& options, Recognition nearest, const Hosts& hosts) {
  nearest.subject.reductions = {nearest.likeness.candidate.reduction};
  for (const auto& [option, value] : nearest.likeness.candidate.options) {
    set_value(nearest.subject.options, option, value);
  }
  return {.text = config_text(options, nearest, {}, {}),
          .name = options.out,
          .folder = fs::absolute(options.out).parent_path().string(),
          .hosts = hosts};
}

std::optional<properties::Diagnosis> diagnosed(const Brought& brought) {
  const AskedUnder asked(brought, brought.subject);
  const properties::Property& agreement = *properties::find_property("reference_agreement");
  std::optional<properties::Diagnosis> best;
  int studied = 0;
  for (int i = kHostileTrials; i < kTrials && studied < kStudied; ++i) {
    const Case c = trial_case(asked, brought.dtypes.front(), kTrialSeed, i);
    if (asked.implementation().unsupported(c)) continue;
    properties::CaseStudy study(asked.loss(), c);
    properties::Evaluation evaluation(study, asked.implementation());
    const auto violation = agreement.check(evaluation).violation;
    if (!violation) continue;
    ++studied;
    properties::Diagnosis found =
        properties::diagnose(study, asked.implementation(), agreement, *violation);
    const properties::Cause* cause = properties::find_cause(found.cause);
    const bool tells = cause && !cause->symptom && !found.because.empty();
    if (tells && (!best || found.confidence > best->confidence)) best = std::move(found);
  }
  return best;
}

}  // namespace

std::optional<properties::Diagnosis> cause_of_nearest(const IdentifyOptions& options,
                                                      const Recognition& nearest,
                                                      const Hosts& hosts) {
  try {
    return diagnosed(*bring(file_of(options, nearest, hosts), {}).front());
  } catch (const ImplementationThrew&) {
  } catch (const InputError&) {  // it cannot be declared so
  } catch (const impl::SubjectError&) {
  } catch (const impl::ProcessEnded&) {
  } catch (const impl::ProcessHung&) {
  }
  return std::nullopt;
}

}  // namespace lossgate::ci
