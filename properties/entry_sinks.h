// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/reference.h"

/// What becomes of the entries that a formula writes.
namespace lossgate::properties {

/// Each is visited.
template <class Visitor>
struct Forwarding final : reference::Sink<reference::Tracked> {
  explicit Forwarding(const Visitor& visit_in) : visit(visit_in) {}
  void entry(std::size_t output, std::int64_t index, const reference::Tracked& value) override {
    visit(output, index, value);
  }
  const Visitor& visit;
};

/// Each is visited until one is found.
template <class Predicate>
struct Searching final : reference::Sink<reference::Tracked> {
  struct Found {};
  explicit Searching(const Predicate& is_one_in) : is_one(is_one_in) {}
  void entry(std::size_t output, std::int64_t index, const reference::Tracked& value) override {
    if (is_one(output, index, value)) throw Found();
  }
  const Predicate& is_one;
};

/// All are kept.
struct Keeping final : reference::Sink<reference::Tracked> {
  explicit Keeping(std::span<const OutputInfo> outputs) {
    for (const OutputInfo& output : outputs) {
      values.emplace_back(static_cast<std::size_t>(element_count(output.extents)));
    }
  }
  void entry(std::size_t output, std::int64_t index, const reference::Tracked& value) override {
    values[output][static_cast<std::size_t>(index)] = value;
  }
  std::vector<std::vector<reference::Tracked>> values;
};

}  // namespace lossgate::properties
