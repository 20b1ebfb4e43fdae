// SPDX-License-Identifier: Apache-2.0
#include "impl/external/config_axes.h"

#include <algorithm>
#include <string_view>

namespace lossgate::impl {
namespace {

/// Work on larger cases is slow, and shows nothing else.
constexpr std::int64_t kMostPinned = 4096;

}  // namespace

std::vector<std::pair<Axis, std::int64_t>> read_axes(const Reader& reader,
                                                     const LossSignature& loss) {
  std::vector<std::pair<Axis, std::int64_t>> axes;
  const toml::table* table = reader.table("axes");
  if (!table) return axes;
  std::vector<Axis> known;
  std::vector<std::string_view> names;
  for (const Axis axis : {Axis::vocab, Axis::hidden, Axis::support, Axis::responses}) {
    const bool has = std::ranges::any_of(loss.fields, [&](const Field& field) {
      return std::ranges::find(field.axes, axis) != field.axes.end();
    });
    if (!has) continue;
    known.push_back(axis);
    names.push_back(name(axis));
  }
  std::int64_t product = 1;
  for (const auto& [key, value] : *table) {
    const auto at = std::ranges::find(names, key.str());
    if (at == names.end()) {
      reader.fail(key.source(), loss.id + " has no axis " + in_quotes(key.str()) +
                                    " that may be pinned; it has " +
                                    (names.empty() ? "none" : listed(names)));
    }
    const Axis axis = known[static_cast<std::size_t>(at - names.begin())];
    const std::int64_t least = axis == Axis::vocab ? 2 : 1;
    const auto extent = value.value_exact<std::int64_t>();
    if (!extent || *extent < least || *extent > kMostPinned / product) {
      reader.fail(value.source(), in_quotes(key.str()) + " must be a whole number from " +
                                      std::to_string(least) + " to " + std::to_string(kMostPinned) +
                                      (table->size() > 1 ? ", as the product of all axes" : ""));
    }
    product *= *extent;
    axes.emplace_back(axis, *extent);
  }
  return axes;
}

}  // namespace lossgate::impl
