// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "impl/faulty/tape_functions.h"
#include "impl/faulty/tape_result.h"
#include "impl/implementation.h"
#include "impl/token_weight.h"
#include "impl/trainer.h"

namespace lossgate::impl {

/// How a program on a tape treats positions and counts.
struct PositionRules {
  std::string_view leaf;         ///< the differentiable field
  bool multiplies_mask = false;  ///< computes masked positions too, and multiplies them by 0
  bool local_means = false;      ///< divides by what this micro-batch counts
  bool divides_by_zero = false;  ///< where a mean counts nothing
};

/// What such a program reads of its micro-batch.
template <class Format>
class PositionBatch {
 public:
  using V = typename Format::Value;

  explicit PositionBatch(const MicroBatch& batch) : part_(batch.part) {}

  V option(std::string_view name) const { return static_cast<V>(part_.spec.number(name)); }
  /// An option that may be none.
  std::optional<V> limit(std::string_view name) const {
    return part_.spec.is_none(name) ? std::nullopt : std::optional(option(name));
  }
  V field(std::string_view name, std::int64_t at) const {
    return static_cast<V>(part_.batch.at(name).at(at));
  }

 private:
  const Case& part_;
};

/// The step of Program<Format>(batch, fault).run(): in f64 where the fields are f64, else in f32.
template <template <class> class Program, class Fault>
Step step_of(Fault fault) {
  return [fault](MicroBatch& batch) {
    const bool wide = float_dtype(batch.signature, batch.part) == Dtype::f64;
    return wide ? Program<F64>(batch, fault).run() : Program<F32>(batch, fault).run();
  };
}

/// The factor of a row's terms in the loss.
template <class V>
V weight_of_row(const MicroBatch& batch, const PositionRules& rules, std::int64_t row) {
  const LossSpec& spec = batch.part.spec;
  const std::int64_t own = batch.positions.row_tokens[static_cast<std::size_t>(row)];
  const Totals totals =
      rules.local_means ? Totals{batch.positions.tokens, batch.positions.sequences} : batch.totals;
  const bool nothing = spec.reduction == Reduction::sequence_mean ? own == 0 : totals.tokens == 0;
  if (rules.divides_by_zero && nothing && spec.reduction != Reduction::sum) {
    return std::numeric_limits<V>::infinity();
  }
  return token_weight<V>(spec, totals, own);
}

/// A loss of one term a position, as a chain of tensor operations that is differentiated
/// automatically: `term_of(leaf, position)` gives the term, a number on the leaf's tape.
template <class Format, class TermOf>
LossResult run_by_position(MicroBatch& batch, const PositionRules& rules, TermOf&& term_of) {
  using V = typename Format::Value;
  const Extents positions{batch.part.shape[Axis::sequences], batch.part.shape[Axis::tokens]};
  const Tensor& field = batch.part.batch.at(rules.leaf);
  Tape<Format> tape;
  std::vector<Var<Format>> leaves, terms, weighted;
  for (std::int64_t at = 0; at < positions[0] * positions[1]; ++at) {
    const bool valid = batch.positions.valid[static_cast<std::size_t>(at)] != 0;
    const bool computes = valid || rules.multiplies_mask;
    leaves.push_back(computes ? tape.variable(static_cast<V>(field.at(at))) : tape.constant(V(0)));
    Var<Format> term = computes ? term_of(leaves.back(), at) : tape.constant(V(0));
    if (rules.multiplies_mask) term = term * tape.constant(V(valid));
    terms.push_back(term);
    weighted.push_back(term * tape.constant(weight_of_row<V>(batch, rules, at / positions[1])));
  }
  const Var<Format> loss = tape.sum(weighted);
  tape.backward(loss, static_cast<V>(batch.part.upstream));
  return result_by_position(tape, loss, terms, leaves, positions,
                            "gradient." + std::string(rules.leaf));
}

}  // namespace lossgate::impl
