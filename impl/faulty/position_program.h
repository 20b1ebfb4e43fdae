// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "impl/faulty/tape_functions.h"
#include "impl/faulty/tape_result.h"
#include "impl/token_weight.h"

namespace lossgate::impl {

/// How a program on a tape treats positions and counts.
struct PositionRules {
  std::string_view leaf;         ///< the differentiable field
  bool multiplies_mask = false;  ///< computes masked positions too, and multiplies them by 0
  bool local_means = false;      ///< divides by what this micro-batch counts
};

/// A loss of one term a position, as a chain of tensor operations that is differentiated
/// automatically: `term_of(leaf, position)` gives the term, a number on the leaf's tape.
template <class Format, class TermOf>
LossResult run_by_position(MicroBatch& batch, const PositionRules& rules, TermOf&& term_of) {
  using V = typename Format::Value;
  const Extents positions{batch.part.shape[Axis::sequences], batch.part.shape[Axis::tokens]};
  const Totals totals =
      rules.local_means ? Totals{batch.positions.tokens, batch.positions.sequences} : batch.totals;
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
    const auto row = static_cast<std::size_t>(at / positions[1]);
    const std::int64_t own = batch.positions.row_tokens[row];
    weighted.push_back(term * tape.constant(token_weight<V>(batch.part.spec, totals, own)));
  }
  const Var<Format> loss = tape.sum(weighted);
  tape.backward(loss, static_cast<V>(batch.part.upstream));
  return result_by_position(tape, loss, terms, leaves, positions,
                            "gradient." + std::string(rules.leaf));
}

}  // namespace lossgate::impl
