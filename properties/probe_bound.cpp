// SPDX-License-Identifier: Apache-2.0
// Bounds that the formula does not have.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "properties/case_facts.h"
#include "properties/probes.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

/// Distances of log-probs and values, from one that no bound is below to one that few are beyond.
constexpr double kNearest = 1.0 / 64, kFarthest = 1048576.0, kStep = 4.0;
/// A distance is known to a share of it of 2 to minus this.
constexpr int kHalvings = 10;

/// What lies at a distance: log-probs and values from each other, or advantages from 0.
enum class Far { twins, advantages };

/// A reading of one sequence of one token, at that distance.
class Sequence {
 public:
  Sequence(const Suspect& suspect, Far far, std::int64_t row)
      : suspect_(suspect), far_(far), row_(row) {}

  std::optional<Reading> at(double distance) const {
    Plain plain = {.padding = false, .few = {Axis::tokens}, .at_most = 1};
    if (far_ == Far::twins) plain.spread = distance;
    auto c = suspect_.plain_case(plain);
    if (c && far_ == Far::advantages) {
      Tensor& advantage = c->batch.at(suspect_.signature().advantage);
      for (std::int64_t i = 0; i < advantage.size(); ++i) {
        advantage.set(i, distance * advantage.at(i));
      }
    }
    if (!c || !holds(*c)) return std::nullopt;
    if (row_ >= 0) c = batch_of(suspect_.signature(), *c, {row_});
    return suspect_.read_if_made(c);
  }

 private:
  /// Whether the fields' format has numbers so large.
  static bool holds(const Case& c) {
    for (const auto& [name, tensor] : c.batch.fields) {
      for (std::int64_t i = 0; is_float(tensor.dtype) && i < tensor.size(); ++i) {
        if (!std::isfinite(tensor.at(i))) return false;
      }
    }
    return true;
  }

  const Suspect& suspect_;
  Far far_;
  std::int64_t row_;  ///< none below 0: all of them
};

/// The one entry that stands for all: the loss, or what an operation gives.
std::optional<ReadEntry> spoken(const Reading& reading) {
  const auto& entries = reading.entries();
  const auto at = std::ranges::find_if(
      entries, [&](const ReadEntry& e) { return reading.kind(e) != OutputKind::gradient; });
  return at == entries.end() ? std::nullopt : std::optional(*at);
}

/// Whether the answers are one number, where the formula's move.
bool stays(const Reading& near, const Reading& far) {
  const auto a = spoken(near), b = spoken(far);
  if (!a || !b || a->output != b->output) return false;
  return std::isfinite(a->actual) && a->actual == b->actual &&
         std::fabs(a->expected - b->expected) > a->accepted + b->accepted;
}

/// Whether the number is what the formula has at the largest distance at which the answer is right,
/// and is answered from there on: what is left out, or replaced, out there is another one, and what
/// only tends to a number is not there yet.
bool is_formula_at_bound(const Sequence& sequence, double number, double right, double wrong) {
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (right + wrong);
    const auto reading = sequence.at(middle);
    if (!reading) return false;
    (is_wrong(reading) ? wrong : right) = middle;
  }
  const auto inside = sequence.at(right), outside = sequence.at(wrong);
  if (!is_right(inside) || !is_wrong(outside)) return false;
  const auto a = spoken(*inside), b = spoken(*outside);
  if (!a || !b || a->output != b->output) return false;
  const double moves = std::fabs(b->expected - a->expected) + a->accepted + b->accepted;
  return b->actual == number && std::fabs(number - a->expected) <= moves;
}

/// Whether there is anything to be so far.
bool has(const LossSignature& signature, Far far) {
  if (far == Far::advantages) return !signature.advantage.empty();
  return std::ranges::any_of(signature.reach, [&](const ReachAxis& axis) {
    return signature.find_field(axis.field)->quantity != Quantity::logit;
  });
}

/// Whether answers are right as long as what is far lies near enough, and farther out stay what
/// they are there, where the formula's go on.
bool is_bounded(const Suspect& suspect, Far far) {
  const Sequence all(suspect, far, -1);
  double distance = kNearest;
  std::optional<Reading> reading = all.at(distance);
  while (is_right(reading) && distance < kFarthest) reading = all.at(distance *= kStep);
  if (!is_wrong(reading) || distance == kNearest) return false;
  for (std::int64_t row = 0; row < reading->given().shape[Axis::sequences]; ++row) {
    const Sequence one(suspect, far, row);
    const auto here = one.at(distance), farther = one.at(kStep * distance);
    if (!is_wrong(here) || !is_wrong(farther) || !stays(*here, *farther)) continue;
    if (is_formula_at_bound(one, spoken(*here)->actual, distance / kStep, distance)) return true;
  }
  return false;
}

}  // namespace

Opinion probe_bound(Suspect& suspect) {
  for (const Far far : {Far::twins, Far::advantages}) {
    if (!has(suspect.signature(), far) || !is_bounded(suspect, far)) continue;
    const std::string from = far == Far::twins ? "distance" : suspect.signature().advantage;
    return Diagnosis{
        "undeclared bound", 0.95,
        "from some " + from + " on the answer stays what it is there, where the formula's goes on"};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
