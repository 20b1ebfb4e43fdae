// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/arithmetic.h"

#include <algorithm>
#include <cmath>

namespace lossgate {

double SumRule::growth(double n) const {
  if (n <= 1.0) return 0.0;
  const auto depth = [](double count) { return std::ceil(std::log2(std::max(count, 1.0))); };
  switch (order) {
    case SumOrder::pairwise: return depth(n);
    case SumOrder::lanes: return std::ceil(n / width) + depth(width);
    case SumOrder::blocked: return std::ceil(n / width) + depth(std::min(n, width));
    case SumOrder::online: return 3.0 * std::ceil(n / width) + depth(std::min(n, width));
    case SumOrder::sequential:
    case SumOrder::unknown: return n - 1.0;
  }
  return n - 1.0;
}

Arithmetic plain_arithmetic(Dtype compute, std::string_view form) {
  Arithmetic a;
  a.compute = compute;
  a.roundoff = unit_roundoff(compute);
  a.eta = min_subnormal(compute);
  a.sum = {.roundoff = a.roundoff, .order = SumOrder::pairwise, .width = 1.0};
  a.matmul = {.roundoff = a.roundoff, .order = SumOrder::sequential, .width = 1.0};
  a.stage(Stage::accumulate) = {.roundoff = a.roundoff, .eta = a.eta};
  a.form = form;
  return a;
}

}  // namespace lossgate
