// SPDX-License-Identifier: Apache-2.0
#include "properties/sentinels.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "properties/agreement.h"
#include "properties/case_facts.h"
#include "properties/transforms.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

/// Tokenizers begin with the token that fills batches, or have it behind one or two of its kind.
constexpr std::int64_t kPaddingTokens = 3;

std::optional<ReadEntry> loss_of(const Reading& reading, const std::vector<ReadEntry>& entries) {
  const auto at = std::ranges::find_if(
      entries, [&](const ReadEntry& e) { return reading.kind(e) == OutputKind::loss; });
  return at == entries.end() ? std::nullopt : std::optional(*at);
}

/// Whether the loss, where there is one, is the formula's without the position's term, of which the
/// divisor still knows.
bool loss_lacks_term(const Suspect& suspect, const Reading& reading, std::int64_t position) {
  if (reading.outputs().front().kind != OutputKind::loss) return true;
  Case alone = reading.given();
  const std::vector<bool> valid = valid_positions(suspect.signature(), alone);
  for (std::int64_t other = 0; other < std::ssize(valid); ++other) {
    if (other != position) mask_position(suspect.signature(), alone, other);
  }
  const auto all = loss_of(reading, reading.entries()),
             own = loss_of(reading, reading.beside(alone));
  if (!all || !own) return false;
  const auto row = static_cast<std::size_t>(position / alone.shape[Axis::tokens]);
  const LossSpec& spec = alone.spec;
  const auto weight = [&](const CaseStudy& study) {
    return token_weight(spec, declared_reduction(spec), BatchCounts(study), row);
  };
  const double share = weight(reading.study()) / weight(CaseStudy(suspect.loss(), alone));
  const double lacking = all->expected - share * own->expected;
  return std::fabs(all->actual - lacking) <= 2.0 * (all->accepted + share * own->accepted);
}

/// Whether what is wrong is that there is nothing at the position.
bool lacks_position(const Suspect& suspect, const Reading& reading, std::int64_t position) {
  bool lacks = false;
  for (const ReadEntry& e : reading.entries()) {
    if (!e.wrong() || reading.kind(e) == OutputKind::loss) continue;
    const Place place = place_of(reading.study(), reading.outputs()[e.output], e.index);
    const std::int64_t at = place.sequence * reading.given().shape[Axis::tokens] + place.token;
    if (place.token < 0 || at != position || e.actual != 0.0) return false;
    lacks = true;
  }
  return lacks && loss_lacks_term(suspect, reading, position);
}

/// Whether a position of the case that counts does what a masked one does, counted or not.
bool is_left_out(const Suspect& suspect, Case c, std::int64_t position) {
  const auto reading = suspect.read(c);
  if (!is_wrong(reading)) return false;
  if (lacks_position(suspect, *reading, position)) return true;
  mask_position(suspect.signature(), c, position);
  return reading->answers(c);
}

}  // namespace

std::string field_that_masks(const Suspect& suspect, const Case& plain) {
  const LossSignature& signature = suspect.signature();
  const std::vector<bool> valid = valid_positions(signature, plain);
  const std::int64_t position = std::ranges::find(valid, true) - valid.begin();
  if (position == std::ssize(valid)) return "";
  for (const Field& field : signature.fields) {
    Case c = plain;
    Tensor& tensor = c.batch.at(field.name);
    if (!is_positional(field) || !is_float(tensor.dtype)) continue;
    const std::int64_t each = entries_per_position(c, tensor);
    for (std::int64_t i = 0; i < each; ++i) tensor.set(position * each + i, 0.0);
    if (is_left_out(suspect, std::move(c), position)) return field.name;
  }
  return "";
}

std::optional<std::int64_t> label_that_masks(const Suspect& suspect, const Case& plain) {
  const LossSignature& signature = suspect.signature();
  const std::vector<bool> valid = valid_positions(signature, plain);
  const auto first = std::ranges::find(valid, true);
  const auto last = std::find(valid.rbegin(), valid.rend(), true);
  const std::int64_t positions[] = {first - valid.begin(), valid.rend() - last - 1};
  if (signature.ignore_label.empty() || positions[0] >= positions[1]) return std::nullopt;
  const auto masks = [&](std::int64_t token, std::int64_t position) {
    Case c = plain;
    Tensor& label = c.batch.at(signature.ignore_label);
    for (std::int64_t i = 0; i < label.size(); ++i) {
      if (i != position && label.integer_at(i) != token) continue;
      if (!valid[static_cast<std::size_t>(i)]) continue;
      label.set(i, static_cast<double>(i == position ? token : token + 1));
    }
    return is_left_out(suspect, std::move(c), position);
  };
  const std::int64_t most = std::min(kPaddingTokens, plain.shape[Axis::vocab] - 1);
  for (std::int64_t token = 0; token < most; ++token) {
    const auto does = [&](std::int64_t position) { return masks(token, position); };
    if (std::ranges::all_of(positions, does)) return token;
  }
  return std::nullopt;
}

std::string field_that_masks_sequences(const Suspect& suspect, const Case& plain) {
  const LossSignature& signature = suspect.signature();
  const std::int64_t tokens = plain.shape[Axis::tokens];
  if (plain.shape[Axis::sequences] < 2 || !is_right(suspect.read(plain))) return "";
  for (const Field& field : signature.fields) {
    Case c = plain;
    Tensor& tensor = c.batch.at(field.name);
    if (!is_positional(field) || !is_float(tensor.dtype)) continue;
    const std::int64_t each = entries_per_position(c, tensor);
    for (std::int64_t i = 0; i < tokens * each; ++i) tensor.set(i, 0.0);
    const auto zeros = suspect.read(c);
    if (!is_wrong(zeros)) continue;
    for (std::int64_t at = 0; at < tokens; ++at) mask_position(signature, c, at);
    if (zeros->answers(c)) return field.name;
  }
  return "";
}

}  // namespace lossgate::properties
