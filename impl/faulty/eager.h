// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "impl/implementation.h"
#include "impl/trainer.h"

namespace lossgate::impl {

/// What every variant of a loss's eager program shares.
struct EagerProgram {
  std::string_view loss;
  Source source;
  std::string_view form = "";  ///< of the loss's forms
  SumOrder sums = SumOrder::pairwise;
};

/// A variant: `step` computes a micro-batch in f32, in f64 where the fields are f64, whatever the
/// width of what is stored; `trainer` combines the parts.
Implementation eager_implementation(const EagerProgram& program, std::string name, Step step,
                                    const Trainer& trainer = {});

/// A fault of the variant `eager` that only long cases show (rule E10).
Fault fault_of_length(std::string thread, std::string trigger);

/// The same, wrong on purpose.
Implementation with_fault(Implementation implementation, Fault fault);

}  // namespace lossgate::impl
