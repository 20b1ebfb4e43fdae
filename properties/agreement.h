// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "properties/evaluation.h"
#include "properties/verdict.h"
#include "reference/storage.h"

namespace lossgate::properties {

using reference::storage_error;

/// The place of an output entry, with what the mask says of it.
Place place_of(const CaseStudy& study, const OutputInfo& output, std::int64_t index);

/// Whether the output's dtype holds whatever the expectation allows.
bool in_range(const OutputInfo& output, const reference::Tracked& expected);

/// Whether every number of every output is finite.
bool all_finite(const LossResult& result);

/// Whether value and peak of an expectation are certainly within range: there the actual must be
/// finite (rule C1). `peak` comes from the stable form.
bool must_be_finite(const Arithmetic& arithmetic, const OutputInfo& output,
                    const reference::Tracked& expected);

/// The error allowed to a stored entry, storage included (rule B3): a distance beyond `half` is
/// wrong from kThreshold times this on.
double allowed_error(const OutputInfo& output, const reference::Tracked& expected);

/// How far a stored entry of such an arithmetic may lie from the expectation before it is wrong.
double largest_accepted(const Arithmetic& arithmetic, const OutputInfo& output,
                        const reference::Tracked& expected);

/// What is compared with what.
struct Comparison {
  CaseStudy& study;  ///< whose reference is expected
  const Arithmetic& arithmetic;
  const LossResult& actual;
  const Transformed* moved = nullptr;  ///< where the base's entries are in `actual`
  bool split = false;                  ///< results accumulated over the parts of the split
  bool exact_values = false;           ///< of an identity: values are rounded by sums alone
  CaseStudy::Wanted wanted = CaseStudy::Wanted::everything;
};

/// Rules B3 to B6 and C2 over all entries: violated at the entry with the largest error ratio,
/// vacuous where no entry keeps a digit.
Outcome compare(const Comparison& comparison);

/// Whether no position counts, and the contract says what then comes: an error, say.
bool empty_by_contract(Evaluation& evaluation);

/// Why a property cannot be asked: the case is to be refused, or the base gave no values.
std::optional<Outcome> unusable(Evaluation& evaluation);

/// The same, or a NaN stands at a valid position: all that is asked then is whether it surfaces or
/// is refused (rule C3), for what it reaches is a matter of the order of operations.
std::optional<Outcome> unusable_or_nan(Evaluation& evaluation);

/// The same, or the reference cannot judge this arithmetic (rules A1, B5).
std::optional<Outcome> incomparable(Evaluation& evaluation);

/// The actual result against the reference, whole case with whole case; compared once.
const Outcome& compare_whole(Evaluation& evaluation);

/// The transformed case's result against the base's expectations. What is bit for bit the base's
/// result is as right as that, and the reference is not asked again.
Outcome compare_transformed(Evaluation& evaluation, const Transform& transform, bool split = false);

/// Whose zeros may be of either sign: those at masked positions or, where other data is behind the
/// mask, all: each may add up positions (rule C4).
enum class Zeros { masked, all };

/// Bitwise equality of two results' outputs, but for signs of those zeros; NaNs of any payload are
/// equal. The place of the first difference is in the base's coordinates.
std::optional<Violation> first_difference(const CaseStudy& study, const LossResult& base,
                                          const LossResult& other, Zeros signs = Zeros::masked);

/// A refusal where values were due, or the reverse, or outputs that are missing or misshapen.
std::optional<Violation> malformed(const CaseStudy& study, const LossResult& actual);

}  // namespace lossgate::properties
