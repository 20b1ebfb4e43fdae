// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ci/evidence/subjects.h"
#include "fuzz/choices.h"
#include "properties/evaluation.h"

namespace lossgate::ci::evidence {

/// One entry of the result and what one unit of the fault adds to it.
struct Push {
  std::size_t output;
  std::int64_t index;
  double amount;
};

/// A sound implementation's answer to one case, into which faults of any size can be put.
class Pushed {
 public:
  Pushed(const Sound& sound, const Case& c);

  /// Whether the answer is compared with the formula at all.
  bool usable() const { return usable_; }

  /// The size of fault from which on an entry must lie beyond its bound; infinite where none must.
  double implied(const std::vector<Push>& pushes) const;

  /// Whether the answer with a fault of that size is no longer the formula.
  bool noticed(const std::vector<Push>& pushes, double size) const;

  /// Where a fault sits, drawn; empty where the case has no place for it.
  using Fault = std::vector<Push> (Pushed::*)(fuzz::Choices&) const;
  std::vector<Push> gradient_entry(fuzz::Choices& choices) const;
  std::vector<Push> loss(fuzz::Choices& choices) const;
  std::vector<Push> count(fuzz::Choices& choices) const;         ///< of what the sum is divided by
  std::vector<Push> token_term(fuzz::Choices& choices) const;    ///< in the loss alone
  std::vector<Push> token_weight(fuzz::Choices& choices) const;  ///< in loss and gradients

 private:
  struct Position {
    std::int64_t sequence, token;
  };
  std::optional<Position> position(fuzz::Choices& choices) const;
  double term_of(const Position& at) const;
  const OutputInfo& output(std::size_t index) const { return study_->outputs()[index]; }

  const Sound& sound_;
  Arithmetic arithmetic_;
  std::unique_ptr<properties::CaseStudy> study_;
  LossResult answer_;
  std::vector<const Tensor*> values_;
  bool usable_ = false;
};

}  // namespace lossgate::ci::evidence
