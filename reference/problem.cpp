// SPDX-License-Identifier: Apache-2.0
#include "reference/problem.h"

#include <algorithm>

namespace lossgate::reference {

Problem::Problem(const LossSignature& signature_in, const Case& case_in)
    : signature(signature_in),
      c(case_in),
      outputs(outputs_of(signature_in, case_in)),
      valid(valid_positions(signature_in, case_in)),
      sequences(std::max<std::int64_t>(case_in.shape[Axis::sequences], 0)),
      tokens(std::max<std::int64_t>(case_in.shape[Axis::tokens], 0)),
      parts(std::max<std::int64_t>(static_cast<std::int64_t>(case_in.split.parts.size()), 1)) {
  row_tokens.assign(static_cast<std::size_t>(sequences), 0);
  for (std::size_t i = 0; i < valid.size(); ++i) {
    if (valid[i]) ++row_tokens[i / static_cast<std::size_t>(tokens)];
  }
  for (std::int64_t count : row_tokens) {
    token_count += count;
    sequence_count += count > 0;
  }
}

}  // namespace lossgate::reference
