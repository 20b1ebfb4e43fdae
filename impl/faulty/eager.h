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

/// The step of Program<Wide>(batch, variant).run() where the fields are f64, else of
/// Program<Narrow>.
template <template <class> class Program, class Wide = double, class Narrow = float, class Variant>
Step step_by_width(Variant variant) {
  return [variant](MicroBatch& batch) {
    const bool wide = float_dtype(batch.signature, batch.part) == Dtype::f64;
    return wide ? Program<Wide>(batch, variant).run() : Program<Narrow>(batch, variant).run();
  };
}

/// The same as a trainer that computes in the fields' format, where that is no bf16: so does
/// `step`.
Implementation in_the_fields_format(Implementation implementation, Step step);

/// A fault of the variant `eager` that only long cases show (rule E10).
Fault fault_of_length(std::string thread, std::string trigger);

/// The same, wrong on purpose.
Implementation with_fault(Implementation implementation, Fault fault);

}  // namespace lossgate::impl
