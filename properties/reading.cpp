// SPDX-License-Identifier: Apache-2.0
#include "properties/reading.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "properties/agreement.h"

namespace lossgate::properties {
namespace {

using reference::Tracked;

/// Every entry that a reading can speak of.
std::vector<ReadEntry> entries_of(CaseStudy& study, const Arithmetic& arithmetic,
                                  const LossResult& result) {
  std::vector<ReadEntry> entries;
  study.for_each_expected(arithmetic, false, [&](std::size_t o, std::int64_t i, const Tracked& x) {
    const OutputInfo& output = study.outputs()[o];
    const auto expected = static_cast<double>(x.v);
    const double actual = result.find(output.name)->at(i);
    // An infinity that was put in is exact: a number is wrong there.
    const bool exact = std::isinf(expected) && std::isfinite(x.err) && std::isfinite(x.half);
    const double accepted = exact ? 0.0 : largest_accepted(arithmetic, output, x);
    if (!std::isfinite(accepted)) return;  // nothing bounds it, as nothing bounds a NaN
    // Another one is right where it is the formula's, or where the format cannot hold what is.
    const bool infinite = !std::isfinite(expected) || !std::isfinite(actual);
    if (infinite && expected == actual) return;
    const bool surprising = exact && std::isfinite(actual);
    if (infinite && !surprising && !must_be_finite(arithmetic, output, x)) return;
    entries.push_back({o, i, actual, expected, accepted, x.is_exact_zero()});
  });
  return entries;
}

/// The largest share that an error has of what is accepted.
double worst_share(const std::vector<ReadEntry>& entries) {
  double worst = 0.0;
  for (const ReadEntry& entry : entries) {
    if (entry.distance() > 0.0) worst = std::max(worst, entry.distance() / entry.accepted);
  }
  return worst;
}

}  // namespace

double ReadEntry::distance() const { return std::fabs(actual - expected); }

bool ReadEntry::wrong() const { return !(distance() <= accepted); }

std::optional<Reading> Reading::of(const reference::Loss& loss,
                                   const impl::Implementation& implementation, const Case& c) {
  try {
    if (implementation.unsupported && implementation.unsupported(c)) return std::nullopt;
    Reading reading;
    reference::Loss formula = loss;
    formula.signature.options = options_of_formula(loss.signature);
    reading.formula_ = std::make_shared<reference::Loss>(std::move(formula));
    reading.given_ = std::make_shared<Case>(c);
    reading.study_ = std::make_shared<CaseStudy>(loss, c);
    if (reading.study_->refusal()) return std::nullopt;
    reading.arithmetic_ = implementation.arithmetic(float_dtype(loss.signature, c));
    if (!reference::unsuitable_for(reading.arithmetic_).empty()) return std::nullopt;
    reading.result_ = implementation.evaluate(loss.signature, c);
    if (malformed(*reading.study_, reading.result_)) return std::nullopt;
    reading.entries_ = entries_of(*reading.study_, reading.arithmetic_, reading.result_);
    return reading;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::int64_t Reading::numbers() const {
  return std::ranges::count_if(entries_, [](const ReadEntry& e) { return e.expected != 0.0; });
}

bool Reading::right() const { return std::ranges::none_of(entries_, &ReadEntry::wrong); }

bool Reading::finite() const {
  return std::ranges::all_of(entries_, [](const ReadEntry& e) { return std::isfinite(e.actual); });
}

bool Reading::forward_right() const {
  return std::ranges::none_of(
      entries_, [&](const ReadEntry& e) { return kind(e) != OutputKind::gradient && e.wrong(); });
}

bool Reading::forward_finite() const {
  return std::ranges::all_of(entries_, [&](const ReadEntry& e) {
    return kind(e) == OutputKind::gradient || std::isfinite(e.actual);
  });
}

bool Reading::is_much_nearer_than(const Reading& other) const {
  constexpr double kMuchNearer = 8.0;
  return kMuchNearer * worst_share(entries_) <= worst_share(other.entries_);
}

std::vector<ReadEntry> Reading::beside(const Case& other) const { return beside(*formula_, other); }

std::vector<ReadEntry> Reading::beside(const reference::Loss& formula, const Case& other) const {
  CaseStudy study(formula, other);
  if (study.refusal() || study.outputs().size() != outputs().size()) return {};
  return entries_of(study, arithmetic_, result_);
}

bool Reading::answers(const Case& other, Of which) const {
  const auto entries = beside(other);
  return !entries.empty() && std::ranges::none_of(entries, [&](const ReadEntry& e) {
    const Of own = kind(e) == OutputKind::gradient ? Of::gradients : Of::values;
    return (which == Of::everything || which == own) && e.wrong();
  });
}

bool Reading::answers_beyond_ranges(const Case& other) const {
  reference::Loss open = *formula_;
  for (Option& option : open.signature.options) {
    if (option.kind == Option::Kind::real) option.low = -HUGE_VAL, option.high = HUGE_VAL;
  }
  const auto entries = beside(open, other);
  return !entries.empty() && std::ranges::none_of(entries, &ReadEntry::wrong);
}

bool Reading::answers_under(const Arithmetic& arithmetic) const {
  const auto entries = entries_of(*study_, arithmetic, result_);
  return std::ranges::none_of(entries, &ReadEntry::wrong);
}

std::vector<Option> options_of_formula(const LossSignature& signature) {
  const LossSignature* whole = reference::find_signature(signature.id);
  std::vector<Option> options = signature.options;
  for (Option& option : options) {
    const Option* known = whole ? whole->find_option(option.name) : nullptr;
    if (known) option = *known;
  }
  return options;
}

bool is_right(const std::optional<Reading>& reading) { return reading && reading->right(); }

bool is_wrong(const std::optional<Reading>& reading) { return reading && !reading->right(); }

bool is_wrong_in_gradients_alone(const std::optional<Reading>& reading) {
  return is_wrong(reading) && reading->forward_right();
}

bool is_finite(const std::optional<Reading>& reading) { return reading && reading->finite(); }

}  // namespace lossgate::properties
