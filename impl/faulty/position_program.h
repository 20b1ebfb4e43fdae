// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "impl/faulty/eager.h"
#include "impl/faulty/tape_functions.h"
#include "impl/faulty/tape_result.h"
#include "impl/implementation.h"
#include "impl/token_weight.h"
#include "impl/trainer.h"

namespace lossgate::impl {

/// How a program on a tape treats positions and counts.
struct PositionRules {
  std::string_view leaf;          ///< the differentiable field
  bool multiplies_mask = false;   ///< computes masked positions too, and multiplies them by 0
  bool reads_masked = false;      ///< computes masked positions too, and adds what comes
  bool local_means = false;       ///< divides by what this micro-batch counts
  bool counts_masked = false;     ///< divides a token mean by all positions
  bool divides_by_zero = false;   ///< where a mean counts nothing
  bool ignores_upstream = false;  ///< hands on the gradient of the loss, whatever comes from above
  bool gradient_of_sum = false;   ///< a mean's gradient is the sum's
  std::int64_t group = 1;         ///< the loss, not its gradient, lacks what such groups leave over
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
  return step_by_width<Program, F64, F32>(fault);
}

/// The factor of a row's terms in the loss.
template <class V>
V weight_of_row(const MicroBatch& batch, const PositionRules& rules, std::int64_t row) {
  const LossSpec& spec = batch.part.spec;
  const std::int64_t own = batch.positions.row_tokens[static_cast<std::size_t>(row)];
  Totals totals =
      rules.local_means ? Totals{batch.positions.tokens, batch.positions.sequences} : batch.totals;
  if (rules.counts_masked) totals.tokens = totals.rows * batch.part.shape[Axis::tokens];
  const bool nothing = spec.reduction == Reduction::sequence_mean ? own == 0 : totals.tokens == 0;
  if (rules.divides_by_zero && nothing && spec.reduction != Reduction::sum) {
    return std::numeric_limits<V>::infinity();
  }
  return token_weight<V>(spec, totals, own);
}

/// A loss of one term a position, as a chain of tensor operations that is differentiated
/// automatically: `term_of(row, position)` gives the term from the leaves of that position, numbers
/// on one tape.
template <class Format, class TermOf>
LossResult run_by_row(MicroBatch& batch, const PositionRules& rules, TermOf&& term_of) {
  using V = typename Format::Value;
  const Tensor& field = batch.part.batch.at(rules.leaf);
  const std::int64_t tokens = field.extents[1], positions = field.extents[0] * tokens;
  Tape<Format> tape;
  std::vector<Var<Format>> terms, weighted;
  std::vector<std::vector<Var<Format>>> rows(static_cast<std::size_t>(positions));
  for (std::int64_t at = 0; at < positions; ++at) {
    const auto i = static_cast<std::size_t>(at);
    const std::int64_t width = field.size() / positions;
    const bool valid = batch.positions.valid[i] != 0;
    const bool computes = valid || rules.multiplies_mask || rules.reads_masked;
    for (std::int64_t v = 0; computes && v < width; ++v) {
      rows[i].push_back(tape.variable(static_cast<V>(field.at(at * width + v))));
    }
    Var<Format> term = computes ? term_of(rows[i], at) : tape.constant(V(0));
    if (rules.multiplies_mask) term = term * tape.constant(V(valid));
    terms.push_back(term);
    weighted.push_back(term * tape.constant(weight_of_row<V>(batch, rules, at / tokens)));
  }
  const Var<Format> loss = tape.sum(weighted);
  const Var<Format> differentiated = rules.gradient_of_sum ? tape.sum(terms) : loss;
  tape.backward(differentiated,
                rules.ignores_upstream ? V(1) : static_cast<V>(batch.part.upstream));
  weighted.resize(weighted.size() - weighted.size() % static_cast<std::size_t>(rules.group));
  return result_by_row(tape, rules.group > 1 ? tape.sum(weighted) : loss, terms, rows,
                       field.extents, "gradient." + std::string(rules.leaf));
}

/// The same with one leaf a position: `term_of(leaf, position)`.
template <class Format, class TermOf>
LossResult run_by_position(MicroBatch& batch, const PositionRules& rules, TermOf&& term_of) {
  return run_by_row<Format>(batch, rules,
                            [&](const std::vector<Var<Format>>& row, std::int64_t at) {
                              return term_of(row.front(), at);
                            });
}

}  // namespace lossgate::impl
