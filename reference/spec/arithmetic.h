// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "reference/spec/dtype.h"

namespace lossgate {

/// The order in which a sum of n terms is formed; it decides how roundoffs pile up (rule B1).
enum class SumOrder {
  pairwise,    ///< log2 n
  lanes,       ///< `width` running sums, then pairwise: n/width + log2 width
  blocked,     ///< blocks of `width` terms pairwise, the blocks one after the other
  sequential,  ///< one after the other: n
  online,      ///< rescaled running sum over tiles of `width` terms
  unknown,     ///< n
};

struct SumRule {
  double roundoff = 0.0;
  SumOrder order = SumOrder::unknown;
  double width = 1.0;

  /// How many roundoffs a term can meet on its way through a sum of n terms.
  double growth(double n) const;
  bool operator==(const SumRule&) const = default;
};

/// The places where an implementation may store an intermediate in another precision.
enum class Stage { logits, log_prob, per_token, loss, gradient, accumulate, count };

/// Rounding at a store: nothing where roundoff is 0.
struct Store {
  double roundoff = 0.0;
  double eta = 0.0;  ///< smallest positive number that the store keeps, 0 where nothing is stored
  /// Largest number that it keeps, where that is less than the compute format's.
  double largest = std::numeric_limits<double>::infinity();
  bool operator==(const Store&) const = default;
};

/// How well elementary functions are computed: |error| <= factor u |result| for a result of
/// magnitude 1, that is 2 x the documented ulps.
struct MathLibrary {
  double exp = 2.0, log = 2.0, log1p = 2.0, expm1 = 2.0, tanh = 2.0, sigmoid = 4.0, sqrt = 1.0;
  double exp_slope = 0.0;  ///< added to `exp` per unit of |argument| (exp2-based code: 1 or more)
  bool operator==(const MathLibrary&) const = default;
};

/// How an implementation computes. The reference marks stages, sums and functions; the tracked
/// scalar reads here what each costs, so an error bound belongs to a pair (case, arithmetic).
struct Arithmetic {
  Dtype compute = Dtype::f32;  ///< format of elementwise results; decides what overflows
  double roundoff = 0.0;       ///< of elementwise operations
  double eta = 0.0;            ///< smallest positive elementwise result
  /// Subnormals are read and written as 0: what is below this number, the smallest normal one, is
  /// lost at every operation, additions included. 0 where nothing is flushed.
  double flush = 0.0;
  SumRule sum;
  SumRule matmul;
  std::array<Store, static_cast<std::size_t>(Stage::count)> stages{};
  MathLibrary math;
  /// A derivative at a tie of exact values may be anything between the one-sided ones, whatever
  /// PyTorch's clamp has there (rule A4).
  bool ties_open = false;
  /// A mean may be the quotient of a sum, which overflows before it is divided (rule C1).
  bool divides_last = false;
  std::string form;  ///< of the signature's forms; empty: undeclared, the widest counts

  const Store& stage(Stage at) const { return stages[static_cast<std::size_t>(at)]; }
  Store& stage(Stage at) { return stages[static_cast<std::size_t>(at)]; }
  bool operator==(const Arithmetic&) const = default;
};

/// Everything in one format: elementwise operations, pairwise sums, sequential matrix products.
Arithmetic plain_arithmetic(Dtype compute, std::string_view form);

/// The same where the device or a library flushes subnormals to 0, in what it stores too.
Arithmetic with_subnormals_flushed(Arithmetic arithmetic);

/// The same behind an upstream gradient: where a forward makes gradients, for one of 1, and stores
/// them, what that loses to underflow is scaled with them, and so is what it holds.
Arithmetic behind(double upstream, Arithmetic arithmetic);

/// Each of the first forms with each of the second, for a loss that makes both choices.
std::vector<std::string> joined_forms(const std::vector<std::string>& first,
                                      const std::vector<std::string>& second);

/// Whether `form`, joined or not, is or holds the choice `name`.
bool declares(std::string_view form, std::string_view name);

}  // namespace lossgate
