// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "properties/probes.h"
#include "reference/spec/formats.h"

namespace lossgate::properties {
namespace {

/// A larger relative deviation is no constant beside a probability.
constexpr double kLargestConstant = 1.0 / 16;
/// Distances of log-probs at which roundings show: ordinary ones, and such as cancel.
constexpr double kSpreads[] = {2.0, 1.0 / 16};
/// An error that changes by more of itself where inputs move by a few per cent is no function of
/// them.
constexpr double kErratic = 0.25;
/// Any three serve that are near 1 and not 1, and exact in every format.
constexpr double kNudges[] = {1.0 + 1.0 / 64, 1.0 - 3.0 / 128, 1.0 + 5.0 / 128};
/// So many numbers that are all erratic are no chance.
constexpr int kFewest = 3;
/// How much a constant beside a probability gains where the probability vanishes.
constexpr double kGain = 1024.0;
constexpr double kPeaked = 40.0;

/// How far the forward is off, as a share of its numbers: at worst.
double deviation(const std::optional<Reading>& reading) {
  double worst = 0.0;
  if (!reading) return worst;
  for (const ReadEntry& e : reading->entries()) {
    if (reading->kind(e) == OutputKind::gradient || !e.wrong()) continue;
    worst = std::max(worst, e.distance() / std::fabs(e.expected));
  }
  return worst;
}

/// The numbers that are wrong, by their places.
std::map<std::pair<std::size_t, std::int64_t>, ReadEntry> wrong_entries(const Reading& reading) {
  std::map<std::pair<std::size_t, std::int64_t>, ReadEntry> wrong;
  for (const ReadEntry& e : reading.entries()) {
    if (e.wrong()) wrong.emplace(std::pair(e.output, e.index), e);
  }
  return wrong;
}

/// Answers to plain cases that are wrong: in the widest format and in that of the given case, of
/// numbers near each other and of others.
std::vector<Reading> wrong_readings(const Suspect& suspect) {
  std::vector<Reading> wrong;
  for (const double spread : kSpreads) {
    for (const auto& c : {suspect.plain_case({.spread = spread}),
                          plain_case(suspect.signature(), suspect.given(), {.spread = spread})}) {
      auto reading = suspect.read(c);
      if (is_wrong(reading) && reading->finite()) wrong.push_back(std::move(*reading));
    }
  }
  return wrong;
}

Opinion opinion_of(const Reading& reading) {
  Arithmetic widest = reading.arithmetic();
  widest.form.clear();
  if (reading.answers_under(widest)) {
    return Diagnosis{"cancellation", 0.9, "a worse form than the declared one gives such numbers"};
  }
  return Diagnosis{"narrow arithmetic", 0.9,
                   "errors are other ones as soon as inputs move by a hundredth"};
}

/// Whether a format has less than half of the bits of the widest one.
bool is_short(Dtype dtype) { return 2 * size_of(dtype) < size_of(kWidestFormat); }

/// The case with the same numbers in a format that holds all of them.
Case in_format(const LossSignature& signature, Case c, Dtype dtype) {
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (!is_float(tensor.dtype) || !field.dtypes.empty()) continue;
    Tensor wide = Tensor::zeros(dtype, tensor.extents);
    for (std::int64_t i = 0; i < tensor.size(); ++i) wide.set(i, tensor.at(i));
    tensor = std::move(wide);
  }
  return c;
}

}  // namespace

bool is_erratic(const Suspect& suspect, const Reading& reading) {
  const auto wrong = wrong_entries(reading);
  struct Count {
    int erratic = 0, asked = 0;
  };
  Count values, gradients;
  for (const double factor : kNudges) {
    Case c = reading.given();
    for (const Field& field : suspect.signature().fields) {
      Tensor& tensor = c.batch.at(field.name);
      if (!is_float(tensor.dtype)) continue;
      for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, factor * tensor.at(i));
    }
    const auto moved = suspect.read(c);
    if (!moved) continue;
    for (const ReadEntry& e : moved->entries()) {
      const auto known = wrong.find({e.output, e.index});
      if (known == wrong.end()) continue;
      const ReadEntry& before = known->second;
      // Where the formula itself moves far, nothing can be said.
      if (std::fabs(e.expected - before.expected) > kErratic * std::fabs(before.expected)) continue;
      const double error = before.actual - before.expected;
      Count& count = moved->kind(e) == OutputKind::gradient ? gradients : values;
      count.erratic += std::fabs(e.actual - e.expected - error) > kErratic * std::fabs(error);
      ++count.asked;
    }
  }
  // One rounding may lie on all gradients, as a constant factor; then values must agree throughout.
  const bool throughout = values.asked >= kFewest && values.erratic == values.asked &&
                          deviation(reading) < kLargestRounding;
  return throughout || 2 * (values.erratic + gradients.erratic) > values.asked + gradients.asked;
}

/// Errors that no function of the inputs has.
Opinion probe_rounding(Suspect& suspect) {
  for (const Reading& reading : wrong_readings(suspect)) {
    if (is_erratic(suspect, reading)) return opinion_of(reading);
  }
  return std::nullopt;
}

/// A gradient that is wrong in a short format, and right for the same numbers in a longer one.
Opinion probe_format(Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  const auto& given = suspect.as_given();
  if (!is_wrong_in_gradients_alone(given) || !given->finite()) return std::nullopt;
  if (!is_short(float_dtype(signature, given->given()))) return std::nullopt;
  const bool mended = std::ranges::any_of(kAllDtypes, [&](Dtype dtype) {
    if (!is_float(dtype) || is_short(dtype)) return false;
    const auto wide = suspect.read_if_made(in_format(signature, given->given(), dtype));
    return is_right(wide) && 2 * wide->numbers() > given->numbers();
  });
  if (!mended) return std::nullopt;
  // Where it says that it computes in a short one it has lost more to that than its operations do.
  const bool declared = is_short(given->arithmetic().compute);
  return Diagnosis{declared ? "cancellation" : "narrow arithmetic", 0.7,
                   "the gradient of the same numbers in a wider format is right"};
}

Opinion probe_constant_in_logarithm(Suspect& suspect) {
  const double off = deviation(suspect.read(suspect.plain_case()));
  if (off == 0.0 || off > kLargestConstant) return std::nullopt;
  const auto far = suspect.read(suspect.plain_case({.logit_spread = kPeaked}));
  if (!(deviation(far) > kGain * off)) return std::nullopt;
  return Diagnosis{"epsilon in a logarithm", 0.7,
                   "what is off grows as probabilities vanish, and not with their size"};
}

}  // namespace lossgate::properties
