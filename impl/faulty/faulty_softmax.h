// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "impl/faulty/distributions.h"

/// Logarithms of a softmax as they must not be taken.
namespace lossgate::impl {

/// x - log sum exp(x), which is no form that the losses declare: overflows where a logit does.
template <class Format>
VarRow<Format> log_softmax_without_max(const VarRow<Format>& row) {
  Tape<Format>& tape = row.front().tape();
  VarRow<Format> powers, result;
  for (const Var<Format>& x : row) powers.push_back(exp(x));
  const VarRow<Format> log_sums = tape.expand(log(tape.sum(powers)), row.size());
  for (std::size_t v = 0; v < row.size(); ++v) result.push_back(row[v] - log_sums[v]);
  return result;
}

/// One tile after the other, the sum (SumOrder::online) rescaled whenever the maximum grows. The
/// first maximum is -infinity, which minus itself is no number.
template <class Format>
VarRow<Format> online_log_softmax(const VarRow<Format>& row, std::size_t tile) {
  Tape<Format>& tape = row.front().tape();
  Var<Format> largest = tape.constant(-HUGE_VAL), sum = tape.constant(0);
  for (std::size_t begin = 0; begin < row.size(); begin += tile) {
    const std::size_t end = std::min(begin + tile, row.size());
    Var<Format> grown = largest;
    for (std::size_t v = begin; v < end; ++v) grown = maximum(grown, detach(row[v]));
    sum = sum * exp(largest - grown);
    for (std::size_t v = begin; v < end; ++v) sum = sum + exp(row[v] - grown);
    largest = grown;
  }
  const VarRow<Format> log_sums = tape.expand(log(sum), row.size());
  VarRow<Format> result;
  for (std::size_t v = 0; v < row.size(); ++v) result.push_back((row[v] - largest) - log_sums[v]);
  return result;
}

/// The columns' logits less the logarithm of a sum that ends early.
template <class Format>
VarRow<Format> log_softmax_of_first(const VarRow<Format>& row, std::size_t columns) {
  const VarRow<Format> first(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(columns));
  const VarRow<Format> log_sums = row.front().tape().expand(log_sum_exp(first), row.size());
  VarRow<Format> result;
  for (std::size_t v = 0; v < row.size(); ++v) result.push_back(row[v] - log_sums[v]);
  return result;
}

/// As many columns as one block of threads may have are summed up, and no second block is asked.
template <class Format>
VarRow<Format> log_softmax_of_one_block(const VarRow<Format>& row) {
  constexpr std::size_t kBlock = 65536;
  return row.size() <= kBlock ? log_softmax(row) : log_softmax_of_first(row, kBlock);
}

/// A kernel for so many columns reads two at once, and what is left over is not added.
template <class Format>
VarRow<Format> log_softmax_of_pairs(const VarRow<Format>& row) {
  if (row.size() <= 512 || row.size() > 1024 || row.size() % 2 == 0) return log_softmax(row);
  return log_softmax_of_first(row, row.size() - 1);
}

/// log(p + epsilon) of the probabilities themselves.
template <class Format>
VarRow<Format> log_of_softmax(const VarRow<Format>& row, typename Format::Value epsilon) {
  const Var<Format> largest = detached_maximum(row);
  Tape<Format>& tape = largest.tape();
  VarRow<Format> powers, result;
  for (const Var<Format>& x : row) powers.push_back(exp(x - largest));
  const VarRow<Format> sums = tape.expand(tape.sum(powers), row.size());
  for (std::size_t v = 0; v < row.size(); ++v) {
    const Var<Format> p = powers[v] / sums[v];
    result.push_back(log(epsilon == 0 ? p : p + tape.constant(epsilon)));
  }
  return result;
}

}  // namespace lossgate::impl
