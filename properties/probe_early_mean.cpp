// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include "properties/probes.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

/// Sets of tokens that are tried, and how many of them have to show it.
constexpr int kTurns = 4, kFewest = 2;

/// Whether the answer is right where all sequences are one of the case's, whichever it is.
bool is_right_of_each(const Suspect& suspect, const Case& c) {
  const std::int64_t rows = c.shape[Axis::sequences];
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::vector<std::int64_t> alike(static_cast<std::size_t>(rows), row);
    const auto reading = suspect.read_if_made(batch_of(suspect.signature(), c, alike));
    if (!is_right(reading) || reading->numbers() == 0) return false;
  }
  return rows > 1;
}

}  // namespace

/// Of terms that are all the same a mean is what each is, and nothing is lost where it is taken too
/// early: the larger of two means is then the mean of what is larger.
Opinion probe_early_mean(Suspect& suspect) {
  const auto wrong_value = [](const std::optional<Reading>& reading) {
    return is_wrong(reading) && !reading->forward_right() && reading->finite();
  };
  const auto& plain = suspect.plain();
  if (suspect.signature().reductions.empty() || !wrong_value(plain)) return std::nullopt;
  int shown = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    auto c =
        suspect.plain_case({.padding = false, .few = {Axis::tokens}, .at_most = 1, .turn = turn});
    if (c) c->spec = plain->given().spec;
    if (!wrong_value(suspect.read_if_made(c))) continue;
    if (!is_right_of_each(suspect, *c)) return std::nullopt;
    ++shown;
  }
  if (shown < kFewest) return std::nullopt;
  return Diagnosis{"averaged too early", 0.85,
                   "each of some tokens is right where it is all there is, and all together are "
                   "wrong"};
}

}  // namespace lossgate::properties
