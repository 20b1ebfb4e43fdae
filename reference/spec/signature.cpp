// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/signature.h"

#include <algorithm>

namespace lossgate {

std::string_view name(Role role) {
  switch (role) {
    case Role::differentiable:
      return "differentiable";
    case Role::constant:
      return "constant";
    case Role::label:
      return "label";
    case Role::mask:
      return "mask";
    case Role::weight:
      return "weight";
    case Role::group:
      return "group";
  }
  return "?";
}

std::string_view name(Quantity quantity) {
  switch (quantity) {
    case Quantity::log_prob:
      return "log_prob";
    case Quantity::advantage:
      return "advantage";
    case Quantity::logit:
      return "logit";
    case Quantity::hidden_state:
      return "hidden_state";
    case Quantity::weight:
      return "weight";
    case Quantity::reward:
      return "reward";
    case Quantity::value:
      return "value";
    case Quantity::upstream:
      return "upstream";
    case Quantity::label:
      return "label";
    case Quantity::mask:
      return "mask";
    case Quantity::group:
      return "group";
    case Quantity::payload:
      return "payload";
  }
  return "?";
}

std::string_view name(Option::Kind kind) {
  switch (kind) {
    case Option::Kind::real:
      return "real";
    case Option::Kind::integer:
      return "integer";
    case Option::Kind::flag:
      return "flag";
    case Option::Kind::choice:
      return "choice";
  }
  return "?";
}

namespace {

template <class T>
const T* find(const std::vector<T>& items, std::string_view name) {
  const auto at = std::ranges::find_if(items, [&](const T& item) { return item.name == name; });
  return at == items.end() ? nullptr : &*at;
}

std::optional<std::int64_t> extent_of(const std::vector<std::pair<Axis, std::int64_t>>& extents,
                                      Axis axis) {
  const auto at = std::ranges::find(extents, axis, &std::pair<Axis, std::int64_t>::first);
  return at == extents.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace

const Field* LossSignature::find_field(std::string_view field) const { return find(fields, field); }

const Option* LossSignature::find_option(std::string_view option) const {
  return find(options, option);
}

std::optional<std::int64_t> LossSignature::pinned_extent(Axis axis) const {
  return extent_of(pinned, axis);
}

std::optional<std::int64_t> LossSignature::longest_extent(Axis axis) const {
  return extent_of(longest, axis);
}

std::int64_t LossSignature::least_extent(Axis axis) const {
  const bool pairs = axis == Axis::sequences && std::ranges::any_of(fields, &Field::even_groups);
  if (axis != Axis::vocab) return pairs ? 2 : 1;
  const bool distinct = std::ranges::any_of(fields, &Field::distinct);
  return std::max<std::int64_t>(2, distinct ? pinned_extent(Axis::support).value_or(1) : 1);
}

bool LossSignature::has_axis(Axis axis) const {
  return std::ranges::any_of(fields,
                             [&](const Field& field) { return contains(field.axes, axis); });
}

bool LossSignature::is_logistic() const {
  return !scale.empty() || std::ranges::any_of(fields, &Field::leaves_rest);
}

}  // namespace lossgate
