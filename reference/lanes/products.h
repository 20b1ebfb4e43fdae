// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/lanes/branches.h"
#include "reference/products.h"
#include "reference/squares.h"

/// Products and sums of which more is known than their terms (reference/products.h), lane by lane.
namespace lossgate::reference {
inline namespace LOSSGATE_LANES_NAMESPACE {
namespace lanes {

LOSSGATE_LANEWISE Doubles size_of_factor(const Lanes& a) {
  return larger(size_of_each(a.v), a.err) + a.half;
}

/// tracking::scaled_last: what would overflow before the factors make it smaller is a doubt.
template <class... Factors>
LOSSGATE_LANEWISE Lanes scaled_last(const Lanes& sum, Doubles terms, Doubles size,
                                    const Factors&... factors) {
  (require_size(factors), ...);
  const Doubles shrinking = (smaller(all_lanes(1.0), size_of_each(factors.v)) * ...);
  const Doubles formed = smaller(most(size, sum.err, Doubles{}), 2.0 * size);
  require(formed <= scope->fits * shrinking);
  const Doubles growing = (larger(all_lanes(1.0), size_of_each(factors.v)) * ...);
  return {sum.v, sum.err + terms * scope->eta * growing, sum.peak, sum.half};
}

}  // namespace lanes

template <class... More>
LOSSGATE_LANEWISE Lanes product(const Lanes& a, const Lanes& b, const Lanes& c,
                                const More&... more) {
  const Mask nonzero =
      ~((a.is_exact_zero() | b.is_exact_zero() | c.is_exact_zero()) | ... | more.is_exact_zero());
  if (!any(nonzero)) return {};
  Lanes result = ((a * b * c) * ... * more);
  constexpr std::size_t kMost = 1 + sizeof...(more);
  Doubles others[kMost + 1] = {all_lanes(1.0)}, peak = all_lanes(1.0), sum = {};
  for (const Lanes* factor : {&a, &b, &c, &more...}) {
    lanes::doubt(nonzero & ~(factor->err <= size_of_each(factor->v) + 1.0));
    const Doubles size = lanes::size_of_factor(*factor);
    for (std::size_t k = kMost; k > 0; --k) others[k] += others[k - 1] * size;
    peak *= larger(lanes::most(*factor), all_lanes(1.0));
  }
  for (std::size_t k = 1; k <= kMost; ++k) sum += others[k];
  result.err += or_zero(nonzero, lanes::scope->eta * sum);
  result.peak = or_zero(nonzero, larger(result.peak, peak));
  return result;
}

template <class... More>
LOSSGATE_LANEWISE Lanes scaled_by(const Lanes& x, const Lanes& a, const Lanes& b,
                                  const More&... more) {
  const Mask zero = x.is_exact_zero();
  if (any(zero)) {
    const Lanes scale = product(a, b, more...);
    lanes::doubt(zero & ~(scale.peak <= lanes::scope->fits));
  }
  return product(x, a, b, more...);
}

LOSSGATE_LANEWISE Lanes weighted_within(Lanes weighted, const Lanes& part, const Lanes& factor) {
  constexpr double kFarAbove = 0x1p20;
  const Doubles size = size_of_each(factor.v);
  const Mask counts = ~weighted.is_exact_zero() & (size != 0.0);
  lanes::doubt(counts & (factor.err != 0.0) & ~(lanes::scope->eta * kFarAbove <= size));
  const Doubles others = lanes::size_of_factor(part) / size;
  weighted.err += or_zero(counts, lanes::scope->eta * others);
  return weighted;
}

template <class... More>
LOSSGATE_LANEWISE Lanes distributed(const Cancelling<Lanes>& terms, const Lanes& a,
                                    const More&... more) {
  Lanes result = product(a, more..., terms.sum);
  const Mask nonzero = ~result.is_exact_zero();
  Doubles most = all_lanes(1.0);
  for (const Lanes* factor : {&terms.part, &a, &more...}) {
    lanes::doubt(nonzero & ~(factor->err <= size_of_each(factor->v) + 1.0));
    most *= larger(lanes::most(*factor), all_lanes(1.0));
  }
  lanes::doubt(~nonzero & ~(most <= lanes::scope->fits));
  result.peak = or_zero(nonzero, larger(result.peak, most));
  result.err += or_zero(nonzero, lanes::scope->eta * most);
  if (!any(~terms.multiplied_first.is_exact_zero())) return result;
  const Mask rounds = nonzero & ~(a.is_unit() & ... & more.is_unit());
  const auto size = [](const Lanes& x) { return size_of_each(x.v) + x.half; };
  const Doubles met = ((size(terms.multiplied_first) * size(a)) * ... * size(more));
  result.err += or_zero(rounds, lanes::scope->roundoff * met);
  return result;
}

LOSSGATE_LANEWISE Lanes multiplied(const Lanes& a, const Lanes& b) {
  const Lanes result = a * b;
  lanes::doubt(result.is_exact_zero() & ~(larger(a.peak, b.peak) <= lanes::scope->fits));
  return result;
}

LOSSGATE_LANEWISE Lanes compared_as_product(Lanes a, const Lanes& b, const Lanes& weight) {
  lanes::require_size(weight);
  a.err +=
      lanes::scope->eta / (size_of_each(b.v) * smaller(size_of_each(weight.v), all_lanes(1.0)));
  return a;
}

LOSSGATE_LANEWISE Lanes scaled_sum(const Lanes& upstream, const Lanes& weight, const Lanes& a,
                                   const Lanes& b, const Lanes& c) {
  const Lanes sum = a + b + c;
  const Mask zero = sum.is_exact_zero();
  const auto one_if_counted = [](const Lanes& x) {
    return or_zero(~x.is_exact_zero(), all_lanes(1.0));
  };
  const Doubles terms = one_if_counted(a) + one_if_counted(b) + one_if_counted(c);
  const Doubles size =
      size_of_each(a.v) + size_of_each(b.v) + size_of_each(c.v) + a.half + b.half + c.half;
  return blended(zero, sum, lanes::scaled_last(sum, terms, size, upstream, weight));
}

LOSSGATE_LANEWISE Mask may_overflow(const Lanes& a, const Lanes& b) {
  lanes::require(lanes::most(a) * lanes::most(b) <= lanes::scope->fits);
  return {};
}

LOSSGATE_LANEWISE Lanes averaged_over_parts(Lanes a, std::int64_t parts) {
  if (parts <= 1) return a;
  const auto times = static_cast<double>(parts);
  a.err += or_zero(lanes::most(a) > 0.0, all_lanes(times * lanes::scope->eta));
  a.peak = larger(a.peak, lanes::most(a)) * times;
  lanes::require(a.peak <= lanes::scope->fits);
  return a;
}

LOSSGATE_LANEWISE Lanes share_of_larger_square(const Lanes& a, const Lanes& b) {
  const Doubles ma = size_of_each(a.v) + a.half, mb = size_of_each(b.v) + b.half;
  const Doubles less = smaller(ma, mb), more = larger(ma, mb);
  lanes::require(less * less <= 0.25 * lanes::scope->fits);
  const Doubles open = kFilterSlack * (more + a.err + b.err);
  const double normal = lanes::scope->eta / lanes::scope->roundoff;
  const Mask equal = (more + open) * (more + open) < normal;
  const Doubles least = larger(more - open, Doubles{});
  lanes::require(equal | (least * least >= normal));
  const Orders order = compare(absolute(a), absolute(b));
  const Lanes share = switched<Lanes>(order, 0.0, 0.5, 1.0);
  const Lanes any_share = {all_lanes(0.5), {}, all_lanes(1.0), all_lanes(0.5)};
  return blended(equal & (less > 0.0), any_share, share);
}

LOSSGATE_LANEWISE Lanes silenced(const Lanes& zero, const Lanes& x) {
  lanes::require(size_of_each(x.v) <= lanes::scope->fits);
  return zero;
}

}  // namespace LOSSGATE_LANES_NAMESPACE
}  // namespace lossgate::reference
