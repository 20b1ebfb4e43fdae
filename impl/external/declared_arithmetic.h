// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/spec/arithmetic.h"

namespace lossgate::impl {

/// A format by name, or that in which a case stores its fields.
using Format = std::optional<Dtype>;

/// How a function forms its sums.
struct DeclaredSum {
  SumOrder order = SumOrder::pairwise;
  double width = 1.0;
  Format in;  ///< of the running sum; that of intermediates unless said
  bool operator==(const DeclaredSum&) const = default;
};

/// How a function says that it computes: [subject.arithmetic] of a lossgate.toml. What is not said
/// is PyTorch's: every operation in the fields' format, sums at worst in the lanes of a register,
/// as those of log_softmax, nothing stored on the way.
struct DeclaredArithmetic {
  Format compute = {};    ///< of intermediates
  std::string form = {};  ///< of the loss's forms; empty: undeclared, the widest counts
  std::vector<std::pair<Stage, Format>> stages = {};  ///< intermediates stored in a format
  std::optional<DeclaredSum> sum = {}, matmul = {};
  double exp_slope = 0.0;  ///< ulps that exp loses for each unit of its argument
  std::optional<bool> subnormals_flushed = {};  ///< to 0; not said: they may be (arithmetic_of)
  bool operator==(const DeclaredArithmetic&) const = default;
};

/// Whether the format has the exponents of f32, or more: where it has not, numbers beyond its
/// range, and below its normal one, are ordinary.
constexpr bool has_wide_exponents(Dtype format) {
  return min_normal(format) <= min_normal(Dtype::f32);
}

/// Subnormals of which nothing is said may be flushed where the format of intermediates has the
/// exponents of f32, or more: XLA does so on CPUs, and PyTorch in matrix products of bf16 where a
/// CPU has instructions for them. Nobody does in f16, whose subnormals are ordinary numbers.
Arithmetic arithmetic_of(const DeclaredArithmetic& declared, Dtype stored);

/// The format in which a stage is declared to be stored; nothing where it is not.
std::optional<Dtype> stage_format(const DeclaredArithmetic& declared, Stage stage, Dtype stored);

/// The lines that declare it, without the table's name; empty where nothing is said.
std::vector<std::string> toml_lines(const DeclaredArithmetic& declared);

/// The words of a lossgate.toml.
const std::vector<std::pair<std::string_view, Stage>>& stage_words();
const std::vector<std::pair<std::string_view, SumOrder>>& order_words();

}  // namespace lossgate::impl
