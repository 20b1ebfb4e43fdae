// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpreal.h>

#include <utility>

#include "reference/scalar.h"

/// The scalars with which tests certify the reference. Nothing but tests includes this file: it
/// needs MPFR.
namespace lossgate::reference {

/// A number of 256 bits with an exponent that no loss exhausts. A zero annihilates whatever it
/// multiplies, as an exact zero of Tracked does.
class Precise {
 public:
  static constexpr int kBits = 256;

  Precise() : Precise(0) {}
  explicit Precise(int v) : v_(v, kBits) {}
  explicit Precise(double v) : v_(v, kBits) {}
  explicit Precise(Real v) : v_(v, kBits) {}
  explicit Precise(mpfr::mpreal v) : v_(std::move(v)) {}

  const mpfr::mpreal& number() const { return v_; }
  bool is_zero() const { return mpfr_zero_p(v_.mpfr_srcptr()) != 0; }

  friend Precise operator-(const Precise& a) { return Precise(-a.v_); }
  friend Precise operator+(const Precise& a, const Precise& b) { return Precise(a.v_ + b.v_); }
  friend Precise operator-(const Precise& a, const Precise& b) { return Precise(a.v_ - b.v_); }
  friend Precise operator*(const Precise& a, const Precise& b) {
    return a.is_zero() || b.is_zero() ? Precise() : Precise(a.v_ * b.v_);
  }
  friend Precise operator/(const Precise& a, const Precise& b) { return Precise(a.v_ / b.v_); }
  Precise& operator+=(const Precise& b) { return *this = *this + b; }
  Precise& operator-=(const Precise& b) { return *this = *this - b; }
  Precise& operator*=(const Precise& b) { return *this = *this * b; }
  friend bool operator<(const Precise& a, const Precise& b) { return a.v_ < b.v_; }
  friend bool operator>(const Precise& a, const Precise& b) { return a.v_ > b.v_; }

 private:
  mpfr::mpreal v_;
};

inline const mpfr::mpreal& value_of(const Precise& a) { return a.number(); }

inline Precise exp(const Precise& a) { return Precise(mpfr::exp(a.number())); }
inline Precise expm1(const Precise& a) { return Precise(mpfr::expm1(a.number())); }
inline Precise log(const Precise& a) { return Precise(mpfr::log(a.number())); }
inline Precise log1p(const Precise& a) { return Precise(mpfr::log1p(a.number())); }
inline Precise sqrt(const Precise& a) { return Precise(mpfr::sqrt(a.number())); }
inline Precise tanh(const Precise& a) { return Precise(mpfr::tanh(a.number())); }
inline Precise sigmoid(const Precise& a) { return Precise(1) / (Precise(1) + exp(-a)); }

/// |a - b|, rounded once.
inline Real distance(const Precise& a, const Precise& b) {
  return mpfr::abs(a.number() - b.number()).toLDouble();
}

/// A value and its derivative with respect to one stored entry, the one whose key is `seed`.
struct Dual {
  Precise v, d;

  inline static thread_local std::int64_t seed = -1;
  /// Which argument of a tied minimum or maximum hands on its derivative: 0 or 1.
  inline static thread_local int tie = 0;

  Dual() = default;
  explicit Dual(int value) : v(value) {}
  explicit Dual(double value) : v(value) {}
  explicit Dual(Real value) : v(value) {}
  Dual(Precise value, Precise derivative) : v(std::move(value)), d(std::move(derivative)) {}

  friend Dual operator-(const Dual& a) { return {-a.v, -a.d}; }
  friend Dual operator+(const Dual& a, const Dual& b) { return {a.v + b.v, a.d + b.d}; }
  friend Dual operator-(const Dual& a, const Dual& b) { return {a.v - b.v, a.d - b.d}; }
  friend Dual operator*(const Dual& a, const Dual& b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
  friend Dual operator/(const Dual& a, const Dual& b) {
    const Precise quotient = a.v / b.v;
    return {quotient, (a.d - quotient * b.d) / b.v};
  }
  Dual& operator+=(const Dual& b) { return *this = *this + b; }
  Dual& operator-=(const Dual& b) { return *this = *this - b; }
  Dual& operator*=(const Dual& b) { return *this = *this * b; }
  friend bool operator<(const Dual& a, const Dual& b) { return a.v < b.v; }
  friend bool operator>(const Dual& a, const Dual& b) { return a.v > b.v; }
};

inline const mpfr::mpreal& value_of(const Dual& a) { return a.v.number(); }

inline Dual exp(const Dual& a) { return {exp(a.v), exp(a.v) * a.d}; }
inline Dual expm1(const Dual& a) { return {expm1(a.v), exp(a.v) * a.d}; }
inline Dual log(const Dual& a) { return {log(a.v), a.d / a.v}; }
inline Dual log1p(const Dual& a) { return {log1p(a.v), a.d / (Precise(1) + a.v)}; }
inline Dual sqrt(const Dual& a) { return {sqrt(a.v), a.d / (sqrt(a.v) + sqrt(a.v))}; }
inline Dual tanh(const Dual& a) {
  const Precise t = tanh(a.v);
  return {t, (Precise(1) - t * t) * a.d};
}
inline Dual sigmoid(const Dual& a) {
  const Precise s = sigmoid(a.v);
  return {s, s * (Precise(1) - s) * a.d};
}

inline Dual minimum(const Dual& a, const Dual& b) {
  return a < b || (!(b < a) && Dual::tie == 0) ? a : b;
}
inline Dual maximum(const Dual& a, const Dual& b) {
  return a > b || (!(b > a) && Dual::tie == 0) ? a : b;
}
/// Passes the derivative on its closed interval (rule A4).
inline Dual clamp(const Dual& a, const Dual& low, const Dual& high) {
  return a < low ? low : a > high ? high : a;
}

template <>
struct Entry<Dual> {
  static Dual stored(double value, std::int64_t key) {
    return {Precise(value), Precise(key >= 0 && key == Dual::seed ? 1 : 0)};
  }
  static Dual constant(Real value) { return Dual(value); }
};

template <>
inline Dual stop_gradient<Dual>(const Dual& a) {
  return {a.v, Precise()};
}

template <>
inline Dual straight_through<Dual>(const Dual& forward, const Dual& backward) {
  return {forward.v, backward.d};
}

}  // namespace lossgate::reference
