// SPDX-License-Identifier: Apache-2.0
#include "properties/sentinels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "properties/agreement.h"
#include "properties/case_facts.h"
#include "properties/transforms.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

/// Tokenizers begin with the token that fills batches, or have it behind one or two of its kind,
/// or end with it.
constexpr std::int64_t kPaddingTokens = 3;
/// What a formula has there is nearly what it has at 0.
constexpr double kBesideZero = 1.0 / 64;
/// A log-prob that stands for none, where labels of -100 do, an ordinary one, and one that is lower
/// than what anybody lets stand for none; and how often the distance of the last two is halved.
constexpr double kMarker = -100.0, kOrdinary = -1.0, kLowest = -1e9;
constexpr int kHalvings = 20;

std::optional<ReadEntry> loss_of(const Reading& reading, const std::vector<ReadEntry>& entries) {
  const auto at = std::ranges::find_if(
      entries, [&](const ReadEntry& e) { return reading.kind(e) == OutputKind::loss; });
  return at == entries.end() ? std::nullopt : std::optional(*at);
}

/// A position, or all of one sequence.
struct Positions {
  std::int64_t from, to;
  bool contain(std::int64_t position) const { return from <= position && position < to; }
};

/// Whether the loss, where there is one, is the formula's without these positions' terms, of which
/// the divisor still knows.
bool loss_lacks_terms(const Suspect& suspect, const Reading& reading, const Positions& lost) {
  if (reading.outputs().front().kind != OutputKind::loss) return true;
  Case alone = reading.given();
  const std::vector<bool> valid = valid_positions(suspect.signature(), alone);
  for (std::int64_t other = 0; other < std::ssize(valid); ++other) {
    if (!lost.contain(other)) mask_position(suspect.signature(), alone, other);
  }
  const auto all = loss_of(reading, reading.entries()),
             own = loss_of(reading, reading.beside(alone));
  if (!all || !own) return false;
  const auto row = static_cast<std::size_t>(lost.from / alone.shape[Axis::tokens]);
  const LossSpec& spec = alone.spec;
  const auto weight = [&](const CaseStudy& study) {
    return token_weight(spec, declared_reduction(spec), BatchCounts(study), row);
  };
  const double share = weight(reading.study()) / weight(CaseStudy(suspect.loss(), alone));
  const double lacking = all->expected - share * own->expected;
  return std::fabs(all->actual - lacking) <= 2.0 * (all->accepted + share * own->accepted);
}

/// Whether what is wrong is that there is nothing at these positions.
bool lacks(const Suspect& suspect, const Reading& reading, const Positions& lost) {
  bool any = false;
  for (const ReadEntry& e : reading.entries()) {
    if (!e.wrong() || reading.kind(e) == OutputKind::loss) continue;
    const Place place = place_of(reading.study(), reading.outputs()[e.output], e.index);
    const std::int64_t at = place.sequence * reading.given().shape[Axis::tokens] + place.token;
    if (place.token < 0 || !lost.contain(at) || e.actual != 0.0) return false;
    any = true;
  }
  return any && loss_lacks_terms(suspect, reading, lost);
}

/// Whether positions of one sequence that count do what masked ones do, counted or not.
bool are_left_out(const Suspect& suspect, Case c, const Positions& positions) {
  const auto reading = suspect.read_if_made(c);
  if (!is_wrong(reading)) return false;
  if (lacks(suspect, *reading, positions)) return true;
  for (std::int64_t at = positions.from; at < positions.to; ++at) {
    mask_position(suspect.signature(), c, at);
  }
  return reading->answers(c);
}

/// The first two positions, side by side and counting, of a sequence in which more count: all of
/// them are the sequence, and one that adds nothing is left out by whoever counts one less.
std::optional<Positions> two_among_others(const std::vector<bool>& valid, std::int64_t tokens) {
  for (std::int64_t position = 0; position + 1 < std::ssize(valid); ++position) {
    const auto here = valid.begin() + position, row = here - position % tokens;
    const bool same_row = position % tokens + 1 < tokens;
    if (same_row && here[0] && here[1] && std::count(row, row + tokens, true) > 2) {
      return Positions{position, position + 2};
    }
  }
  return std::nullopt;
}

/// Whether what a case does with that number of a field at these positions comes of its being 0:
/// not so with a number beside 0.
bool is_of_zero(const Case& plain, const Field& field, const Positions& at,
                const std::function<bool(Case)>& does) {
  const auto with = [&](double number) {
    Case c = plain;
    Tensor& tensor = c.batch.at(field.name);
    const std::int64_t each = entries_per_position(c, tensor);
    for (std::int64_t i = at.from * each; i < at.to * each; ++i) tensor.set(i, number);
    return does(std::move(c));
  };
  if (!is_positional(field) || !is_float(plain.batch.at(field.name).dtype)) return false;
  return with(0.0) && !with(field.quantity == Quantity::log_prob ? -kBesideZero : kBesideZero);
}

/// The field whose 0 at positions that count does what masking the positions does, if one has.
std::string field_that_masks(const Suspect& suspect, const Case& plain) {
  const LossSignature& signature = suspect.signature();
  const auto two = two_among_others(valid_positions(signature, plain), plain.shape.positions());
  if (!two) return "";
  const auto leaves_out = [&](Case c) { return are_left_out(suspect, std::move(c), *two); };
  for (const Field& field : signature.fields) {
    if (is_of_zero(plain, field, *two, leaves_out)) return field.name;
  }
  return "";
}

/// The case with that log-prob of all models at these positions: no two of them are apart.
Case with_log_probs(const LossSignature& signature, Case c, const Positions& at, double log_prob) {
  for (const Field& field : signature.fields) {
    const bool one = is_positional(field) && field.axes.size() == 2 && !field.absent;
    if (!one || field.quantity != Quantity::log_prob) continue;
    for (std::int64_t i = at.from; i < at.to; ++i) c.batch.at(field.name).set(i, log_prob);
  }
  return c;
}

/// The log-prob which, where all models have it of two tokens that count, does what masking these
/// does, by itself or as all lower ones do. In words; empty where there is none.
std::string log_prob_that_masks(const Suspect& suspect, const Case& plain) {
  const LossSignature& signature = suspect.signature();
  const auto two = two_among_others(valid_positions(signature, plain), plain.shape.positions());
  const auto masks = [&](double log_prob) {
    return are_left_out(suspect, with_log_probs(signature, plain, *two, log_prob), *two);
  };
  // Where a model's are made of other fields, they would be far from what is put in here.
  const bool made = std::ranges::any_of(signature.fields, [](const Field& field) {
    return field.role == Role::differentiable && field.quantity != Quantity::log_prob;
  });
  if (made || !two || masks(kOrdinary)) return "";
  if (masks(kMarker) && !masks(kMarker - kBesideZero)) return "-100";
  double low = std::max(kLowest, -max_finite(float_dtype(signature, plain))), high = kOrdinary;
  if (!masks(low)) return "";
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = -std::sqrt(low * high);
    (masks(middle) ? low : high) = middle;
  }
  std::ostringstream text;
  text.precision(3);
  text << "below about " << low;
  return text.str();
}

/// The label whose token, at a position that counts, does what masking the position does: of two
/// positions each. In words; empty where there is none.
std::string label_that_masks(const Suspect& suspect, const Case& plain) {
  const LossSignature& signature = suspect.signature();
  const std::vector<bool> valid = valid_positions(signature, plain);
  const auto first = std::ranges::find(valid, true);
  const auto last = std::find(valid.rbegin(), valid.rend(), true);
  const std::int64_t positions[] = {first - valid.begin(), valid.rend() - last - 1};
  const std::int64_t vocab = plain.shape[Axis::vocab];
  if (signature.ignore_label.empty() || vocab < 2 || positions[0] >= positions[1]) return "";
  const auto masks = [&](std::int64_t token, std::int64_t position) {
    Case c = plain;
    Tensor& label = c.batch.at(signature.ignore_label);
    for (std::int64_t i = 0; i < label.size(); ++i) {
      if (i != position && label.integer_at(i) != token) continue;
      if (!valid[static_cast<std::size_t>(i)]) continue;
      label.set(i, static_cast<double>(i == position ? token : (token + 1) % vocab));
    }
    return are_left_out(suspect, std::move(c), {position, position + 1});
  };
  const auto does = [&](std::int64_t token) {
    return std::ranges::all_of(positions, [&](std::int64_t at) { return masks(token, at); });
  };
  for (std::int64_t token = 0; token < std::min(kPaddingTokens, vocab - 1); ++token) {
    if (does(token)) return std::to_string(token);
  }
  return does(vocab - 1) ? "the last class" : "";
}

/// The field whose zeros in all of a sequence do what masking the sequence does, counted or not.
Opinion zeros_that_mask_sequences(const Suspect& suspect, const Case& plain) {
  const LossSignature& signature = suspect.signature();
  const Positions first = {0, plain.shape[Axis::tokens]};
  if (plain.shape[Axis::sequences] < 2 || !is_right(suspect.read(plain))) return std::nullopt;
  const auto is_counted = [&](Case c) {
    const auto reading = suspect.read(c);
    return is_wrong(reading) && lacks(suspect, *reading, first);
  };
  const auto is_left_out = [&](Case c) {
    const auto reading = suspect.read(c);
    if (!is_wrong(reading)) return false;
    for (std::int64_t at = first.from; at < first.to; ++at) mask_position(signature, c, at);
    return reading->answers(c);
  };
  for (const Field& field : signature.fields) {
    const std::string who = "a sequence whose " + field.name + " is 0 throughout ";
    if (is_of_zero(plain, field, first, is_counted)) {
      return Diagnosis{"sentinel compared", 0.95, who + "adds nothing"};
    }
    if (is_of_zero(plain, field, first, is_left_out)) {
      return Diagnosis{"wrong divisor", 0.95, who + "does not count"};
    }
  }
  return std::nullopt;
}

}  // namespace

Opinion taken_for_mask(const Suspect& suspect, const Case& plain) {
  if (!has_positions(suspect.signature())) return std::nullopt;
  if (const std::string field = field_that_masks(suspect, plain); !field.empty()) {
    return Diagnosis{"sentinel compared", 0.95,
                     "a position whose " + field + " is 0 does not count"};
  }
  if (const std::string token = label_that_masks(suspect, plain); !token.empty()) {
    return Diagnosis{"sentinel compared", 0.95,
                     "a position whose " + suspect.signature().ignore_label + " is " + token +
                         " does not count"};
  }
  if (const std::string log_prob = log_prob_that_masks(suspect, plain); !log_prob.empty()) {
    return Diagnosis{"sentinel compared", 0.95,
                     "a position whose log-probs are " + log_prob + " does not count"};
  }
  return zeros_that_mask_sequences(suspect, plain);
}

}  // namespace lossgate::properties
