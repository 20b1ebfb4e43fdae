// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reference/scalar.h"
#include "reference/stores.h"

/// Products of which more is known than their factors: any order, part of a matrix product, a zero
/// or a probability.
namespace lossgate::reference {

template <class S>
S product(const S& a, const S& b) {
  return a * b;
}

namespace tracking {

/// What the loss of another factor to underflow is multiplied by: of a number that has cancelled it
/// is what that is off by.
inline double size_of_factor(const Tracked& a) {
  const double off = a.err < kInfinity ? a.err : 0.0;  // without a bound the product has none
  return std::max(magnitude(a.v), off) + a.half;
}

}  // namespace tracking

/// a b c ..., in any order and grouping: what some of the factors give may underflow or overflow
/// before the others come. Where one is 0 and another undefined, NaN is as right as 0.
template <class S, class... More>
S product(const S& a, const S& b, const S& c, const More&... more) {
  return ((a * b * c) * ... * more);
}

template <class... More>
Tracked product(const Tracked& a, const Tracked& b, const Tracked& c, const More&... more) {
  const bool zero = a.is_exact_zero() || b.is_exact_zero() || c.is_exact_zero();
  if ((zero || ... || more.is_exact_zero())) {
    const bool any_undefined =
        tracking::undefined(a) || tracking::undefined(b) || tracking::undefined(c);
    return tracking::zero_times((any_undefined || ... || tracking::undefined(more)));
  }
  Tracked result = ((a * b * c) * ... * more);
  // others[k]: the products of k factors, all added. What two factors or more lose to underflow is
  // multiplied by the others.
  constexpr std::size_t kMost = 1 + sizeof...(more);
  double others[kMost + 1] = {1.0}, peak = 1.0, sum = 0.0;
  for (const Tracked* factor : {&a, &b, &c, &more...}) {
    const double size = tracking::size_of_factor(*factor);
    for (std::size_t k = kMost; k > 0; --k) others[k] += others[k - 1] * size;
    peak *= std::max(tracking::most(*factor), 1.0);
  }
  for (std::size_t k = 1; k <= kMost; ++k) sum += others[k];
  result.err += tracking::product(tracking::current->eta, sum);
  result.peak = std::max(result.peak, peak);
  return result;
}

/// x a b ..., in any order, where x may be scaled without being looked at: a 0 does not silence a
/// scale that overflows in the compute format, and an infinity is undefined where it may vanish.
template <class S, class... More>
S scaled_by(const S& x, const S& a, const S& b, const More&... more) {
  return product(x, a, b, more...);
}

template <class... More>
Tracked scaled_by(const Tracked& x, const Tracked& a, const Tracked& b, const More&... more) {
  if (tracking::is_stored_infinity(x)) return x * product(a, b, more...);
  if (!x.is_exact_zero()) return product(x, a, b, more...);
  const Tracked scale = product(a, b, more...);
  if (tracking::undefined(scale)) return tracking::zero_times(true);
  const double formed = std::max(scale.peak, tracking::magnitude(scale.v));
  return {0.0L, 0.0, formed <= tracking::largest ? 0.0 : formed, 0.0};
}

/// A weighted term, where an implementation may weight `factor`, of which `part` of the term is a
/// multiple, instead: what that loses to underflow is multiplied by the other factors.
template <class S>
S weighted_within(const S& weighted, const S& /*part*/, const S& /*factor*/) {
  return weighted;
}

inline Tracked weighted_within(Tracked weighted, const Tracked& part, const Tracked& factor) {
  using namespace tracking;
  const double others = size_of_factor(part) / magnitude(factor.v);
  if (weighted.is_exact_zero() || is_stored_infinity(weighted)) return weighted;
  if (!std::isfinite(others)) return weighted;
  weighted.err = or_infinity(weighted.err + tracking::product(current->eta, others));
  return weighted;
}

/// Part of a gradient, which an implementation may make in its forward, for an upstream of 1, and
/// scale when the upstream gradient comes: what it had lost to underflow becomes larger, too.
template <class S>
S made_for_one(const S& gradient, const S& upstream) {
  return weighted_within(gradient, upstream, selected<S>(1.0));
}

/// A gradient by logits that were divided by the temperature, before the upstream gradient comes or
/// after it: where the quotients were stored, it has their format before it is divided. A
/// temperature of 1 rounds nothing.
template <class S>
S through_temperature(const S& gradient, const S& temperature, const S& upstream) {
  if (value_of(temperature) == 1) return gradient;
  return store(Stage::logits, made_for_one(gradient, upstream)) / temperature;
}

/// The same of logits that are a field: what comes back to them has the format that they were
/// stored in, whatever the temperature, which may have divided it already.
template <class S>
S back_to_logits(const S& gradient, const S& temperature, const S& upstream) {
  if (value_of(temperature) == 1) return store(Stage::logits, gradient);
  return wider(through_temperature(gradient, temperature, upstream),
               store(Stage::logits, S(made_for_one(gradient, upstream) / temperature)));
}

/// A slope whose terms may cancel, and what factors may meet before it is complete: the largest of
/// its terms, or the number beside a probability. An exact 0 where nothing does, as behind a clamp.
/// `multiplied_first` is a term that they meet before it cancels with one which they leave as it
/// is, 1.
template <class S>
struct Cancelling {
  S sum, part;
  S multiplied_first = S(0);
};

namespace tracking {

/// An exact zero that an implementation multiplies last: each of the factors fits, and their
/// product may not.
template <class... Factors>
Tracked after_overflow(Tracked zero, const Factors&... factors) {
  const double formed = (most(factors) * ...);
  if (((most(factors) <= largest) && ...) && formed > largest) zero.peak = formed;
  return zero;
}

}  // namespace tracking

/// sum a b ...: a backward hands the factors to that part first, where they may overflow before the
/// sum makes them smaller, or 0. Others hand them to the probability, and what that loses to
/// underflow is multiplied by the part.
template <class S, class... More>
S distributed(const Cancelling<S>& terms, const S& a, const More&... more) {
  return product(a, more..., terms.sum);
}

template <class... More>
Tracked distributed(const Cancelling<Tracked>& terms, const Tracked& a, const More&... more) {
  Tracked result = product(a, more..., terms.sum);
  if (result.is_exact_zero()) {
    const bool met_last = !terms.part.is_exact_zero();
    return met_last ? tracking::after_overflow(result, a, more...) : result;
  }
  const auto growth = [](const Tracked& x) { return std::max(tracking::most(x), 1.0); };
  const double most = ((growth(terms.part) * growth(a)) * ... * growth(more));
  result.peak = std::max(result.peak, most);
  if (std::isfinite(most)) result.err += tracking::current->eta * most;
  if (terms.multiplied_first.is_exact_zero()) return result;
  const bool rounds = !(is_unit(a) && ... && is_unit(more));
  const auto size = [](const Tracked& x) { return tracking::magnitude(x.v) + x.half; };
  const double met = ((size(terms.multiplied_first) * size(a)) * ... * size(more));
  if (rounds) result.err += tracking::product(tracking::current->roundoff, met);
  return result;
}

namespace tracking {

/// A product of which nobody looks at the factors: a zero does not silence an infinity there, nor
/// what overflows in the compute format or may be anything.
inline Tracked unseen(const Tracked& result, const Tracked& a, const Tracked& b) {
  const double formed = std::max({a.peak, b.peak, magnitude(a.v), magnitude(b.v)});
  const bool tame = formed <= largest && a.err + b.err < kInfinity;
  return result.is_exact_zero() && !tame ? finish(a.v * b.v, 0.0, kInfinity, 0.0) : result;
}

}  // namespace tracking

/// a b, where an implementation multiplies without looking at either.
template <class S>
S multiplied(const S& a, const S& b) {
  return a * b;
}

inline Tracked multiplied(const Tracked& a, const Tracked& b) {
  return tracking::unseen(a * b, a, b);
}

/// a, about to be compared with a bound: an implementation may compare their products with b, or
/// with b weighted before, which may underflow.
template <class S>
S compared_as_product(const S& a, const S& /*b*/, const S& /*weight*/) {
  return a;
}

inline Tracked compared_as_product(Tracked a, const Tracked& b, const Tracked& weight) {
  using namespace tracking;
  if (is_stored_infinity(a)) return a;
  a.err += or_infinity(current->eta / (magnitude(b.v) * std::min(magnitude(weight.v), 1.0)));
  return a;
}

/// a + b + c, each a multiple of upstream x weight: an implementation may form the sum first, and
/// scale it by either factor last.
template <class S>
S scaled_sum(const S& /*upstream*/, const S& /*weight*/, const S& a, const S& b, const S& c) {
  return a + b + c;
}

inline Tracked scaled_sum(const Tracked& upstream, const Tracked& weight, const Tracked& a,
                          const Tracked& b, const Tracked& c) {
  using namespace tracking;
  const Tracked sum = a + b + c;
  if (sum.is_exact_zero()) return sum;
  const int terms = !a.is_exact_zero() + !b.is_exact_zero() + !c.is_exact_zero();
  const double size = magnitude(a.v) + magnitude(b.v) + magnitude(c.v) + a.half + b.half + c.half;
  return scaled_last(sum, terms, size, upstream, weight);
}

/// Whether a b may be infinite to whoever forms it.
template <class S>
bool may_overflow(const S& /*a*/, const S& /*b*/) {
  return false;
}

inline bool may_overflow(const Tracked& a, const Tracked& b) {
  return !(tracking::most(a) * tracking::most(b) <= tracking::largest);
}

/// A result of a step of several parts, be they ranks or micro-batches: one of them may have it
/// all, and whatever it is made of, as many times as there are parts, before the average makes it
/// what it is. Where the average comes first, and is undone behind it, it has lost what lies below
/// the least number, as many times over.
template <class S>
S averaged_over_parts(const S& a, std::int64_t /*parts*/) {
  return a;
}

inline Tracked averaged_over_parts(Tracked a, std::int64_t parts) {
  using namespace tracking;
  if (parts <= 1 || a.is_exact_zero() || is_stored_infinity(a)) return a;
  const auto times = static_cast<double>(parts);
  a.peak = std::max(a.peak, most(a)) * times;
  a.err += times * current->eta;
  return a;
}

/// A zero times x. Where x is undefined (infinity less infinity), NaN is as right as 0.
template <class S>
S silenced(const S& zero, const S& /*x*/) {
  return zero;
}

inline Tracked silenced(const Tracked& zero, const Tracked& x) { return zero * x; }

/// p x for a probability p: one that is exactly 0 annihilates, an infinite or undefined x included,
/// as in 0 log (0 / 0).
template <class S>
S weighed(const S& p, const S& x) {
  return value_of(p) == 0 ? S(0) : S(p * x);
}

inline Tracked weighed(const Tracked& p, const Tracked& x) { return p.is_exact_zero() ? p : p * x; }

/// p x weight for a probability p and its logarithm x, say: an implementation that differentiates
/// p x by p has x weight before p multiplies it, another has weight p, which may underflow, before
/// x makes that larger. A p that is exactly 0 annihilates.
template <class S>
S weighed_by(const S& weight, const S& p, const S& x) {
  return weight * weighed(p, x);
}

inline Tracked weighed_by(const Tracked& weight, const Tracked& p, const Tracked& x) {
  Tracked result = weight * weighed(p, x);
  if (result.is_exact_zero() || tracking::is_stored_infinity(result)) return result;
  result.err += tracking::product(tracking::current->eta, tracking::magnitude(x.v) + x.half);
  result.peak = std::max(result.peak, (weight * x).peak);
  return result;
}

}  // namespace lossgate::reference
