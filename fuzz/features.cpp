// SPDX-License-Identifier: Apache-2.0
#include "fuzz/features.h"

#include <algorithm>
#include <cmath>

#include "properties/agreement.h"
#include "reference/spec/masked.h"

namespace lossgate::fuzz {
namespace {

using properties::Evaluation;
using properties::Outcome;
using reference::Tracked;

constexpr std::size_t kIndices = 32, kValues = 64;

/// The binary order of a magnitude, at most `kValues` - 1; 0 is that of 0.
std::size_t order_of(double magnitude, int of_one) {
  if (magnitude == 0.0) return 0;
  if (!std::isfinite(magnitude)) return kValues - 1;
  return static_cast<std::size_t>(
      std::clamp(std::ilogb(magnitude) + of_one, 1, static_cast<int>(kValues) - 2));
}

/// None, some or all.
std::size_t share_of(std::int64_t count, std::int64_t all) {
  return count == 0 ? 0 : count < all ? 1 : 2;
}

/// What kind of number it is, to a formula and to a format.
std::size_t class_of(Dtype dtype, Quantity quantity, double value) {
  if (std::isnan(value)) return 1;
  if (std::isinf(value)) return value > 0.0 ? 2 : 3;
  const double size = std::fabs(value);
  if (size == 0.0) return std::signbit(value) ? 4 : 5;
  if (size < min_normal(dtype)) return 6;
  const std::size_t sign = value > 0.0 ? 1 : 0;
  if (!is_ordinary(quantity, value)) return (size * 2.0 > max_finite(dtype) ? 8 : 10) + sign;
  return (size < 1e-3 ? 12 : size < 1.0 ? 14 : size < 20.0 ? 16 : size < 88.0 ? 18 : 20) + sign;
}

class Observing {
 public:
  Observing(Evaluation& evaluation, const std::vector<Outcome>& outcomes)
      : evaluation_(evaluation),
        study_(evaluation.study()),
        dtype_(float_dtype(study_.signature(), study_.split())) {
    see_outcomes(outcomes);
    see_case();
    if (!study_.refusal()) see_numbers();
    if (!study_.refusal()) see_outputs();
    std::ranges::sort(seen_);
    seen_.erase(std::ranges::unique(seen_).begin(), seen_.end());
  }

  std::vector<Feature> take() { return std::move(seen_); }

 private:
  void see(Facet facet, std::size_t index, std::size_t value) {
    seen_.push_back(feature(dtype_, facet, index, value));
  }

  void see_outcomes(const std::vector<Outcome>& outcomes) {
    constexpr int kOne = 40;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      see(Facet::verdict, i, static_cast<std::size_t>(outcomes[i].verdict));
      if (outcomes[i].compared == 0) continue;
      const double ratio = outcomes[i].worst_ratio;
      see(Facet::ratio, i, order_of(std::isnan(ratio) ? HUGE_VAL : ratio, kOne));
    }
  }

  void see_case() {
    const Case& c = study_.split();
    const std::vector<bool> valid = valid_positions(study_.signature(), c);
    const auto counted = std::ranges::count(valid, true);
    std::size_t index = 0;
    see(Facet::form, index++,
        share_of(counted, std::ssize(valid)) * 2 +
            has_empty_sequence(valid, c.shape[Axis::sequences]));
    see(Facet::form, index++,
        std::min<std::size_t>(c.split.parts.size(), 4) * 4 +
            static_cast<std::size_t>(std::min(c.split.world, 4) - 1));
    see(Facet::form, index++, static_cast<std::size_t>(c.layout));
    see(Facet::form, index++, class_of(Dtype::f32, Quantity::upstream, c.upstream));
    see(Facet::form, index++, static_cast<std::size_t>(c.spec.reduction));
    for (const Axis axis : kAllAxes) {
      see(Facet::form, index++,
          c.shape[axis] < 0 ? kValues - 1 : order_of(static_cast<double>(c.shape[axis]), 1));
    }
    for (const Option& option : study_.signature().options) see_option(index++, option, c);
  }

  void see_option(std::size_t index, const Option& option, const Case& c) {
    const OptionValue* value = c.spec.find(option.name);
    std::size_t kind = value && *value == option.standard ? 1 : 2;
    if (value && std::holds_alternative<None>(*value)) kind = 3;
    if (const auto* number = value ? std::get_if<double>(value) : nullptr) {
      if (*number == option.low) kind = 4;
      if (*number == option.high) kind = 5;
    }
    if (const auto* word = value ? std::get_if<std::string>(value) : nullptr) {
      const auto at = std::ranges::find(option.choices, *word);
      kind = 8 + static_cast<std::size_t>(at - option.choices.begin());
    }
    see(Facet::form, index, kind);
  }

  void see_numbers() {
    const Case& c = study_.split();
    const std::vector<bool> valid = valid_positions(study_.signature(), c);
    for (std::size_t f = 0; f < study_.signature().fields.size(); ++f) {
      const Field& field = study_.signature().fields[f];
      const Tensor& tensor = c.batch.at(field.name);
      if (!is_float(tensor.dtype) || tensor.size() == 0) continue;
      const std::int64_t each = is_positional(field) ? tensor.size() / std::ssize(valid) : 0;
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        const bool counts = each == 0 || valid[static_cast<std::size_t>(i / each)];
        see_once(counts ? Facet::counted : Facet::masked, f,
                 class_of(tensor.dtype, field.quantity, tensor.at(i)));
      }
    }
  }

  /// Neighbours are often alike.
  void see_once(Facet facet, std::size_t index, std::size_t value) {
    const Feature made = feature(dtype_, facet, index, value);
    if (std::find(seen_.end() - std::min<std::ptrdiff_t>(std::ssize(seen_), 8), seen_.end(),
                  made) == seen_.end()) {
      seen_.push_back(made);
    }
  }

  struct Output {
    std::int64_t entries = 0, away = 0, undecided = 0, beyond = 0;
    double peak = 0.0;
  };

  void see_outputs() {
    if (!reference::unsuitable_for(evaluation_.arithmetic()).empty()) return;
    std::vector<Output> outputs(study_.outputs().size());
    study_.for_each_expected(evaluation_.arithmetic(), false,
                             [&](std::size_t output, std::int64_t, const Tracked& expected) {
                               Output& seen = outputs[output];
                               seen.entries += 1;
                               seen.away += expected.is_exact_zero();
                               seen.undecided += expected.half > 0.0;
                               seen.beyond += !std::isfinite(expected.v);
                               if (!std::isnan(expected.peak)) {
                                 seen.peak = std::max(seen.peak, expected.peak);
                               }
                             });
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Output& seen = outputs[i];
      see(Facet::selection, i,
          share_of(seen.away, seen.entries) * 9 + share_of(seen.undecided, seen.entries) * 3 +
              share_of(seen.beyond, seen.entries));
      constexpr int kFirst = 56;
      const double room = seen.peak / max_finite(evaluation_.arithmetic().compute);
      see(Facet::headroom, i, order_of(room, kFirst));
    }
  }

  Evaluation& evaluation_;
  properties::CaseStudy& study_;
  Dtype dtype_;
  std::vector<Feature> seen_;
};

}  // namespace

Feature feature(Dtype dtype, Facet facet, std::size_t index, std::size_t value) {
  const std::size_t format = is_float(dtype) ? static_cast<std::size_t>(dtype) : 0;
  return static_cast<Feature>(
      ((format * 8 + static_cast<std::size_t>(facet)) * kIndices + index % kIndices) * kValues +
      value % kValues);
}

std::vector<Feature> features_of(Evaluation& evaluation, const std::vector<Outcome>& outcomes) {
  return Observing(evaluation, outcomes).take();
}

}  // namespace lossgate::fuzz
