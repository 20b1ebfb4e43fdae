// SPDX-License-Identifier: Apache-2.0
// How long a case must be: what ends at a block, a grid of blocks or a format of indices. And how
// short: what treats an axis of one unlike others.
#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "properties/causes.h"
#include "properties/option_values.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// Among so many there are plain numbers of any kind: where they are right, more are wrong by their
/// number alone.
constexpr std::int64_t kMany = 32;
/// What is shorter still has no end of its own: probes on short cases explain it.
constexpr std::int64_t kFew = 5;
/// Sets of few numbers that have to show the same length: one of few may be wrong by itself.
constexpr int kTurns = 4;
/// A class whose logit is so far below another one's has no probability in any format.
constexpr double kImpossible = 2000.0;

/// Plain numbers along one axis, one of most others.
class Row {
 public:
  Row(const Suspect& suspect, Axis axis) : suspect_(suspect), axis_(axis) {}

  std::optional<Reading> at(std::int64_t extent, int turn = 0) const {
    return suspect_.read(suspect_.plain_case({.length = {{axis_, extent}}, .turn = turn}));
  }

  /// Whether that is the last length at which each set of numbers is right, and a batch is so of
  /// which the axis is short.
  bool ends_behind(std::int64_t right) const {
    if (!is_right(suspect_.read(suspect_.plain_case({.few = {axis_}, .at_most = kFew})))) {
      return false;
    }
    for (int turn = 1; turn <= kTurns; ++turn) {
      if (!is_right(at(right, turn)) || !is_wrong(at(right + 1, turn))) return false;
    }
    return true;
  }

 private:
  const Suspect& suspect_;
  Axis axis_;
};

/// The option with which the end of what is right moves: twice as large, it leaves what was the
/// first wrong length right, and twice that length wrong.
const Option* option_of_end(const Suspect& suspect, Axis axis, std::int64_t wrong) {
  for (const Option& option : suspect.signature().options) {
    const double* own = number_of(suspect.given().spec, option);
    const bool may_grow = own && *own > 0.0 && 2.0 * *own <= option.high;
    if (!may_grow || option.kind == Option::Kind::flag) continue;
    const auto read = [&](std::int64_t extent) {
      auto c = suspect.plain_case({.length = {{axis, extent}}});
      if (c) c = with_value(suspect.signature(), *c, option, 2.0 * *own);
      return suspect.read_if_made(c);
    };
    if (is_right(read(wrong)) && is_wrong(read(2 * wrong))) return &option;
  }
  return nullptr;
}

/// Of the lengths between these two the first that is wrong, where the shorter is right.
Opinion wrong_between(const Suspect& suspect, Axis axis, std::int64_t right, std::int64_t given) {
  const Row row(suspect, axis);
  std::int64_t wrong = given;
  if (wrong <= right || !is_right(row.at(right))) return std::nullopt;
  // Blocks that are full, and counts that a narrow format holds, are right now and then.
  if (is_right(row.at(wrong))) wrong -= 1;
  auto shortest = row.at(wrong);  // of the answers that are wrong
  if (wrong == right || !is_wrong(shortest)) return std::nullopt;
  const bool few = right < kMany;
  while (wrong - right > 1) {
    const std::int64_t middle = right + (wrong - right) / 2;
    auto reading = row.at(middle);
    if (!reading) return std::nullopt;
    const bool is_one = is_wrong(reading);
    (is_one ? wrong : right) = middle;
    if (is_one) shortest.emplace(std::move(*reading));
  }
  const bool erratic = shortest->finite() && is_erratic(suspect, *shortest);
  const bool once = wrong < given && is_right(row.at(wrong + 1));
  if (few && (erratic || once || !row.ends_behind(right))) return std::nullopt;
  if (erratic) {
    return Diagnosis{"narrow arithmetic", 0.9,
                     "roundings add up: from " + std::to_string(wrong) + " " +
                         std::string(name(axis)) + " on they are beyond the bound"};
  }
  const std::string what = std::string(name(axis)) + " is ";
  const std::string found = "plain numbers are right where " + what + std::to_string(right) +
                            ", and wrong where it is " + std::to_string(wrong);
  if (const Option* option = once ? nullptr : option_of_end(suspect, axis, wrong)) {
    return Diagnosis{"option misread", 0.8, found + "; that end moves with " + option->name};
  }
  if (once) {
    return Diagnosis{std::string(kWrongBeyondALength), 0.7,
                     found +
                         ", but not where it is one more: it is this length, or what lies at "
                         "its blocks' ends"};
  }
  return Diagnosis{std::string(kWrongBeyondALength), 0.95, found};
}

/// Whether what is asked has one along the axis: the given case or, where that is right, a part of
/// its split.
bool has_one(Suspect& suspect, Axis axis) {
  if (suspect.given().shape[axis] == 1) return true;
  const auto is_one = [](const Split::Part& part) { return part.sequences.size() == 1; };
  return axis == Axis::sequences && std::ranges::any_of(suspect.split().parts, is_one) &&
         is_right(suspect.as_given());
}

/// A case of one along the axis with its like beside it, of classes with a second one that is as
/// good as impossible: whatever is special about the one but its number is so of both. Nothing of
/// an axis along which two cannot be alike, or are added up.
std::optional<Case> with_its_like(const LossSignature& signature, Case c, Axis axis) {
  const bool classes = axis == Axis::vocab;
  if (!classes && axis != Axis::sequences && axis != Axis::tokens) return std::nullopt;
  c.shape[axis] = 2;
  for (const Field& field : signature.fields) {
    const auto at = std::ranges::find(field.axes, axis);
    if (at == field.axes.end()) continue;
    if (classes && field.quantity != Quantity::logit) return std::nullopt;
    Tensor& tensor = c.batch.at(field.name);
    const Tensor one = std::exchange(tensor, Tensor::zeros(tensor.dtype, c.shape.of(field.axes)));
    const auto outer = element_count(
        std::span(one.extents).first(static_cast<std::size_t>(at - field.axes.begin())));
    const std::int64_t each = one.size() / std::max<std::int64_t>(outer, 1);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const bool second = i / each % 2 == 1;
      tensor.set(
          i, one.at(i / (2 * each) * each + i % each) - (classes && second ? kImpossible : 0.0));
    }
  }
  return c;
}

/// Whether a case of one along these axes is wrong by that number: not where it is wrong with its
/// like beside it, too.
bool is_of_number(const Suspect& suspect, const Reading& one, const std::vector<Axis>& axes) {
  std::optional<Case> two = one.given();
  for (const Axis axis : axes) {
    if (two) two = with_its_like(suspect.signature(), std::move(*two), axis);
  }
  return !is_wrong(suspect.read_if_made(two));
}

}  // namespace

/// Plain numbers along one axis, as long as the given case and as short as others are; where only
/// the long ones are wrong, the length from which they are.
Opinion probe_length(Suspect& suspect) {
  for (const bool few : {false, true}) {
    for (const Axis axis : kAllAxes) {
      if (suspect.signature().pinned_extent(axis)) continue;
      const std::int64_t given = suspect.given().shape[axis];
      auto opinion = few ? wrong_between(suspect, axis, kFew, std::min(given, kMany))
                         : wrong_between(suspect, axis, kMany, given);
      if (opinion) return opinion;
    }
  }
  return std::nullopt;
}

/// The plain case, and with one of an axis of which what is asked has one, or with one of all such
/// axes, where it is right with two, and with that one and its like.
Opinion probe_single(Suspect& suspect) {
  const auto several = suspect.plain_case({.padding = false});
  if (!several) return std::nullopt;
  std::vector<std::vector<Axis>> tried;
  std::vector<Axis> all;
  for (const Axis axis : kAllAxes) {
    const bool may_be_two = several->shape[axis] > 1 && !suspect.signature().pinned_extent(axis);
    if (!may_be_two || !has_one(suspect, axis)) continue;
    tried.push_back({axis});
    all.push_back(axis);
  }
  if (tried.empty() || !is_right(suspect.read(several))) return std::nullopt;
  if (all.size() > 1) tried.push_back(all);
  for (const std::vector<Axis>& axes : tried) {
    const auto read = [&](std::int64_t extent) {
      return suspect.read_if_made(
          suspect.plain_case({.padding = false, .few = axes, .at_most = extent}));
    };
    const auto one = read(1);
    // Of one the bound is narrower, too.
    if (!is_wrong(one) || (one->finite() && is_erratic(suspect, *one))) continue;
    const auto two = read(2);
    if (!is_right(two) || !is_of_number(suspect, *one, axes)) continue;
    // What is hardly wrong of one and hardly right of two is of both.
    if (one->finite() && !two->is_much_nearer_than(*one)) continue;
    std::string names;
    for (const Axis axis : axes) names += (names.empty() ? "" : " and ") + std::string(name(axis));
    const std::string are = axes.size() > 1 ? " are " : " is ";
    return Diagnosis{"single one mistaken", 0.85,
                     "plain numbers are right where " + names + are + "2, and wrong where " +
                         (axes.size() > 1 ? "they are 1" : "it is 1")};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
