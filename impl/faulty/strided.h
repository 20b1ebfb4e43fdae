// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "impl/faulty/other_field.h"

namespace lossgate::impl {

/// Where the elements of an array lie that is laid out in memory.
class Strides {
 public:
  Strides(const Extents& extents, Layout layout)
      : width_(extents.back()), row_(width_ + (layout == Layout::padded_rows ? kBeside : 0)) {
    if (layout == Layout::transposed && extents.size() > 1) {
      outer_ = extents[0];
      inner_ = extents[1];
      each_ = outer_ * inner_ == 0 ? 1 : element_count(extents) / (outer_ * inner_);
    }
  }

  std::int64_t operator()(std::int64_t at) const {
    const std::int64_t place = at / each_;
    if (inner_ > 0) return (place % inner_ * outer_ + place / inner_) * each_ + at % each_;
    return at / width_ * row_ + at % width_;
  }

 private:
  static constexpr std::int64_t kBeside = 3;  ///< elements behind each row
  std::int64_t width_, row_;
  std::int64_t outer_ = 0, inner_ = 0, each_ = 1;  ///< where the first two axes are swapped
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
