// SPDX-License-Identifier: Apache-2.0
// Logits that a tanh keeps within a bound: of an ever less likely token the answer tends to what
// the formula gives at that bound.
#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <utility>

#include "properties/output_layer.h"
#include "properties/probes.h"
#include "properties/unlikely_token.h"

namespace lossgate::properties {
namespace {

/// So far below others a token is beyond any bound, and farther the answer is the same.
constexpr double kFar = 3e4, kFarther = 4e4;
constexpr double kSame = 1.0 / 1024;
/// A bound has so many digits.
constexpr int kDigits = 3;
/// So often the distance is corrected at which the formula has a surprise.
constexpr int kCorrections = 3;
/// The share of what is wrong that the bounded logits may leave.
constexpr double kLeft = 1.0 / 64;

double in_few_digits(double x) {
  const double unit = std::pow(10.0, std::floor(std::log10(x)) + 1.0 - kDigits);
  return std::round(x / unit) * unit;
}

/// The distance at which the formula has the surprise that is answered far out.
std::optional<double> bound_of(const UnlikelyToken& token) {
  const auto far = surprise_of(token.at(kFar)), farther = surprise_of(token.at(kFarther));
  if (!far || !farther || !(far->formula - far->answered >= 1.0)) return std::nullopt;
  if (!(std::fabs(farther->answered - far->answered) <= kSame)) return std::nullopt;
  auto gap = token.gap_of(far->answered);
  for (int i = 0; gap && i < kCorrections; ++i) {
    const auto here = surprise_of(token.at(*gap));
    const auto reached = here ? token.gap_of(here->formula) : std::nullopt;
    const auto wanted = token.gap_of(far->answered);
    gap = reached && wanted ? std::optional(*gap + *wanted - *reached) : std::nullopt;
  }
  return gap && *gap >= 1.0 ? std::optional(in_few_digits(*gap)) : std::nullopt;
}

/// The case with logits that are bounded so: all of them, or those of the model alone.
Case bounded(const LossSignature& signature, Case c, double bound, bool all) {
  for (const Field& field : signature.fields) {
    const bool leaf = field.role == Role::differentiable;
    if (field.quantity != Quantity::logit || !(all || leaf)) continue;
    Tensor& tensor = c.batch.at(field.name);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      tensor.set(i, bound * std::tanh(tensor.at(i) / bound));
    }
  }
  for (const OutputLayer& layer : output_layers(signature)) {
    if (!(all || layer.leaf)) continue;
    for (std::int64_t v = 0; v < c.shape[Axis::vocab]; ++v) {
      set_logit(c, layer, v, bound * std::tanh(logit_of(c, layer, v) / bound));
    }
  }
  return c;
}

/// Plain numbers with logits as large as the bound; of one position where a layer makes them.
std::optional<Reading> with_large_logits(const Suspect& suspect, const Plain& plain, double bound) {
  auto c = suspect.plain_case(plain);
  for (const OutputLayer& layer : output_layers(suspect.signature())) {
    if (!c) break;
    Tensor& weight = c->batch.at(layer.weight);
    for (std::int64_t i = 0; i < weight.size(); ++i) weight.set(i, bound * weight.at(i));
  }
  return suspect.read_if_made(c);
}

/// Whether all values are what the formula gives to the other case, but for what is accepted and a
/// small share of what is wrong: bounded logits are rounded.
bool has_values_of(const Reading& reading, const Case& other) {
  const auto entries = reading.beside(other);
  return std::ranges::equal(entries, reading.entries(), [&](const ReadEntry& e, const auto& own) {
    return reading.kind(own) == OutputKind::gradient ||
           e.distance() <= e.accepted + kLeft * own.distance();
  });
}

}  // namespace

Opinion probe_cap(Suspect& suspect) {
  const auto bound = bound_of(UnlikelyToken(suspect));
  if (!bound) return std::nullopt;
  const bool made = !output_layers(suspect.signature()).empty();
  const Plain one = {.few = {Axis::sequences, Axis::tokens}, .at_most = 1},
              as_large = {.logit_spread = *bound};
  const Plain& plain = made ? one : as_large;
  const auto reading = with_large_logits(suspect, plain, *bound);
  if (!is_wrong(reading) || !reading->finite()) return std::nullopt;
  for (const bool all : {true, false}) {
    const auto is_it = [&](const Reading& each) {
      return has_values_of(each, bounded(suspect.signature(), each.given(), *bound, all));
    };
    if (!suspect.fits(*reading, is_it, plain)) continue;
    std::ostringstream says;
    says << "the answer is that with " << *bound << " tanh(x / " << *bound
         << ") in the place of each logit x";
    return Diagnosis{"undeclared bound", 0.95, says.str()};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
