// SPDX-License-Identifier: Apache-2.0
#include "impl/external/config_axes.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>

namespace lossgate::impl {
namespace {

/// Work on larger cases is slow, and shows nothing else.
constexpr std::int64_t kMostPinned = 4096;

/// Of the axes, those that a field of the loss has.
std::vector<Axis> axes_of(const LossSignature& loss, std::initializer_list<Axis> among) {
  std::vector<Axis> axes;
  std::ranges::copy_if(among, std::back_inserter(axes),
                       [&](Axis axis) { return loss.has_axis(axis); });
  return axes;
}

/// That of `known` which the key names.
Axis read_axis(const Reader& reader, const LossSignature& loss, const std::vector<Axis>& known,
               const toml::key& key, std::string_view what) {
  std::vector<std::string_view> names;
  for (const Axis axis : known) names.push_back(name(axis));
  const auto at = std::ranges::find(names, key.str());
  if (at == names.end()) {
    reader.fail(key.source(), loss.id + " has no axis " + in_quotes(key.str()) + " that " +
                                  std::string(what) + "; it has " +
                                  (names.empty() ? "none" : listed(names)));
  }
  return known[static_cast<std::size_t>(at - names.begin())];
}

constexpr std::int64_t least(Axis axis) { return axis == Axis::vocab ? 2 : 1; }

}  // namespace

Extents read_longest(const Reader& reader, const LossSignature& loss) {
  Extents axes;
  const toml::table* table = reader.table("longest");
  if (!table) return axes;
  const std::vector<Axis> known =
      axes_of(loss, {Axis::sequences, Axis::tokens, Axis::vocab, Axis::hidden, Axis::support});
  for (const auto& [key, value] : *table) {
    const Axis axis = read_axis(reader, loss, known, key, "may be kept short");
    const auto extent = value.value_exact<std::int64_t>();
    if (!extent || *extent < least(axis)) {
      reader.fail(value.source(), in_quotes(key.str()) + " must be a whole number from " +
                                      std::to_string(least(axis)));
    }
    axes.emplace_back(axis, *extent);
  }
  return axes;
}

Extents read_axes(const Reader& reader, const LossSignature& loss) {
  Extents axes;
  const toml::table* table = reader.table("axes");
  if (!table) return axes;
  const std::vector<Axis> known =
      axes_of(loss, {Axis::vocab, Axis::hidden, Axis::support, Axis::responses});
  std::int64_t product = 1;
  for (const auto& [key, value] : *table) {
    const Axis axis = read_axis(reader, loss, known, key, "may be pinned");
    const auto extent = value.value_exact<std::int64_t>();
    if (!extent || *extent < least(axis) || *extent > kMostPinned / product) {
      reader.fail(value.source(), in_quotes(key.str()) + " must be a whole number from " +
                                      std::to_string(least(axis)) + " to " +
                                      std::to_string(kMostPinned) +
                                      (table->size() > 1 ? ", as the product of all axes" : ""));
    }
    product *= *extent;
    axes.emplace_back(axis, *extent);
  }
  return axes;
}

}  // namespace lossgate::impl
