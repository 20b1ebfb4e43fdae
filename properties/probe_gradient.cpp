// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "properties/agreement.h"
#include "properties/probes.h"
#include "properties/valid_numbers.h"
#include "reference/spec/numbers.h"

namespace lossgate::properties {
namespace {

/// A normaliser that was left out is a share of order 1 of the row, rounding one of 1e-16.
constexpr double kShare = 1.0 / 64;
/// Exact in every format, as all powers of two are.
constexpr double kStep = 1.0 / 1024;
/// The slope of its own loss is nearer to a gradient by thousands, any other by less than 2.
constexpr double kNearer = 8.0;

/// No kernel gives up entries that are larger beside the largest one.
constexpr double kFilter = 256.0;

template <class Wanted>
bool all_wrong(const Reading& reading, Wanted&& wanted) {
  return std::ranges::all_of(reading.entries(),
                             [&](const ReadEntry& e) { return !e.wrong() || wanted(e); });
}

/// Whether the gradient is the formula's without one of its terms, and which option scales it.
std::string lacking_term(const Suspect& suspect, const Reading& reading) {
  for (const Option& option : suspect.signature().options) {
    if (option.kind != Option::Kind::real || option.low != 0.0 || option.nullable) continue;
    if (reading.given().spec.number(option.name) == 0.0) continue;
    Case without = reading.given();
    without.spec.set(option.name, 0.0);
    if (reading.answers(without, Reading::Of::gradients)) return option.name;
  }
  return "";
}

/// Whether a softmax's gradient sums to 0 in the formula and not in the answer: its normaliser was
/// taken for a constant.
bool lacks_normaliser(const Suspect& suspect, const Reading& reading) {
  for (std::size_t o = 0; o < reading.outputs().size(); ++o) {
    const OutputInfo& output = reading.outputs()[o];
    const Field* field = suspect.signature().find_field(output.field);
    if (!field || field->quantity != Quantity::logit) continue;
    struct Sums {
      double actual = 0.0, expected = 0.0, size = 0.0, accepted = 0.0;
    };
    std::map<std::int64_t, Sums> rows;
    for (const ReadEntry& e : reading.entries()) {
      if (e.output != o) continue;
      Sums& row = rows[e.index / output.extents.back()];
      row.actual += e.actual, row.expected += e.expected;
      row.size += std::fabs(e.expected), row.accepted += e.accepted;
    }
    for (const auto& [row, sums] : rows) {
      if (std::fabs(sums.expected) <= sums.accepted &&
          std::fabs(sums.actual) > kShare * sums.size && sums.size > 0.0) {
        return true;
      }
    }
  }
  return false;
}

/// Whether the wrong gradient is the slope of the loss that comes with it, as differences show.
bool is_slope_of_its_loss(const Suspect& suspect, const Reading& reading) {
  int tried = 0;
  for (const ReadEntry& e : reading.entries()) {
    if (!e.wrong() || tried == 3) continue;
    const OutputInfo& output = reading.outputs()[e.output];
    double ends[2];
    for (const int side : {0, 1}) {
      Case c = reading.given();
      Tensor& field = c.batch.at(output.field);
      field.set(e.index, field.at(e.index) + (side == 0 ? -kStep : kStep));
      const auto moved = suspect.read(c);
      const Tensor* loss = moved ? moved->result().find("loss") : nullptr;
      if (!loss) return false;
      ends[side] = loss->at(0);
    }
    const double slope = (ends[1] - ends[0]) / (2.0 * kStep);
    if (!(std::fabs(slope - e.actual) < std::fabs(slope - e.expected) / kNearer)) return false;
    ++tried;
  }
  return tried > 0;
}

/// Sizes of a gradient's entries.
struct Kept {
  double lost = 0.0, least = HUGE_VAL, most = 0.0;  ///< largest lost, smallest and largest kept
};

/// Of each gradient, by its entries; by its rows where those are a logit's slope times a state.
std::vector<Kept> kept_of(const Suspect& suspect, const Reading& reading) {
  struct Part {
    double size = 0.0;
    bool wrong = false, is_zero = true;
  };
  std::map<std::size_t, std::map<std::int64_t, Part>> outputs;
  for (const ReadEntry& e : reading.entries()) {
    if (reading.kind(e) != OutputKind::gradient) continue;
    const OutputInfo& output = reading.outputs()[e.output];
    const Field* field = suspect.signature().find_field(output.field);
    const bool of_layer = field && field->axes == std::vector{Axis::vocab, Axis::hidden};
    Part& part = outputs[e.output][of_layer ? e.index / output.extents.back() : e.index];
    part.size = std::max(part.size, std::fabs(e.expected));
    part.wrong = part.wrong || e.wrong();
    part.is_zero = part.is_zero && e.actual == 0.0;
  }
  std::vector<Kept> all;
  for (const auto& [output, parts] : outputs) {
    Kept kept;
    for (const auto& [at, part] : parts) {
      if (part.wrong) kept.lost = std::max(kept.lost, part.size);
      if (part.is_zero) continue;
      kept.least = std::min(kept.least, part.size);
      kept.most = std::max(kept.most, part.size);
    }
    if (kept.lost > 0.0) all.push_back(kept);
  }
  return all;
}

bool lacks_below_a_size(const Kept& kept) {
  const auto& [lost, least, most] = kept;
  return lost < least && lost * kFilter <= most;
}

Diagnosis filtered() {
  return {"gradient filtered", 0.8, "entries are 0 below a size, and right above it"};
}

bool lacks_what_is_wrong(const Reading& reading) {
  return all_wrong(reading, [](const ReadEntry& e) { return e.actual == 0.0; });
}

/// So many positions are asked alone.
constexpr int kLonelyPositions = 4;

Case with_one_position(const LossSignature& signature, Case c, std::size_t position) {
  const std::vector<bool> valid = valid_positions(signature, c);
  for (std::size_t at = 0; at < valid.size(); ++at) {
    if (valid[at] && at != position) mask_position(signature, c, static_cast<std::int64_t>(at));
  }
  return c;
}

/// Whether entries below some size alone lack. The gradient of a weight is a sum over positions, of
/// which some lack, so that one position is asked alone.
bool is_filtered(const Suspect& suspect, const Reading& reading) {
  if (lacks_what_is_wrong(reading)) {
    return std::ranges::all_of(kept_of(suspect, reading), lacks_below_a_size);
  }
  const std::vector<bool> valid = valid_positions(suspect.signature(), reading.given());
  int tried = 0;
  for (std::size_t at = 0; at < valid.size() && tried < kLonelyPositions; ++at) {
    if (!valid[at]) continue;
    ++tried;
    const auto alone = suspect.read(with_one_position(suspect.signature(), reading.given(), at));
    if (!alone || !is_wrong_in_gradients_alone(alone)) continue;
    if (std::ranges::any_of(kept_of(suspect, *alone), lacks_below_a_size)) return true;
  }
  return false;
}

/// The policies whose log-probs the one that learns is held against, by their names.
std::vector<std::pair<std::string, std::string>> other_policies(const LossSignature& signature) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const ReachAxis& axis : signature.reach) {
    const Field &field = *signature.find_field(axis.field),
                *own = signature.find_field(axis.towards);
    const bool both = field.quantity == Quantity::log_prob && own &&
                      own->role == Role::differentiable && field.role == Role::constant;
    if (both && !field.absent) names.emplace_back(axis.field, axis.towards);
  }
  return names;
}

/// The case with all policies the same; nothing where there is no other one.
std::optional<Case> with_one_policy(const LossSignature& signature, std::optional<Case> c) {
  const auto policies = other_policies(signature);
  if (!c || policies.empty()) return std::nullopt;
  for (const auto& [other, own] : policies) take_numbers(c->batch.at(other), c->batch.at(own));
  return c;
}

/// The case with the other policies moved, differently from one position to the next.
Case with_policies_apart(const LossSignature& signature, Case c) {
  const auto apart = [](std::int64_t i, double x) {
    return x - 0.25 * static_cast<double>(1 + i % 3);
  };
  for (const auto& [other, own] : other_policies(signature)) {
    change_where_valid(signature, c, other, apart);
  }
  return c;
}

/// Where policies that agree may be what is wrong with the given case: it is right as soon as they
/// do not, or as it is, with a gradient that is wrong of what was made of it.
bool may_be_of_one_policy(Suspect& suspect) {
  if (!is_wrong(suspect.as_given())) return suspect.violation().place.in_gradient();
  const Case apart = with_policies_apart(suspect.signature(), suspect.given());
  return is_wrong_in_gradients_alone(suspect.as_given()) && is_right(suspect.read_if_made(apart));
}

/// All is right where policies differ: is a gradient wrong on policy, as in a first step?
Opinion of_one_policy(Suspect& suspect) {
  const auto same =
      suspect.read_if_made(with_one_policy(suspect.signature(), suspect.plain_case()));
  if (!is_wrong_in_gradients_alone(same) || !same->finite()) return std::nullopt;
  if (is_filtered(suspect, *same) || !may_be_of_one_policy(suspect)) return std::nullopt;
  const double confidence = is_wrong(suspect.as_given()) ? 0.95 : 0.8;
  const std::string where = "where all policies are the same, ";
  if (lacks_what_is_wrong(*same)) {
    return Diagnosis{"dead signal", confidence, where + "what is wrong of the gradient is 0"};
  }
  if (is_slope_of_its_loss(suspect, *same)) {
    return Diagnosis{"gradient through what is constant", confidence,
                     where + "the gradient is the slope of the loss, part of which is a constant"};
  }
  return std::nullopt;
}

}  // namespace

/// The forward is right, and what is wrong of the gradient is 0; or is as soon as a flag is off,
/// which adds another way for the gradient to come.
Opinion probe_dead_gradient(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong_in_gradients_alone(plain)) return std::nullopt;
  if (lacks_what_is_wrong(*plain)) {
    if (is_filtered(suspect, *plain)) return filtered();
    return Diagnosis{"dead signal", 0.95,
                     "the forward is right, what is wrong of the gradient is 0"};
  }
  for (const Option& option : suspect.signature().options) {
    if (option.kind != Option::Kind::flag || plain->given().spec.number(option.name) == 0.0)
      continue;
    Case off = plain->given();
    off.spec.set(option.name, 0.0);
    const auto reading = suspect.read(off);
    if (!is_wrong_in_gradients_alone(reading) || !lacks_what_is_wrong(*reading)) continue;
    return Diagnosis{
        "dead signal", 0.9,
        "without " + option.name + " the forward is right, and what is wrong of the gradient is 0"};
  }
  return std::nullopt;
}

/// The forward is right and the gradient is not, of plain numbers or of one policy.
Opinion probe_gradient(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (is_right(plain)) return of_one_policy(suspect);
  if (!is_wrong_in_gradients_alone(plain) || !plain->finite()) return std::nullopt;
  if (const std::string option = lacking_term(suspect, *plain); !option.empty()) {
    return Diagnosis{"dead signal", 0.95,
                     "the gradient is that without the term that " + option + " scales"};
  }
  if (is_slope_of_its_loss(suspect, *plain)) {
    return Diagnosis{"gradient through what is constant", 0.95,
                     "the gradient is the slope of the loss, part of which is a constant"};
  }
  if (all_wrong(*plain, [](const ReadEntry& e) { return e.exact_zero; })) {
    return Diagnosis{"gradient through a clamp", 0.95,
                     "it is wrong where the formula's is exactly 0, and right elsewhere"};
  }
  if (lacks_normaliser(suspect, *plain)) {
    return Diagnosis{"dead signal", 0.9, "it does not sum to 0 over the vocabulary"};
  }
  return Diagnosis{"backward is not the derivative", 0.6, "the forward is right"};
}

/// Where all is right on plain cases: do entries below some size alone lack?
Opinion probe_filtered_gradient(Suspect& suspect) {
  const auto& given = suspect.as_given();
  if (!is_wrong_in_gradients_alone(given) || !is_filtered(suspect, *given)) return std::nullopt;
  return filtered();
}

}  // namespace lossgate::properties
