// SPDX-License-Identifier: Apache-2.0
#include "reference/problem.h"

#include <algorithm>

namespace lossgate::reference {
namespace {

std::int64_t most_averaged(const Split& split) {
  std::int64_t most = 1;
  for (const Split::Part& part : split.parts) {
    most = std::max(most, std::ranges::count(split.parts, part.rank, &Split::Part::rank));
  }
  return split.world * most;
}

}  // namespace

Accumulation::Accumulation(const Split& split)
    : parts(std::max<std::int64_t>(std::ssize(split.parts), 1)), averaged(most_averaged(split)) {}

Problem::Problem(const LossSignature& signature_in, const Case& case_in)
    : signature(signature_in),
      c(case_in),
      outputs(outputs_of(signature_in, case_in)),
      valid(valid_positions(signature_in, case_in)),
      sequences(std::max<std::int64_t>(case_in.shape[Axis::sequences], 0)),
      tokens(std::max<std::int64_t>(case_in.shape.positions(), 0)),
      accumulation(case_in.split) {
  row_tokens.reserve(static_cast<std::size_t>(sequences));
  auto row = valid.begin();
  for (std::int64_t s = 0; s < sequences; ++s, row += tokens) {
    const std::int64_t count = std::count(row, row + tokens, true);
    row_tokens.push_back(count);
    token_count += count;
    sequence_count += count > 0;
  }
}

double Problem::largest_divisor() const {
  const auto longest = row_tokens.empty() ? std::int64_t{0} : *std::ranges::max_element(row_tokens);
  const auto rows = static_cast<double>(sequence_count);
  switch (c.spec.reduction) {
    case Reduction::token_mean:
      return static_cast<double>(token_count);
    case Reduction::sequence_mean:
      return rows * static_cast<double>(longest);
    case Reduction::seq_mean_token_sum_norm:
      return rows * c.spec.number("max_length");
    case Reduction::sum_over_items:
      return c.spec.number("num_items");
    default:
      return 1.0;
  }
}

double Problem::positions_per_counted() const {
  const auto times = [](std::int64_t all, std::int64_t counted) {
    return counted > 0 ? static_cast<double>(all) / static_cast<double>(counted) : 1.0;
  };
  const std::int64_t padded = tokens + (signature.tokens_paddable ? kPaddingTokens : 0);
  const std::int64_t rows = sequences + (signature.tokens_paddable ? kPaddingSequences : 0);
  if (c.spec.reduction == Reduction::token_mean) return times(rows * padded, token_count);
  double most = 1.0;
  if (c.spec.reduction != Reduction::sequence_mean) return most;
  for (const std::int64_t count : row_tokens) most = std::max(most, times(padded, count));
  return most;
}

}  // namespace lossgate::reference
