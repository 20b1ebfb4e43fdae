// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/arithmetic.h"

#include <algorithm>
#include <cmath>

namespace lossgate {
namespace {

constexpr std::string_view kJoint = " with ";

}  // namespace

double SumRule::growth(double n) const {
  if (n <= 1.0) return 0.0;
  const auto depth = [](double count) { return std::ceil(std::log2(std::max(count, 1.0))); };
  switch (order) {
    case SumOrder::pairwise:
      return depth(n);
    case SumOrder::lanes:
      return std::ceil(n / width) + depth(width);
    case SumOrder::blocked:
      return std::ceil(n / width) + depth(std::min(n, width));
    case SumOrder::online:
      return 3.0 * std::ceil(n / width) + depth(std::min(n, width));
    case SumOrder::sequential:
    case SumOrder::unknown:
      break;
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

Arithmetic with_subnormals_flushed(Arithmetic arithmetic) {
  arithmetic.flush = min_normal(arithmetic.compute);
  arithmetic.eta = std::max(arithmetic.eta, arithmetic.flush);
  for (Store& store : arithmetic.stages) {
    if (store.eta > 0.0) store.eta = std::max(store.eta, arithmetic.flush);
  }
  return arithmetic;
}

Arithmetic behind(double upstream, Arithmetic arithmetic) {
  const double scale = std::fabs(upstream);
  if (scale == 0.0) return arithmetic;
  Store& gradient = arithmetic.stage(Stage::gradient);
  gradient.eta *= std::max(scale, 1.0);
  gradient.largest *= std::min(scale, 1.0);
  return arithmetic;
}

std::vector<std::string> joined_forms(const std::vector<std::string>& first,
                                      const std::vector<std::string>& second) {
  std::vector<std::string> all;
  for (const std::string& a : first) {
    for (const std::string& b : second) all.push_back(a + std::string(kJoint) + b);
  }
  return all;
}

bool declares(std::string_view form, std::string_view name) {
  while (true) {
    const std::size_t end = form.find(kJoint);
    if (form.substr(0, end) == name) return true;
    if (end == std::string_view::npos) return false;
    form.remove_prefix(end + kJoint.size());
  }
}

}  // namespace lossgate
