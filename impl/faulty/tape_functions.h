// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "impl/faulty/tape.h"

/// What can be done with numbers on a tape, under the names that tensor libraries use.
namespace lossgate::impl {

template <class Format>
Var<Format> operator+(Var<Format> a, Var<Format> b) {
  return a.tape().binary(TapeOp::add, a, b, a.value() + b.value());
}

template <class Format>
Var<Format> operator-(Var<Format> a, Var<Format> b) {
  return a.tape().binary(TapeOp::subtract, a, b, a.value() - b.value());
}

template <class Format>
Var<Format> operator*(Var<Format> a, Var<Format> b) {
  return a.tape().binary(TapeOp::multiply, a, b, a.value() * b.value());
}

template <class Format>
Var<Format> operator/(Var<Format> a, Var<Format> b) {
  return a.tape().binary(TapeOp::divide, a, b, a.value() / b.value());
}

template <class Format>
Var<Format> operator-(Var<Format> a) {
  return a.tape().unary(TapeOp::negate, a, -a.value());
}

template <class Format>
Var<Format> exp(Var<Format> a) {
  return a.tape().unary(TapeOp::exp, a, std::exp(a.value()));
}

template <class Format>
Var<Format> expm1(Var<Format> a) {
  return a.tape().unary(TapeOp::expm1, a, std::expm1(a.value()));
}

template <class Format>
Var<Format> log(Var<Format> a) {
  return a.tape().unary(TapeOp::log, a, std::log(a.value()));
}

template <class Format>
Var<Format> log1p(Var<Format> a) {
  return a.tape().unary(TapeOp::log1p, a, std::log1p(a.value()));
}

/// log(exp(a) + exp(b)), one of which is not -infinity; the derivative is PyTorch's.
template <class Format>
Var<Format> logaddexp(Var<Format> a, Var<Format> b) {
  const auto large = std::max(a.value(), b.value()), small = std::min(a.value(), b.value());
  return a.tape().binary(TapeOp::logaddexp, a, b, large + std::log1p(std::exp(small - large)));
}

/// Its exponential never overflows.
template <class Format>
Var<Format> sigmoid(Var<Format> a) {
  using V = typename Format::Value;
  const V x = a.value(), e = std::exp(x < V(0) ? x : -x);
  return a.tape().unary(TapeOp::sigmoid, a, (x < V(0) ? e : V(1)) / (V(1) + e));
}

template <class Format>
Var<Format> clamp(Var<Format> a, typename Format::Value low, typename Format::Value high) {
  low = Format::rounded(low);
  high = Format::rounded(high);
  const auto x = a.value();
  return a.tape().unary(TapeOp::clamp, a, x < low ? low : x > high ? high : x, low, high);
}

template <class Format>
Var<Format> minimum(Var<Format> a, Var<Format> b) {
  const auto x = a.value(), y = b.value();
  return a.tape().binary(TapeOp::minimum, a, b, x != x || x < y ? x : y);
}

template <class Format>
Var<Format> maximum(Var<Format> a, Var<Format> b) {
  const auto x = a.value(), y = b.value();
  return a.tape().binary(TapeOp::maximum, a, b, x != x || x > y ? x : y);
}

template <class Format>
Var<Format> where(bool condition, Var<Format> a, Var<Format> b) {
  return a.tape().binary(TapeOp::where, a, b, condition ? a.value() : b.value(), condition);
}

/// NaN becomes 0, infinities the largest finite values.
template <class Format>
Var<Format> nan_to_num(Var<Format> a) {
  const auto x = a.value();
  const auto largest = static_cast<typename Format::Value>(max_finite(Format::kDtype));
  return a.tape().unary(TapeOp::nan_to_num, a,
                        x != x         ? 0
                        : x > largest  ? largest
                        : x < -largest ? -largest
                                       : x);
}

/// The value without its history.
template <class Format>
Var<Format> detach(Var<Format> a) {
  return a.tape().constant(a.value());
}

}  // namespace lossgate::impl
