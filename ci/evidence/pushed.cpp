// SPDX-License-Identifier: Apache-2.0
#include "ci/evidence/pushed.h"

#include <cmath>
#include <limits>
#include <memory>

#include "impl/positions.h"
#include "impl/token_weight.h"
#include "properties/agreement.h"

namespace lossgate::ci::evidence {
namespace {

using properties::CaseStudy;
using properties::Evaluation;
using properties::Verdict;
using reference::Tracked;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Verdict agreement(CaseStudy& study, const impl::Implementation& implementation) {
  static const properties::Property& property = *properties::find_property("reference_agreement");
  Evaluation evaluation(study, implementation);
  return property.check(evaluation).verdict;
}

/// The formula's loss, NaN where the case has none.
double loss_of(const reference::Loss& loss, const Case& c, const Arithmetic& arithmetic) {
  CaseStudy study(loss, c);
  double value = kNaN;
  if (study.refusal()) return value;
  study.for_each_expected(arithmetic, false,
                          [&](std::size_t output, std::int64_t, const Tracked& expected) {
                            if (study.outputs()[output].kind == OutputKind::loss) {
                              value = static_cast<double>(expected.v);
                            }
                          });
  return value;
}

/// The least error that is stored as one which is not accepted: results are numbers of their
/// format, and what is less than half a step beyond the last of them that is accepted is rounded
/// back.
double first_beyond(Dtype dtype, const Tracked& expected, double accepted) {
  const auto magnitude = static_cast<double>(std::fabs(expected.v));
  const double step =
      std::max(2.0 * unit_roundoff(dtype) * std::exp2(std::ilogb(magnitude)), min_subnormal(dtype));
  return std::max(accepted, (std::floor(accepted / step) + 0.5) * step);
}

/// Lets the position no longer count; false where the loss has no way to say so.
bool silence(const LossSignature& signature, Case& c, std::int64_t index) {
  if (!signature.mask.empty()) {
    c.batch.at(signature.mask).set(index, 0.0);
  } else if (!signature.ignore_label.empty()) {
    c.batch.at(signature.ignore_label).set(index, kIgnoreLabel);
  } else {
    return false;
  }
  return true;
}

}  // namespace

Pushed::Pushed(const Sound& sound, const Case& c)
    : sound_(sound),
      arithmetic_(sound.implementation->arithmetic(sound.dtype)),
      study_(std::make_unique<CaseStudy>(*sound.loss, c)) {
  if (study_->refusal() || sound.implementation->unsupported(c)) return;
  answer_ = sound.implementation->evaluate(study_->signature(), study_->whole());
  if (answer_.refusal) return;
  for (const OutputInfo& info : study_->outputs()) values_.push_back(answer_.find(info.name));
  usable_ = agreement(*study_, *sound.implementation) == Verdict::held;
}

double Pushed::implied(const std::vector<Push>& pushes) const {
  double least = kInfinity;
  study_->for_each_expected(
      arithmetic_, false, [&](std::size_t o, std::int64_t index, const Tracked& expected) {
        for (const Push& push : pushes) {
          if (push.output != o || push.index != index) continue;
          if (!properties::must_be_finite(arithmetic_, output(o), expected)) continue;
          const double accepted = properties::largest_accepted(arithmetic_, output(o), expected);
          const double stored = first_beyond(output(o).dtype, expected, accepted);
          least = std::min(least, stored / std::fabs(push.amount));
        }
      });
  return least;
}

bool Pushed::noticed(const std::vector<Push>& pushes, double size) const {
  LossResult wrong = answer_;
  for (const Push& push : pushes) {
    for (Output& output : wrong.outputs) {
      if (output.name != this->output(push.output).name) continue;
      output.tensor.set(push.index, output.tensor.at(push.index) + size * push.amount);
    }
  }
  impl::Implementation subject = *sound_.implementation;
  subject.evaluate = [&](const LossSignature&, const Case&) { return wrong; };
  return agreement(*study_, subject) == Verdict::violated;
}

std::vector<Push> Pushed::gradient_entry(fuzz::Choices& choices) const {
  std::vector<Push> entries;
  for (std::size_t o = 0; o < values_.size(); ++o) {
    for (std::int64_t i = 0; output(o).kind == OutputKind::gradient && i < values_[o]->size();
         ++i) {
      const double value = values_[o]->at(i);
      if (value != 0.0 && std::isfinite(value)) entries.push_back({o, i, value});
    }
  }
  if (entries.empty()) return {};
  const auto last = static_cast<std::int64_t>(entries.size()) - 1;
  return {entries[static_cast<std::size_t>(choices.integer(0, last))]};
}

std::vector<Push> Pushed::loss(fuzz::Choices&) const {
  for (std::size_t o = 0; o < values_.size(); ++o) {
    if (output(o).kind == OutputKind::loss) return {{o, 0, values_[o]->at(0)}};
  }
  return {};
}

std::vector<Push> Pushed::count(fuzz::Choices&) const {
  std::vector<Push> pushes;
  bool reduced = false;
  for (std::size_t o = 0; o < values_.size(); ++o) {
    if (output(o).kind == OutputKind::value) continue;
    reduced |= output(o).kind == OutputKind::loss;
    for (std::int64_t i = 0; i < values_[o]->size(); ++i) {
      const double value = values_[o]->at(i);
      if (value != 0.0 && std::isfinite(value)) pushes.push_back({o, i, value});
    }
  }
  return reduced ? pushes : std::vector<Push>{};
}

std::optional<Pushed::Position> Pushed::position(fuzz::Choices& choices) const {
  const std::int64_t tokens = study_->whole().shape[Axis::tokens];
  const std::vector<bool> valid = valid_positions(study_->signature(), study_->whole());
  std::vector<Position> places;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (valid[i]) places.push_back({at / tokens, at % tokens});
  }
  if (places.empty()) return std::nullopt;
  const auto last = static_cast<std::int64_t>(places.size()) - 1;
  return places[static_cast<std::size_t>(choices.integer(0, last))];
}

/// What the token adds to the loss: its own term with its weight. NaN where the loss is no sum of
/// terms, as at sequence level: there the sum lacks more without the token than it alone gives.
double Pushed::term_of(const Position& at) const {
  const LossSignature& signature = study_->signature();
  Case with = study_->whole();
  const impl::Positions positions = impl::find_positions(signature, with);
  const impl::Totals totals = {positions.tokens, positions.sequences, with.shape[Axis::sequences]};
  const auto row_tokens = positions.row_tokens[static_cast<std::size_t>(at.sequence)];
  const auto weight = impl::token_weight<double>(with.spec, totals, row_tokens);
  with.spec.reduction = Reduction::sum;
  Case without = with, alone = with;
  const std::int64_t index = at.sequence * with.shape[Axis::tokens] + at.token;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(positions.valid.size()); ++i) {
    if (!silence(signature, i == index ? without : alone, i)) return kNaN;
  }
  const double term = loss_of(*sound_.loss, alone, arithmetic_);
  const double lacking =
      loss_of(*sound_.loss, with, arithmetic_) - loss_of(*sound_.loss, without, arithmetic_);
  return std::fabs(lacking - term) <= 1e-3 * std::fabs(term) ? weight * term : kNaN;
}

std::vector<Push> Pushed::token_term(fuzz::Choices& choices) const {
  const std::vector<Push> pushes = loss(choices);
  const auto at = position(choices);
  if (pushes.empty() || !at) return {};
  const double term = term_of(*at);
  if (term == 0.0 || !std::isfinite(term)) return {};
  return {{pushes.front().output, 0, term}};
}

std::vector<Push> Pushed::token_weight(fuzz::Choices& choices) const {
  fuzz::Choices same = choices;
  std::vector<Push> pushes = token_term(choices);
  const auto at = position(same);
  if (pushes.empty()) return {};
  for (std::size_t o = 0; o < values_.size(); ++o) {
    for (std::int64_t i = 0; output(o).kind == OutputKind::gradient && i < values_[o]->size();
         ++i) {
      const properties::Place place = properties::place_of(*study_, output(o), i);
      const double value = values_[o]->at(i);
      if (place.sequence != at->sequence || place.token != at->token) continue;
      if (value != 0.0 && std::isfinite(value)) pushes.push_back({o, i, value});
    }
  }
  return pushes;
}

}  // namespace lossgate::ci::evidence
