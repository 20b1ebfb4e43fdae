// SPDX-License-Identifier: Apache-2.0
#include "properties/weights.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <variant>

#include "properties/agreement.h"

namespace lossgate::properties {
namespace {

/// An entry says something of its factor where it is this many times what may be wrong with it.
constexpr double kClear = 32.0;
/// Quotients of counts differ by more.
constexpr double kSame = 1.0 / 4096;

/// The factor of each key: that of its clearest entry which speaks. Empty where the others are not
/// the same multiple.
RowFactors factors(const Reading& reading, const std::function<bool(const ReadEntry&)>& speaks,
                   const std::function<std::int64_t(const Place&)>& key) {
  RowFactors clearest;
  const auto key_of = [&](const ReadEntry& entry) {
    const OutputInfo& output = reading.outputs()[entry.output];
    return static_cast<std::size_t>(key(place_of(reading.study(), output, entry.index)));
  };
  for (const ReadEntry& entry : reading.entries()) {
    const double size = std::fabs(entry.expected);
    if (!speaks(entry) || !(size > kClear * entry.accepted)) continue;
    const RowFactor factor{entry.actual / entry.expected, 2.0 * entry.accepted / size};
    RowFactor& known = clearest.try_emplace(key_of(entry), factor).first->second;
    if (factor.error < known.error) known = factor;
  }
  for (const ReadEntry& entry : reading.entries()) {
    if (!speaks(entry)) continue;
    const auto factor = clearest.find(key_of(entry));
    if (factor == clearest.end()) continue;
    const double slack = entry.accepted * (2.0 + std::fabs(factor->second.value)) +
                         (factor->second.error + kSame) * std::fabs(entry.expected);
    if (!(std::fabs(entry.actual - factor->second.value * entry.expected) <= slack)) return {};
  }
  return clearest;
}

std::vector<std::int64_t> all_rows(const CaseStudy& study) {
  std::vector<std::int64_t> rows(
      static_cast<std::size_t>(std::max<std::int64_t>(study.whole().shape[Axis::sequences], 0)));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

}  // namespace

BatchCounts::BatchCounts(const CaseStudy& study) : BatchCounts(study, all_rows(study)) {}

BatchCounts::BatchCounts(const CaseStudy& study, const std::vector<std::int64_t>& chosen)
    : rows(static_cast<double>(chosen.size())),
      columns(static_cast<double>(study.whole().shape.positions())),
      row_tokens(static_cast<std::size_t>(study.whole().shape[Axis::sequences]), 0.0) {
  for (const std::int64_t row : chosen) {
    double& own = row_tokens[static_cast<std::size_t>(row)];
    for (std::int64_t t = 0; t < study.whole().shape.positions(); ++t) own += study.valid(row, t);
    tokens += own;
    sequences += own > 0.0;
  }
}

Reduction declared_reduction(const LossSpec& spec) {
  if (spec.reduction != Reduction::none) return spec.reduction;
  for (const auto& [option, value] : spec.options) {
    const auto* text = std::get_if<std::string>(&value);
    if (const auto reduction = text ? parse_reduction(*text) : std::nullopt) return *reduction;
  }
  return Reduction::none;
}

double token_weight(const LossSpec& spec, Reduction reduction, const BatchCounts& counts,
                    std::size_t row) {
  const auto number = [&](const char* option) {
    const OptionValue* value = spec.find(option);
    return value && std::holds_alternative<double>(*value) ? std::get<double>(*value)
                                                           : std::nan("");
  };
  switch (reduction) {
    case Reduction::token_mean:
      return 1.0 / counts.tokens;
    case Reduction::sequence_mean:
      return 1.0 / (counts.sequences * counts.row_tokens[row]);
    case Reduction::seq_mean_token_sum_norm:
      return 1.0 / (counts.sequences * number("max_length"));
    case Reduction::sum_over_items:
      return 1.0 / number("num_items");
    default:
      return 1.0;
  }
}

bool RowFactor::is(double predicted) const {
  return std::fabs(value - predicted) <= error + kSame * std::fabs(value);
}

bool has_one_factor(const RowFactors& factors) {
  return !factors.empty() && std::ranges::all_of(factors, [&](const auto& each) {
    return each.second.is(factors.begin()->second.value);
  });
}

RowFactors row_factors(const Reading& reading) {
  std::set<std::size_t> asked;
  bool rows = false;
  const auto by_row = [&](const ReadEntry& entry) {
    return has_rows(reading.outputs()[entry.output].axes);
  };
  for (const ReadEntry& entry : reading.entries()) {
    if (entry.wrong()) asked.insert(entry.output), rows |= by_row(entry);
  }
  const RowFactors clearest = factors(
      reading, [&](const ReadEntry& e) { return asked.contains(e.output) && by_row(e) == rows; },
      [](const Place& place) { return std::max<std::int64_t>(place.sequence, 0); });
  if (rows || clearest.empty()) return clearest;
  // The loss speaks for every sequence.
  const RowFactor common = clearest.begin()->second;
  const BatchCounts counts(reading.study());
  RowFactors every;
  for (std::size_t row = 0; row < counts.row_tokens.size(); ++row) {
    if (counts.row_tokens[row] > 0.0) every.emplace(row, common);
  }
  return every;
}

RowFactors position_factors(const Reading& reading) {
  std::set<std::size_t> asked;
  for (const ReadEntry& entry : reading.entries()) {
    const OutputInfo& output = reading.outputs()[entry.output];
    if (entry.wrong() && has_positions(output.axes)) asked.insert(entry.output);
  }
  const BatchCounts counts(reading.study());
  const auto columns = static_cast<std::int64_t>(counts.columns);
  RowFactors found = factors(
      reading, [&](const ReadEntry& entry) { return asked.contains(entry.output); },
      [&](const Place& place) { return place.sequence * columns + place.token; });
  std::erase_if(found, [&](const auto& each) {
    const auto position = static_cast<std::int64_t>(each.first);
    return !reading.study().valid(position / columns, position % columns);
  });
  return static_cast<double>(found.size()) == counts.tokens ? found : RowFactors{};
}

}  // namespace lossgate::properties
