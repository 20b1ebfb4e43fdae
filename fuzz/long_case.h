// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fuzz/domains/long_shape.h"
#include "reference/spec/case.h"
#include "reference/spec/signature.h"

/// Cases as long as production's, and of each size on the way there (rule E10).
namespace lossgate::fuzz {

/// What a long case is.
enum class LongForm {
  plain,          ///< every option at its default, each position of a plain kind, two sequences
  whole,          ///< nothing is masked
  other_option,   ///< one option has another value than its default
  other_options,  ///< each has
  padded,         ///< plain where it counts: all sequences save one are padded, or one is empty
  thin,           ///< a few positions count, the first, the last, and where blocks begin
  hostile,        ///< all but its length is drawn as short cases are
  crossed,        ///< plain, and long along a second axis besides
  ruled_out,      ///< plain, but of each row of logits the first tokens are impossible
  far,            ///< plain, but all logits of a row, or all but the last, lie far below 0
};

/// Whether a filter may leave tokens of it impossible.
inline bool is_filtered(const Field& field) {
  return field.quantity == Quantity::logit && field.infinity == Infinity::legal;
}

/// How long a case is, of which dtype and form.
struct Length {
  Tier extents;
  Dtype dtype;
  LongForm form = LongForm::plain;
  std::optional<Reduction> reduction = std::nullopt;  ///< as the options are drawn, if none
  std::optional<std::size_t> option = std::nullopt;   ///< whose turn it is, of other_option; any
};

/// Whether most of it is masked, and holds what callers may leave behind a mask.
bool hides(const Length& length);

/// Whether an ordinary unit test might hold such a case, if it were shorter.
bool is_plain(const Length& length);

/// For each of production's lengths (domains/shape.h: longest_tiers) one with the defaults, along a
/// vocabulary one more of which logits lie far from 0, and one of which tokens are ruled out, where
/// they can be, where there are options, one without the defaults, and along tokens a padded one;
/// then one of each tier. Dtypes, reductions and options take turns, and of tiers plain cases,
/// those of one other option and, where blocks are full, whole ones, along tokens padded ones,
/// along a vocabulary those far from 0 and those ruled out, which the root seed begins elsewhere;
/// where something is left over, a hostile one besides, and of every second of thousands one of one
/// other option in its place; then those of two long axes. Last, in the finest dtype, a thin one of
/// production's lengths along positions that can be masked.
std::vector<Length> lengths_of(std::uint64_t root_seed, const LossSignature& signature,
                               std::span<const Dtype> dtypes);

/// A case that is so long. Where it is not hostile a few of many positions are masked, never the
/// last, and the last token is taken, and those where blocks of a vocabulary meet; a hidden state
/// is 0 but for a few of its coordinates, the last one too: what is lost there shows. The same root
/// seed gives the same case.
Case draw_long_case(std::uint64_t root_seed, const LossSignature& signature, const Length& length);

}  // namespace lossgate::fuzz
