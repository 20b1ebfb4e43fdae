// SPDX-License-Identifier: Apache-2.0
// Bounds that the formula does not have.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/case_facts.h"
#include "properties/option_values.h"
#include "properties/probes.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

/// Distances of log-probs and values, from one that no bound is below to one that few are beyond.
constexpr double kNearest = 1.0 / 64, kFarthest = 1048576.0, kStep = 4.0;
/// A distance is known to a share of it of 2 to minus this.
constexpr int kHalvings = 10;

/// The case in which something lies at that distance and all else near it; nothing where there is
/// no such case.
using Make = std::function<std::optional<Case>(double distance)>;

constexpr auto kOneToken = [](double spread) {
  return Plain{.padding = false, .spread = spread, .few = {Axis::tokens}, .at_most = 1};
};

/// Log-probs and values lie so far from each other.
Make all_apart(const Suspect& suspect) {
  return [&](double distance) { return suspect.plain_case(kOneToken(distance)); };
}

/// One field lies far below another, and no limit of the options is in the way: a wrong choice
/// beside one stays where the limit is.
Make one_apart(const Suspect& suspect, std::string below, std::string above) {
  return [&suspect, below = std::move(below), above = std::move(above)](double distance) {
    auto c = suspect.plain_case(kOneToken(kNearest));
    for (const Option& option : suspect.signature().options) {
      if (c && option.nullable) c->spec.set(option.name, None{});
    }
    if (c) follow(suspect.signature(), c->spec);
    for (std::int64_t i = 0; c && i < c->batch.at(below).size(); ++i) {
      c->batch.at(below).set(i, c->batch.at(above).at(i) - distance);
    }
    return c;
  };
}

/// Advantages lie so many times as far from 0 as they do.
Make large_advantages(const Suspect& suspect) {
  return [&](double distance) {
    auto c = suspect.plain_case({.padding = false, .few = {Axis::tokens}, .at_most = 1});
    for (std::int64_t i = 0; c && i < c->batch.at(suspect.signature().advantage).size(); ++i) {
      Tensor& advantage = c->batch.at(suspect.signature().advantage);
      advantage.set(i, distance * advantage.at(i));
    }
    return c;
  };
}

/// A reading of one sequence of one token, at that distance.
class Sequence {
 public:
  Sequence(const Suspect& suspect, Make make, std::int64_t row)
      : suspect_(suspect), make_(std::move(make)), row_(row) {}

  std::optional<Reading> at(double distance) const {
    auto c = make_(distance);
    if (!c || !holds(*c)) return std::nullopt;
    if (row_ >= 0) c = batch_of(suspect_.signature(), *c, {row_});
    return suspect_.read_if_made(c);
  }

  /// From where on it is wrong, and right nearer by.
  std::optional<double> first_wrong() const {
    double distance = kNearest;
    std::optional<Reading> reading = at(distance);
    while (is_right(reading) && distance < kFarthest) reading = at(distance *= kStep);
    if (!is_wrong(reading) || distance == kNearest) return std::nullopt;
    return distance;
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
  Make make_;
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

/// Whether what is wrong from that distance on is the formula's number at a bound, beyond which
/// that field has no slope.
bool is_bounded(const Sequence& sequence, double distance, std::string_view leaf) {
  const auto here = sequence.at(distance), farther = sequence.at(kStep * distance);
  if (!is_wrong(here) || !is_wrong(farther) || !stays(*here, *farther)) return false;
  const bool slopes = std::ranges::any_of(farther->entries(), [&](const ReadEntry& e) {
    return farther->outputs()[e.output].name == "gradient." + std::string(leaf) && e.actual != 0.0;
  });
  return !slopes &&
         is_formula_at_bound(sequence, spoken(*here)->actual, distance / kStep, distance);
}

/// Whether one of the sequences is.
bool is_bounded_somewhere(const Suspect& suspect, const Make& make, double distance) {
  const auto several = make(distance);
  for (std::int64_t row = 0; several && row < several->shape[Axis::sequences]; ++row) {
    if (is_bounded(Sequence(suspect, make, row), distance, "")) return true;
  }
  return false;
}

Diagnosis held_within_a_bound(const std::string& what) {
  return {
      "undeclared bound", 0.95,
      "from some " + what + " on the answer stays what it is there, where the formula's goes on"};
}

/// The option whose limit holds the answer there: without it that is right, and the bound is none
/// that was not declared.
std::string limit_at(const Suspect& suspect, const Make& make, double distance) {
  const auto c = make(distance);
  for (const Option& option : suspect.signature().options) {
    const bool limits = option.nullable && option.kind == Option::Kind::real;
    if (!c || !limits || c->spec.is_none(option.name)) continue;
    const auto without = suspect.read(with_value(suspect.signature(), *c, option, None{}));
    if (is_right(without)) return option.name;
  }
  return "";
}

/// Of several bounds one is seen where nothing else moves.
Opinion bound_of_distance(const Suspect& suspect) {
  std::vector<ReachAxis> axes = suspect.signature().reach;
  std::erase_if(axes, [&](const ReachAxis& axis) {
    return suspect.signature().find_field(axis.field)->quantity == Quantity::logit;
  });
  if (axes.empty()) return std::nullopt;
  const auto distance = Sequence(suspect, all_apart(suspect), -1).first_wrong();
  if (!distance) return std::nullopt;
  const Diagnosis held = held_within_a_bound("distance");
  if (is_bounded_somewhere(suspect, all_apart(suspect), *distance)) {
    const std::string limit = limit_at(suspect, all_apart(suspect), *distance);
    if (limit.empty()) return held;
    return Diagnosis{
        "option misread", 0.9,
        "from some distance on " + limit + " holds the answer, where the formula's goes on"};
  }
  for (const ReachAxis& axis : axes) {
    if (axis.towards.empty()) continue;
    for (const auto& [below, above] :
         {std::pair(axis.field, axis.towards), std::pair(axis.towards, axis.field)}) {
      const Sequence one(suspect, one_apart(suspect, below, above), 0);
      const auto from = one.first_wrong();
      if (from && is_bounded(one, *from, axis.towards)) return held;
    }
  }
  return std::nullopt;
}

Opinion bound_of_advantages(const Suspect& suspect) {
  if (suspect.signature().advantage.empty()) return std::nullopt;
  const Make make = large_advantages(suspect);
  const auto distance = Sequence(suspect, make, -1).first_wrong();
  if (!distance || !is_bounded_somewhere(suspect, make, *distance)) return std::nullopt;
  return held_within_a_bound(suspect.signature().advantage);
}

}  // namespace

/// Right as long as what is far lies near enough; farther out the answer stays what it is there,
/// where the formula's goes on.
Opinion probe_bound(Suspect& suspect) {
  auto opinion = bound_of_distance(suspect);
  return opinion ? opinion : bound_of_advantages(suspect);
}

}  // namespace lossgate::properties
