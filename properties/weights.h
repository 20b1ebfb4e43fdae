// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "properties/reading.h"

/// How much the terms of each sequence count, as formulas have it and as answers show it.
namespace lossgate::properties {

struct BatchCounts {
  explicit BatchCounts(const CaseStudy& study);
  BatchCounts(const CaseStudy& study, const std::vector<std::int64_t>& rows);  ///< of these alone

  double positions() const { return rows * columns; }

  double rows = 0.0, columns = 0.0;
  double tokens = 0.0, sequences = 0.0;  ///< that count
  std::vector<double> row_tokens;        ///< of all sequences
};

/// The reduction that the case asks for, as such or by an option.
Reduction declared_reduction(const LossSpec& spec);

double token_weight(const LossSpec& spec, Reduction reduction, const BatchCounts& counts,
                    std::size_t row);

/// The quotient of answer and formula, known up to an error.
struct RowFactor {
  double value, error;
  bool is(double predicted) const;
};
using RowFactors = std::map<std::size_t, RowFactor>;

/// Whether there are factors, all of which are the same.
bool has_one_factor(const RowFactors& factors);

/// The one factor of each sequence by which all wrong outputs of its positions differ from the
/// formula; where no such output has sequences, that of the loss for all of them. Empty where
/// answers are no multiples. Outputs without a wrong entry are not asked.
RowFactors row_factors(const Reading& reading);

/// The same of each position that counts, by its number: all of them, or none.
RowFactors position_factors(const Reading& reading);

}  // namespace lossgate::properties
