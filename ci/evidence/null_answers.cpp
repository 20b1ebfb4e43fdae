// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "ci/evidence/null_answer.h"
#include "ci/evidence/subjects.h"
#include "corpora/case_id.h"

namespace lossgate::ci::evidence {
namespace {

using nlohmann::json;
using properties::CaseStudy;
using properties::Evaluation;
using properties::Outcome;
using properties::Verdict;

/// What became of one null answer, case by case.
struct Count {
  std::int64_t cases = 0, violated = 0, right = 0, refused = 0;
  std::map<std::string, std::int64_t> unseen;  ///< wrong and not violated: by what the verdict was
  json caught = nullptr;                       ///< by the first finding that makes a gate red
  std::string first_unseen;                    ///< a case that held though the answer was another
};

std::string verdict_text(const Outcome& outcome) {
  return outcome.reason.empty() ? std::string(name(outcome.verdict))
                                : std::string(name(outcome.verdict)) + ": " + outcome.reason;
}

/// Zeros of either sign are one number.
bool same_numbers(const LossResult& a, const LossResult& b) {
  for (std::size_t o = 0; o < a.outputs.size(); ++o) {
    const Tensor &x = a.outputs[o].tensor, &y = b.outputs[o].tensor;
    for (std::int64_t i = 0; i < x.size(); ++i) {
      if (x.at(i) != y.at(i) && !(std::isnan(x.at(i)) && std::isnan(y.at(i)))) return false;
    }
  }
  return true;
}

class Asked {
 public:
  Asked(const Sound& sound, const NullAnswer& answer, const Effort& effort)
      : sound_(sound), effort_(effort), subject_(sound, answer), properties_(asked_properties()) {}

  json run() {
    const std::int64_t cases = effort_.of(100, 2000);
    for (std::int64_t i = 0; i < cases; ++i) {
      const Case c = drawn(*sound_.loss, sound_.dtype, fuzz::Profile::hostile, effort_.seed, i);
      if (sound_.implementation->unsupported(c)) continue;
      CaseStudy study(*sound_.loss, c);
      ask(study, i);
      subject_.remember(sound_.implementation->evaluate(study.signature(), study.whole()));
    }
    return {{"loss", sound_.loss->signature.id},
            {"dtype", name(sound_.dtype)},
            {"implementation", sound_.implementation->name},
            {"answer", subject_.answer().name},
            {"cases", count_.cases},
            {"accepted", count_.caught.is_null() && count_.right + count_.refused < count_.cases},
            {"caught", count_.caught},
            {"violated", count_.violated},
            {"right", count_.right},
            {"refused", count_.refused},
            {"unseen", count_.unseen},
            {"first_held", count_.first_unseen}};
  }

 private:
  void ask(CaseStudy& study, std::int64_t index) {
    ++count_.cases;
    Evaluation evaluation(study, subject_.implementation());
    const auto outcomes = properties::check_all(evaluation, properties_, true);
    bool seen = false;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (!outcomes[i].violation) continue;
      seen = true;
      if (count_.caught.is_null()) weigh(study, *properties_[i], *outcomes[i].violation, index);
    }
    count_.violated += seen;
    if (!seen) place(study, evaluation, outcomes);
  }

  /// A gate is red at what is not adversarial.
  void weigh(CaseStudy& study, const properties::Property& property,
             const properties::Violation& violation, std::int64_t index) {
    const auto finding = properties::make_finding(study, subject_.implementation(), property,
                                                  violation, /*benign=*/false);
    if (finding.grade == properties::Grade::adversarial) return;
    count_.caught = {{"case", index + 1}, {"property", property.name}, {"cause", violation.cause}};
  }

  void place(CaseStudy& study, Evaluation& evaluation, const std::vector<Outcome>& outcomes) {
    if (study.refusal()) {
      ++count_.refused;
      return;
    }
    const LossResult truth = sound_.implementation->evaluate(study.signature(), study.whole());
    if (same_numbers(truth, evaluation.actual())) {
      ++count_.right;
      return;
    }
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (properties_[i]->name != "reference_agreement") continue;
      const std::string verdict = verdict_text(outcomes[i]);
      ++count_.unseen[verdict];
      if (verdict == "held" && count_.first_unseen.empty()) {
        count_.first_unseen = corpora::case_id(study.whole());
      }
    }
  }

  const Sound& sound_;
  const Effort& effort_;
  NullSubject subject_;
  std::vector<const properties::Property*> properties_;
  Count count_;
};

}  // namespace

json count_null_answer(const Sound& sound, const NullAnswer& answer, const Effort& effort) {
  return Asked(sound, answer, effort).run();
}

std::vector<Unit> null_answers(const Effort& effort) {
  std::vector<Unit> units;
  for (const Sound& sound : sound_subjects(effort)) {
    for (const NullAnswer& answer : all_null_answers()) {
      if (!answer.changes(sound.loss->signature)) continue;
      units.push_back({sound.name() + "/" + answer.name,
                       [=] { return count_null_answer(sound, answer, effort); }});
    }
  }
  return units;
}

}  // namespace lossgate::ci::evidence
