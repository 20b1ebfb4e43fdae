// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "impl/cuda/fused/fused.h"
#include "impl/cuda/positions_block.h"
#include "impl/cuda/stored_dtype.h"
#include "reference/spec/case.h"
#include "reference/spec/result.h"

namespace lossgate::impl {

/// The memory of a caller under the names of a loss's fields (see Named in named_arrays.h). A
/// Refusal names what is missing, or is not what a kernel may be given.
class CallArrays {
 public:
  explicit CallArrays(const lossgate_fused_call& call);

  const LossSpec& spec() const { return spec_; }
  std::int64_t extent(Axis axis) const;

  template <class T>
  Strided<const T> field(std::string_view name) const {
    return strided<const T>(required(name, kDtype<T>));
  }
  Strided<const float> widened_field(std::string_view name) const { return field<float>(name); }
  Strided<const float> weight(std::string_view name) const {
    return find(name) ? field<float>(name) : Strided<const float>{};
  }

  template <class T>
  Strided<T> output(std::string_view name, const Extents&) const {
    return strided<T>(required(name, kDtype<T>));
  }
  template <class T>
  Strided<T> gradient(std::string_view field, const Extents&) const {
    const lossgate_fused_array* const array = find("gradient." + std::string(field));
    if (!array) return {};
    return strided<T>(required(array->name, kDtype<T>));
  }
  Strided<float> memory(std::string_view name, const Extents& extents) const {
    return output<float>(name, extents);
  }

  TokenArrays tokens() const;

  /// Where the loss goes.
  float* loss() const;
  Dtype dtype_of(std::string_view field) const;

 private:
  template <class T>
  static Strided<T> strided(const lossgate_fused_array& array) {
    return {static_cast<T*>(array.data), array.sequence_stride, array.token_stride};
  }

  const lossgate_fused_array* find(std::string_view name) const;
  const lossgate_fused_array& required(std::string_view name) const;
  const lossgate_fused_array& required(std::string_view name, Dtype dtype) const;
  static void require_dtype(const lossgate_fused_array& array, Dtype dtype);
  Validity validity() const;

  const lossgate_fused_call& call_;
  std::span<const lossgate_fused_array> arrays_;
  LossSpec spec_;
};

/// Whether a mask says which positions count, of losses that have no vocabulary, or labels do.
bool is_masked(const LossSpec& spec);

/// Refuses counts and options that no loss is defined for.
void require_defined(const lossgate_fused_call& call, const LossSpec& spec);

}  // namespace lossgate::impl
