// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reference/spec/case.h"
#include "reference/spec/result.h"

namespace lossgate::properties {

/// A case derived from another, and where the base's rows went.
struct Transformed {
  Case c;
  std::vector<std::int64_t> row_of = {};  ///< base sequence -> its place here; empty: unmoved
  std::int64_t token_offset = 0;          ///< base token t is here at t + token_offset

  /// The index, in this case's output, of an entry of the base's output.
  std::int64_t index_of(const OutputInfo& base, const Extents& here, std::int64_t index) const;
};

/// These sequences, in this order, as a whole batch.
Case batch_of(const LossSignature& signature, const Case& whole,
              const std::vector<std::int64_t>& rows);

/// The first sequence with a position that counts, which is the one that kRowMasked masks; -1 where
/// there is none.
std::int64_t first_live_sequence(const std::vector<bool>& valid, std::int64_t tokens);

/// Masks a position. What stood there keeps to what callers leave at masked positions.
void mask_position(const LossSignature& signature, Case& c, std::int64_t position);

/// A named way to derive a case, or nothing where it does not apply. Any choice that it makes
/// follows from the case, so the result is the same on every call.
struct Transform {
  std::string_view name;
  std::optional<Transformed> (*apply)(const LossSignature&, const Case& whole, const Case& split);
};

extern const Transform kRepeated;         ///< the same case, evaluated again
extern const Transform kMaskedFinite;     ///< other finite data, +-1e4 among it, where masked
extern const Transform kMaskedNonFinite;  ///< infinities, NaN and illegal labels where masked
extern const Transform kPadded;  ///< masked columns on both sides and, where asked, a masked row
extern const Transform kRowsPermuted;
extern const Transform kSplit;  ///< the case's own split
extern const Transform kAllMasked;
extern const Transform kRowMasked;  ///< one live row masked, the others as they were, where asked
extern const Transform kOneLeft;    ///< all live positions masked but one
extern const Transform kZeroAdvantage;  ///< and the coefficient of all other terms 0
extern const Transform kNanAtValid;  ///< NaN, or an infinity that must surface, at one valid entry
extern const Transform kNanInAnotherField;  ///< the same in the field after that one, elsewhere
extern const Transform kNanInAThirdField;   ///< and in the field after both
extern const Transform kNanOfModel;         ///< NaN in all differentiable fields of one position
extern const Transform kOnPolicy;
extern const Transform kWithoutGradients;  ///< the same case, asked for its loss alone
extern const Transform kFirstAlone;        ///< asked for the gradient of its first field alone
extern const Transform kSecondAlone;       ///< asked for that of its second alone, of three
extern const Transform kThirdAlone;        ///< asked for that of its third alone
extern const Transform kFirstFrozen;       ///< asked for those of all others
extern const Transform kSecondFrozen;      ///< asked for all but that of its second, of three
extern const Transform kThirdFrozen;       ///< asked for all but that of its third
extern const Transform kEvaluatedBetween;  ///< with other data evaluated before its backward
extern const Transform kForwardsBetween;   ///< with two forwards of other data before its backward
extern const Transform kSummedLosses;      ///< with the loss of other data added to its own
extern const Transform kBackwardTwice;     ///< in a second backward of its graph
extern const Transform kBackwardByRows;    ///< in two, each of half of the sequences
extern const Transform kUpdated;           ///< after a step of other parameters, changed in place
extern const Transform kUnderAutocast;     ///< with its forward inside torch.autocast
extern const Transform kStepForward;  ///< differentiable fields moved a little, for differences
extern const Transform kStepBackward;
extern const std::span<const Transform> kInvalid;  ///< each with one thing that must be refused

}  // namespace lossgate::properties
