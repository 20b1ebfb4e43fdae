// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/lanes/lanes.h"
#include "reference/stored_bounds.h"
#include "reference/stored_parts.h"

/// Branches (reference/scalar.h) that each lane takes for itself.
namespace lossgate::reference {
inline namespace LOSSGATE_LANES_NAMESPACE {

/// The order of each lane's numbers; equal where it is none of these.
struct Orders {
  Mask below, above, undecided;

  LOSSGATE_LANEWISE Mask operator==(Order order) const {
    switch (order) {
      case Order::below:
        return below;
      case Order::above:
        return above;
      case Order::undecided:
        return undecided;
      default:
        return ~(below | above | undecided);
    }
  }
  LOSSGATE_LANEWISE Mask operator!=(Order order) const { return ~(*this == order); }
};

LOSSGATE_LANEWISE Orders compare(const Lanes& a, const Lanes& b) {
  const Doubles margin = a.v - b.v, distance = size_of_each(margin);
  const Doubles bound = kThreshold * (a.err + b.err) + a.half + b.half;
  const Mask apart = distance > bound * (1.0 + kFilterSlack);
  const Mask within = distance <= bound * (1.0 - kFilterSlack);
  lanes::require((apart | within) & (larger(a.peak, b.peak) <= lanes::scope->fits));
  Mask undecided = ~apart & (bound != 0.0);
  if (lanes::scope->arithmetic.ties_open) undecided = ~apart;
  return {apart & (margin < 0.0), apart & (margin > 0.0), undecided};
}

/// Of both, where lanes differ; a doubt of one side is one of its lanes alone.
template <class Yes, class No>
LOSSGATE_LANEWISE auto choose(Mask condition, Yes&& yes, No&& no) {
  LaneScope& scope = *lanes::scope;
  const Mask live = scope.live;
  if (!any(condition & live)) return no();
  if (!any(~condition & live)) return yes();
  scope.live = live & condition;
  const auto first = yes();
  scope.live = live & ~condition;
  const auto second = no();
  scope.live = live;
  return blended(condition, first, second);
}

LOSSGATE_LANEWISE Lanes either(const Lanes& first, const Lanes& second) {
  const Doubles err = larger(first.err, second.err) + size_of_each(first.v - second.v);
  return lanes::finish(first.v, err, larger(first.peak, second.peak),
                       larger(first.half, second.half));
}

LOSSGATE_LANEWISE Lanes minimum(const Lanes& a, const Lanes& b) {
  const Orders order = compare(a, b);
  const Lanes decided = blended(order.above, b, a);
  if (!any(order.undecided)) return decided;
  const Mask first = a.v <= b.v;
  return blended(order.undecided, either(blended(first, a, b), blended(first, b, a)), decided);
}

LOSSGATE_LANEWISE Lanes maximum(const Lanes& a, const Lanes& b) {
  const Orders order = compare(a, b);
  const Lanes decided = blended(order.below, b, a);
  if (!any(order.undecided)) return decided;
  const Mask first = a.v >= b.v;
  return blended(order.undecided, either(blended(first, a, b), blended(first, b, a)), decided);
}

LOSSGATE_LANEWISE Lanes clamp(const Lanes& a, const Lanes& low, const Lanes& high) {
  const Mask inside = compare(a, low).above & compare(a, high).below;
  return choose(
      inside, [&] { return a; }, [&] { return minimum(maximum(a, low), high); });
}

LOSSGATE_LANEWISE Lanes wider(const Lanes& a, const Lanes& b) {
  return {a.v, larger(a.err, b.err), larger(a.peak, b.peak), larger(a.half, b.half)};
}

LOSSGATE_LANEWISE Lanes absolute(const Lanes& a) {
  return {size_of_each(a.v), a.err, a.peak, a.half};
}

LOSSGATE_LANEWISE Lanes begun_with(const Lanes& upstream, const Lanes& result) {
  lanes::require(size_of_each(upstream.v) <= lanes::scope->fits);
  return result;
}

LOSSGATE_LANEWISE Lanes store(Stage stage, const Lanes& a) {
  const Store& rule = lanes::scope->arithmetic.stage(stage);
  if (rule.roundoff == 0.0) return a;
  const Doubles rounding = rule.roundoff * (size_of_each(a.v) + a.half) + rule.eta;
  const Lanes stored =
      lanes::finish(a.v, a.err + or_zero(~a.is_exact_zero(), rounding), a.peak, a.half);
  lanes::require(size_of_each(a.v) + a.half + kThreshold * stored.err <=
                 rule.largest * (1.0 - kFilterSlack));
  return stored;
}

/// In doubt where double may be off by a share of the part, which divides.
LOSSGATE_LANEWISE Lanes stored_within(Stage stage, const Lanes& whole, const Lanes& part) {
  constexpr double kFarBeyond = 0x1p8;
  const Store& rule = lanes::scope->arithmetic.stage(stage);
  if (rule.roundoff == 0.0) return whole;
  const Doubles size = size_of_each(part.v) + part.half;
  const Doubles stored = part.err + rule.roundoff * size + rule.eta;
  lanes::require(size + kThreshold * stored <= rule.largest * (1.0 - kFilterSlack));
  const Mask counts = ~whole.is_exact_zero() & (size != 0.0);
  lanes::doubt(counts & ~(part.err <= kFarBeyond * size));
  const Doubles others = (size_of_each(whole.v) + whole.half) / size;
  const Doubles lost = others * (rule.roundoff * size + rule.eta);
  return lanes::finish(whole.v, whole.err + or_zero(counts, lost), whole.peak, whole.half);
}

LOSSGATE_LANEWISE Lanes holding_stored(Stage stage, const Lanes& x, const Lanes& whole,
                                       const Lanes& part) {
  if (lanes::scope->arithmetic.stage(stage).roundoff == 0.0) return x;
  const Lanes stored = stored_within(stage, whole, part);
  return lanes::finish(x.v, x.err + (stored.err - whole.err), larger(x.peak, stored.peak), x.half);
}

LOSSGATE_LANEWISE Lanes of_stored_parts(Stage stage, const Lanes& sum, const Lanes& first,
                                        const Lanes& second, const Lanes& part) {
  const Lanes apart = holding_stored(stage, holding_stored(stage, sum, first, first), second, part);
  return blended(second.is_exact_zero(), sum, apart);
}

LOSSGATE_LANEWISE Lanes stored_bound(Stage stage, const Lanes& bound, double option) {
  return holds(lanes::scope->arithmetic.stage(stage), option) ? bound : store(stage, bound);
}

}  // namespace LOSSGATE_LANES_NAMESPACE

template <>
struct OrderOf<Lanes> {
  using type = Orders;
};

template <>
LOSSGATE_LANEWISE Lanes selected<Lanes>(double value) {
  return {all_lanes(value), {}, all_lanes(std::fabs(value)), {}};
}

template <>
LOSSGATE_LANEWISE Lanes switched<Lanes>(const Orders& order, double below, double equal,
                                        double above) {
  const double low = std::min({below, equal, above}), high = std::max({below, equal, above});
  const auto pick = [&](double b, double e, double a, double u) {
    const Doubles decided =
        where(order.below, all_lanes(b), where(order.above, all_lanes(a), all_lanes(e)));
    return where(order.undecided, all_lanes(u), decided);
  };
  return {pick(below, equal, above, (low + high) / 2),
          {},
          pick(std::fabs(below), std::fabs(equal), std::fabs(above), high),
          or_zero(order.undecided, all_lanes((high - low) / 2))};
}

template <>
LOSSGATE_LANEWISE Lanes anything_between<Lanes>(double low, double high) {
  return {all_lanes((low + high) / 2), {}, all_lanes(high), all_lanes((high - low) / 2)};
}

}  // namespace lossgate::reference
