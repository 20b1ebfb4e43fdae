// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "reference/losses/moments.h"
#include "reference/losses/options.h"
#include "reference/problem.h"

namespace lossgate::reference {

/// Advantages made comparable over a batch (an operation: tensors in, tensors out).
///
/// Formula: whitened[s,t] = (advantage[s,t] - mean) / sqrt(variance + epsilon), both over all valid
///   tokens, the variance with one less for a divisor, of one token 0; without `shift_mean` the
///   mean is added again.
/// Shapes: all [sequences, tokens]. Units: none, or, with the mean, its own. Gradient: none.
///   Masked positions get 0.
/// Error: what is masked must not be counted; of one token the divisor is 0 before any epsilon;
///   E[a^2] - E[a]^2 of equal advantages is negative; -mean / deviation left at masked positions.
/// Source: TRL and verl `masked_whiten`; alibaba/ROLL#475; slime `distributed_masked_whiten`.
struct Whitening {
  static LossSignature signature() {
    return {
        .id = "whitening",
        .title = "advantages of mean 0 and deviation 1 over the valid tokens of a batch",
        .formula = "(advantage - mean) / sqrt(unbiased variance + epsilon), or plus the mean",
        .source = "TRL masked_whiten; verl masked_whiten; alibaba/ROLL#475",
        .options = {{.name = "shift_mean",
                     .kind = Option::Kind::flag,
                     .standard = 1.0,
                     .high = 1.0,
                     .doc = "whether the result has mean 0, not the mean that there was"},
                    real_option("epsilon", 1e-8, 1e-9, 0.01, "added to the variance")},
        .fields = {{.name = "advantage",
                    .role = Role::constant,
                    .quantity = Quantity::reward,
                    .axes = {Axis::sequences, Axis::tokens},
                    .infinity = Infinity::surfaces,
                    .doc = "of the token, wherever its zero lies"},
                   mask_field()},
        .outputs = {{.name = "whitened",
                     .axes = {Axis::sequences, Axis::tokens},
                     .doc = "0 where masked",
                     .range = range}},
        .mask = "mask",
        .splittable = false,
    };
  }

  static std::optional<std::pair<double, double>> range(const Case& c) {
    if (c.spec.number("shift_mean") == 0.0) return std::nullopt;
    return range_of_standardised(c.shape[Axis::sequences] * c.shape[Axis::tokens], true);
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto advantage = in.field("advantage");
    const auto write = out.writer("whitened");
    std::vector<S> valid;
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (in.valid(s, t)) valid.push_back(advantage(s, t));
      }
    }
    const Whitener<S> whitened(static_cast<std::int64_t>(valid.size()),
                               in.sequences() * in.tokens(), in.option("epsilon"),
                               [&](std::int64_t i) { return valid[static_cast<std::size_t>(i)]; });
    const bool shifts = in.spec().number("shift_mean") != 0.0;
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        const S own = in.valid(s, t) ? whitened(advantage(s, t)) : S(0);
        write(store(Stage::per_token, shifts || !in.valid(s, t) ? own : S(own + whitened.mean())),
              s, t);
      }
    }
  }
};

}  // namespace lossgate::reference
