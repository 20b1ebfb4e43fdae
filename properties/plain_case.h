// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "reference/spec/case.h"

/// Cases that a probe makes to try one thing by itself.
namespace lossgate::properties {

/// What is in a plain case beside ordinary numbers.
struct Plain {
  std::optional<Dtype> dtype = std::nullopt;  ///< of the fields; that of the given case otherwise
  bool padding = true;                        ///< ragged sequences
  bool empty_row = false;                     ///< one of them without a position that counts
  double spread = 2.0;        ///< largest distance of a log-prob, or a value, from its twin
  double logit_spread = 2.0;  ///< half the distance of the largest logit apart
  /// One axis of that length, one of everything else (two of the vocabulary, and of the sequences
  /// where that axis is not one of positions), the last tokens taken.
  std::optional<std::pair<Axis, std::int64_t>> length = std::nullopt;
  std::vector<Axis> few = {};  ///< axes that have no more than so many, which else have several
  std::int64_t at_most = 1;
  /// Log-probs are 16ths of the spread, so that sums and quarters of their differences are exact,
  /// and so low that one is below 0 still where it is four times as far from its twin.
  bool few_digits = false;
  int turn = 0;  ///< which of several choices of numbers
};

/// A case with the options and the reduction of `like`, of four sequences, if not told otherwise,
/// and ordinary numbers: no infinity, no overflow, no split, zeros where masked, an upstream
/// gradient of 1. Nothing where the loss has a field for which no ordinary number is known.
std::optional<Case> plain_case(const LossSignature& signature, const Case& like,
                               const Plain& plain = {});

/// The case with other ordinary numbers in the place of those of `like` that are not 0: its
/// options, shape, mask, labels and groups. Nothing where there is no plain case.
std::optional<Case> with_other_numbers(const LossSignature& signature, const Case& like,
                                       const Plain& plain);

/// The case with other ordinary numbers in one field alone; of labels with the next class.
Case with_another_field(const LossSignature& signature, Case c, const Field& field);

}  // namespace lossgate::properties
