// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "properties/evaluation.h"

namespace lossgate::properties {

/// One entry of an answer beside the formula's.
struct ReadEntry {
  std::size_t output = 0;
  std::int64_t index = 0;
  double actual = 0.0;
  double expected = 0.0;
  double accepted = 0.0;  ///< the largest distance that is right
  bool exact_zero = false;

  double distance() const;
  bool wrong() const;  ///< not within what is accepted, or not finite
};

/// An implementation's answer to one case, entry by entry. Entries of which nothing is known are
/// left out. A probe reads only finite expectations.
class Reading {
 public:
  /// Nothing where the case is refused, not computed, or answered by nothing that can be compared.
  static std::optional<Reading> of(const reference::Loss& loss,
                                   const impl::Implementation& implementation, const Case& c);

  const Case& given() const { return *given_; }
  const std::vector<OutputInfo>& outputs() const { return study_->outputs(); }
  CaseStudy& study() const { return *study_; }
  const LossResult& result() const { return result_; }
  const Arithmetic& arithmetic() const { return arithmetic_; }
  const std::vector<ReadEntry>& entries() const { return entries_; }
  OutputKind kind(const ReadEntry& entry) const { return outputs()[entry.output].kind; }

  std::int64_t numbers() const;  ///< entries of which the formula's is not 0
  bool right() const;            ///< no entry is wrong
  bool finite() const;           ///< every entry that must be finite is
  bool forward_right() const;
  bool forward_finite() const;
  /// Whether its largest error is many times smaller, as a share of what is accepted, than the
  /// other's: an error that is hardly one there and hardly none here is the same error.
  bool is_much_nearer_than(const Reading& other) const;

  /// Whether the answer is what the formula gives to another case of the same shape, within what is
  /// accepted there. A value that callers pin asks the formula as well: it is the implementation
  /// that computes no other one.
  enum class Of { everything, values, gradients };
  bool answers(const Case& other, Of which = Of::everything) const;
  /// Whether it is so of a case whose numbers of options may lie beyond the formula's ranges.
  bool answers_beyond_ranges(const Case& other) const;
  /// The answer beside what the formula gives to that case; empty where they have no shape in
  /// common.
  std::vector<ReadEntry> beside(const Case& other) const;
  /// The same under another arithmetic.
  bool answers_under(const Arithmetic& arithmetic) const;

 private:
  std::vector<ReadEntry> beside(const reference::Loss& formula, const Case& other) const;

  std::shared_ptr<Case> given_;
  std::shared_ptr<CaseStudy> study_;
  std::shared_ptr<const reference::Loss> formula_;  ///< of which no option is pinned
  Arithmetic arithmetic_;
  LossResult result_;
  std::vector<ReadEntry> entries_;
};

/// The options as the formula has them, where a signature of it narrows them to what callers ask.
std::vector<Option> options_of_formula(const LossSignature& signature);

/// Whether there is an answer, and it is right, wrong, wrong in gradients alone, or finite.
bool is_right(const std::optional<Reading>& reading);
bool is_wrong(const std::optional<Reading>& reading);
bool is_wrong_in_gradients_alone(const std::optional<Reading>& reading);
bool is_finite(const std::optional<Reading>& reading);

}  // namespace lossgate::properties
