// SPDX-License-Identifier: Apache-2.0
#include "fuzz/edges.h"

#include <algorithm>
#include <cmath>

namespace lossgate::fuzz {
namespace {

constexpr double kLogRatioEdges[] = {
    0.0,
    1e-4,
    1e-3,
    0.1823215567939546,   // log(1 + 0.2)
    -0.2231435513142097,  // log(1 - 0.2)
    0.2468600779315258,   // log(1 + 0.28)
    1.0,
    1.0986122886681098,  // log 3, the usual dual clip
    2.6,
    5.0,
    10.0,
    11.0,
    11.0904,  // exp reaches the end of f16
    17.33,    // exp(-x) leaves f16
    20.0,
    88.0,
    88.7228,  // exp reaches the end of f32
    89.0,
    100.0,
    103.98,  // exp(-x) leaves f32
    104.0,
    709.78,  // exp reaches the end of f64
    745.2,   // exp(-x) leaves f64
    1e4,
};

template <class Add>
void for_each_number(const LossSpec& spec, Add add) {
  for (const auto& [name, value] : spec.options) {
    const double* number = std::get_if<double>(&value);
    if (number && std::isfinite(*number) && *number != 0.0) add(*number);
  }
}

}  // namespace

void EdgeList::add(Dtype dtype, double edge) {
  if (count_ == edges_.size() || !(std::fabs(edge) <= max_finite(dtype) / 4)) return;
  edges_[count_++] = round_to(dtype, edge);
}

EdgeList log_ratio_edges(const LossSpec& spec, Dtype dtype) {
  EdgeList edges;
  for (double edge : kLogRatioEdges) edges.add(dtype, edge);
  edges.begin_own();
  for_each_number(spec, [&](double x) {
    edges.add(dtype, x);
    edges.add(dtype, 1.25 * x);
    if (x > 0.0) edges.add(dtype, portable_log(x));
    if (x > 0.0) edges.add(dtype, portable_log(1.0 + x));
    if (x > 0.0 && x < 1.0) edges.add(dtype, portable_log(1.0 - x));
  });
  return edges;
}

EdgeList value_edges(const LossSpec& spec, Dtype dtype) {
  EdgeList edges;
  for_each_number(spec, [&](double x) { edges.add(dtype, x); });
  const double root = std::sqrt(max_finite(dtype));
  const double tiny_root = std::sqrt(min_normal(dtype));
  for (double edge :
       {0.0, 1.0, root / 2, root, root * 1.4142, root * 2, tiny_root, tiny_root / 2}) {
    edges.add(dtype, edge);
    edges.add(dtype, step_ulps(dtype, edge, -1));
  }
  return edges;
}

double step_ulps(Dtype dtype, double value, int steps) {
  std::byte bits[8];
  encode(dtype, value, bits);
  // Sign and magnitude become one line of integers that runs through the numbers in order.
  const std::uint64_t sign = std::uint64_t{1} << (8 * size_of(dtype) - 1);
  const std::uint64_t word = load_bits(dtype, bits);
  const auto magnitude = static_cast<std::int64_t>(word & (sign - 1));
  const std::int64_t place = (word & sign ? -magnitude : magnitude) + steps;
  const auto distance = static_cast<std::uint64_t>(place < 0 ? -place : place);
  store_bits(dtype, distance | (place < 0 ? sign : 0), bits);
  const double stepped = decode(dtype, bits);
  return std::isfinite(stepped) ? stepped : round_to(dtype, value);
}

double portable_log(double x) {
  int exponent;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2.0;
    --exponent;
  }
  // log m = 2 artanh(s), |s| <= 0.172: thirteen terms of the series leave less than 1e-21.
  const double s = (m - 1.0) / (m + 1.0);
  const double square = s * s;
  double series = 0.0;
  for (int k = 25; k >= 3; k -= 2) series = (series + 1.0 / k) * square;
  return exponent * 0.69314718055994531 + (2.0 * s + 2.0 * s * series);
}

}  // namespace lossgate::fuzz
