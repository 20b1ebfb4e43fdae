// SPDX-License-Identifier: Apache-2.0
#include "properties/sentinels.h"

#include <algorithm>
#include <vector>

#include "properties/agreement.h"
#include "properties/case_facts.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

/// Tokenizers begin with the token that fills batches, or have it behind one or two of its kind.
constexpr std::int64_t kPaddingTokens = 3;

/// Whether what is wrong, beside the loss, is that there is nothing at the position.
bool lacks_position(const Reading& reading, std::int64_t position) {
  bool lacks = false;
  for (const ReadEntry& e : reading.entries()) {
    if (!e.wrong() || reading.kind(e) == OutputKind::loss) continue;
    const Place place = place_of(reading.study(), reading.outputs()[e.output], e.index);
    const std::int64_t at = place.sequence * reading.given().shape[Axis::tokens] + place.token;
    if (place.token < 0 || at != position || e.actual != 0.0) return false;
    lacks = true;
  }
  return lacks;
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
    const auto zero = suspect.read(c);
    if (!is_wrong(zero)) continue;
    if (lacks_position(*zero, position)) return field.name;
    mask_position(signature, c, position);
    if (zero->answers(c)) return field.name;
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
    const auto with_token = suspect.read(c);
    if (!is_wrong(with_token)) return false;
    if (lacks_position(*with_token, position)) return true;
    mask_position(signature, c, position);
    return with_token->answers(c);
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
