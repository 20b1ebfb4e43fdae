// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "impl/faulty/other_field.h"

namespace lossgate::impl {

/// Where the elements of an array lie that is laid out in memory.
class Strides {
 public:
  Strides(const Extents& extents, Layout layout) : extents_(extents), strides_(extents.size()) {
    const bool swaps = layout == Layout::transposed && extents.size() > 1;
    Extents in_memory = extents;
    if (swaps) std::swap(in_memory[0], in_memory[1]);
    std::int64_t stride = 1;
    for (std::size_t axis = in_memory.size(); axis-- > 0;) {
      strides_[axis] = stride;
      const bool wider = axis == std::max<std::size_t>(extents.size(), 3) - 2;
      stride *= in_memory[axis] + (wider && layout == Layout::sliced);
      if (axis + 1 == in_memory.size() && layout == Layout::padded_rows) stride += kBeside;
    }
    if (swaps) std::swap(strides_[0], strides_[1]);
  }

  std::int64_t operator()(std::int64_t at) const {
    std::int64_t place = 0;
    for (std::size_t axis = extents_.size(); axis-- > 0; at /= extents_[axis]) {
      place += at % extents_[axis] * strides_[axis];
    }
    return place;
  }

 private:
  static constexpr std::int64_t kBeside = 3;  ///< elements behind each row
  Extents extents_;
  std::vector<std::int64_t> strides_;  ///< of each axis
};

/// What a kernel finds in a tensor that lies in memory as one layout says and is read as another
/// one does; beside the elements, a number that would show.
inline Tensor read_by_strides_of(const Tensor& tensor, Layout lies, Layout read) {
  constexpr double kNumberBeside = 77.0;
  Tensor found = tensor;
  if (tensor.size() == 0) return found;
  const Strides place(tensor.extents, lies), taken(tensor.extents, read);
  std::vector<double> memory(static_cast<std::size_t>(place(tensor.size() - 1) + 1), kNumberBeside);
  for (std::int64_t at = 0; at < tensor.size(); ++at) {
    memory[static_cast<std::size_t>(place(at))] = tensor.at(at);
  }
  for (std::int64_t at = 0; at < tensor.size(); ++at) {
    const auto i = static_cast<std::size_t>(taken(at));
    found.set(at, i < memory.size() ? memory[i] : kNumberBeside);
  }
  return found;
}

/// The step that reads one field with the strides of another of the same shape, or, where none is
/// named, with those of a contiguous one.
inline Step with_field_by_strides_of(Step step, std::string field, std::string other = "") {
  return [=](MicroBatch& batch) {
    const Case& part = batch.part;
    const Layout read = other.empty() ? Layout::contiguous : layout_of(part, other);
    return with_other_field(step, batch, field,
                            read_by_strides_of(part.batch.at(field), layout_of(part, field), read));
  };
}

}  // namespace lossgate::impl
