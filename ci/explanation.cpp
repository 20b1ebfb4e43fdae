// SPDX-License-Identifier: Apache-2.0
#include "ci/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ci/candidates.h"
#include "ci/solution.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

Explanation of_told(const Interview& interview, const Candidate& found) {
  Explanation explanation{.candidate = found, .told = {}, .text = {}};
  for (const auto& [name, value] : found.options) {
    const OptionValue* told = find_value(interview.subject.options, name);
    if (!told || *told == value) continue;
    explanation.told.emplace_back(name, value);
    explanation.text += fmt::format("{0}told {1} {2}, it computes what {1} {3} gives",
                                    explanation.text.empty() ? "" : "; ", name,
                                    report::option_text(*told), report::option_text(value));
  }
  return explanation;
}

/// The likest candidates that these answers tell from each other.
std::vector<Likeness> distinct(const Interview& interview, std::size_t most) {
  std::vector<Likeness> kept;
  for (const Likeness& likeness : interview.likenesses) {
    const bool known = std::ranges::any_of(kept, [&](const Likeness& other) {
      return other.candidate.reduction == likeness.candidate.reduction &&
             std::fabs(other.distance - likeness.distance) < 1e-9;
    });
    if (!known && kept.size() < most) kept.push_back(likeness);
  }
  return kept;
}

/// One told option alone, then all options together.
std::optional<Explanation> by_told_options(const Interview& interview) {
  constexpr std::size_t kBeginnings = 16;
  std::vector<std::string> all;
  for (const Option& option : interview.loss->signature.options) all.push_back(option.name);
  const auto search = [&](const Likeness& near, const std::vector<std::string>& options) {
    const Candidate& from = near.candidate;
    return descend(interview, liken(interview, from.options, from.reduction), options);
  };
  for (const Likeness& near : distinct(interview, kBeginnings)) {
    for (const auto& [name, value] : interview.subject.options) {
      const Likeness found = search(near, {name});
      if (!found.whole.empty()) return of_told(interview, found.candidate);
    }
  }
  const Likeness found = search(interview.best(), interview.open(std::move(all)));
  if (found.whole.empty()) return std::nullopt;
  return of_told(interview, found.candidate);
}

std::optional<Explanation> by_reduction(const Interview& interview) {
  if (!interview.greeting.reduction) return std::nullopt;
  for (const Answers& answers : interview.answers) {
    for (const Likeness& near : interview.likenesses) {
      if (near.distance > interview.best().distance) break;
      for (const Reduction reduction : reductions_of(interview.loss->signature)) {
        const Candidate candidate{reduction, near.candidate.options};
        const bool all = std::ranges::all_of(answers.probes, [&](const Probe& probe) {
          return interview.formula(probe, candidate).equal;
        });
        if (!all || reduction == answers.reduction) continue;
        return Explanation{.candidate = candidate,
                           .told = {},
                           .text = fmt::format("told {}, it computes {}", name(answers.reduction),
                                               name(reduction))};
      }
    }
  }
  return std::nullopt;
}

/// A slip in the fields.
struct Slip {
  std::string text, field, other;  ///< without another, a sign
};

std::vector<Slip> slips(const LossSignature& loss) {
  std::vector<Slip> all;
  if (!loss.advantage.empty()) {
    all.push_back({"with the other sign of " + loss.advantage, loss.advantage, {}});
  }
  for (const Field& field : loss.fields) {
    for (const Field& other : loss.fields) {
      const bool alike = field.quantity == other.quantity && field.axes == other.axes &&
                         field.role == other.role && field.role == Role::constant;
      if (!alike || field.name == other.name) continue;
      all.push_back({"with " + other.name + " in place of " + field.name, field.name, other.name});
    }
  }
  return all;
}

std::optional<Explanation> by_slip(const Interview& interview) {
  for (const Slip& slip : slips(interview.loss->signature)) {
    Interview slipped = interview;
    for (Answers& answers : slipped.answers) {
      for (Probe& probe : answers.probes) {
        Tensor& tensor = probe.c.batch.at(slip.field);
        if (!slip.other.empty()) tensor = probe.c.batch.at(slip.other);
        for (std::int64_t i = 0; slip.other.empty() && i < tensor.size(); ++i) {
          tensor.set(i, -tensor.at(i));
        }
      }
    }
    slipped.likenesses = compare(slipped);
    if (!slipped.whole()) continue;
    return Explanation{.candidate = slipped.best().candidate, .told = {}, .text = slip.text};
  }
  return std::nullopt;
}

/// With a detach that is missing, or one too many.
std::optional<Explanation> by_loss_alone(const Interview& interview) {
  if (interview.loss->signature.reductions.empty()) return std::nullopt;
  Interview of_loss = interview;
  for (Answers& answers : of_loss.answers) {
    for (Probe& probe : answers.probes) {
      if (probe.answer) probe.answer->resize(1);  // the loss comes first
    }
  }
  of_loss.likenesses = compare(of_loss);
  if (!of_loss.whole()) solve_untold(of_loss);
  if (!of_loss.whole()) return std::nullopt;
  return Explanation{.candidate = of_loss.best().candidate,
                     .told = {},
                     .text = "the loss is right on all cases, its gradients are not"};
}

}  // namespace

std::optional<Explanation> explain(const Interview& interview) {
  if (interview.likenesses.empty() || interview.whole()) return std::nullopt;
  if (interview.best().factor != 0.0) return std::nullopt;  // that says it
  if (auto reduction = by_reduction(interview)) return reduction;
  if (auto slip = by_slip(interview)) return slip;
  if (auto gradients = by_loss_alone(interview)) return gradients;
  return by_told_options(interview);
}

}  // namespace lossgate::ci
