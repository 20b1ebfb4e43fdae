// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "impl/cuda/positions_block.h"
#include "impl/cuda/stored_dtype.h"
#include "impl/trainer.h"

/// A micro-batch in the memory of the host as a kernel would find it in a device's.
namespace lossgate::impl {

/// Where arrays lie: in the host's memory, or where a device sees them, too.
struct KernelMemory {
  std::byte* (*allocate)(std::size_t bytes);
  void (*release)(std::byte* memory);
};

extern const KernelMemory kHostMemory;

/// The bytes of one array, laid out as the case says. What lies between its rows and beside them is
/// NaN, or -1, for whoever reads it, and must be the same afterwards.
class LaidOut {
 public:
  LaidOut(Dtype dtype, Extents extents, Layout layout, const KernelMemory& memory);
  LaidOut(const Tensor& tensor, Layout layout, const KernelMemory& memory);

  template <class T>
  Strided<T> as() {
    return {reinterpret_cast<T*>(buffer_.get()) + first_, sequence_stride_, token_stride_};
  }

  /// The elements, densely. Throws BlockFault where anything beside them was written.
  Tensor gathered() const;

 private:
  template <class F>
  void for_each_row(F&& f) const;  ///< f(byte offset in the buffer, byte offset in a dense tensor)

  Dtype dtype_;
  Extents extents_;
  std::int64_t width_, first_, sequence_stride_, token_stride_;
  std::size_t bytes_;
  std::unique_ptr<std::byte[], void (*)(std::byte*)> buffer_;
};

/// The arrays of one call. Inputs are the fields of the micro-batch, outputs go into its result.
class HostArrays {
 public:
  HostArrays(MicroBatch& micro_batch, const KernelMemory& memory);

  const LossSpec& spec() const { return batch_.part.spec; }
  std::int64_t extent(Axis axis) const { return batch_.part.shape[axis]; }

  template <class T>
  Strided<const T> field(std::string_view name) {
    return laid_out(name).as<const T>();
  }
  /// A field in f32, whatever it is stored in.
  Strided<const float> widened_field(std::string_view name);
  Strided<const float> weight(std::string_view name) { return widened_field(name); }
  Labels labels(std::string_view name);

  /// An output of the result.
  template <class T>
  Strided<T> output(std::string name, Extents extents) {
    LaidOut& array = created(kDtype<T>, std::move(extents));
    outputs_.emplace_back(std::move(name), &array);
    return array.as<T>();
  }
  template <class T>
  Strided<T> gradient(std::string_view field, Extents extents) {
    return output<T>("gradient." + std::string(field), std::move(extents));
  }
  /// Gone after the call.
  Strided<float> memory(std::string_view, Extents extents) {
    return created(Dtype::f32, std::move(extents)).as<float>();
  }

  /// Filled in: what all kernels have in common.
  TokenArrays tokens();

  /// The outputs by name in the order in which they were asked for, the loss first where the
  /// reduction has one.
  LossResult result(float loss) const;

 private:
  LaidOut& laid_out(std::string_view name);
  LaidOut& created(Dtype dtype, Extents extents);

  MicroBatch& batch_;
  const KernelMemory& memory_;
  std::deque<LaidOut> arrays_;  // addresses stay
  std::vector<std::pair<std::string, const LaidOut*>> outputs_;
};

/// f(position, row) for every position that counts, of [sequences, tokens] or a part of it.
template <class F>
void for_each_valid_row(const Positions& positions, const Strided<float>& rows, std::int64_t tokens,
                        F&& f) {
  for (std::size_t i = 0; i < positions.valid.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    if (positions.valid[i] == 0) continue;
    f(i,
      rows.data + position / tokens * rows.sequence_stride + position % tokens * rows.token_stride);
  }
}

/// Calls f.operator()<Stored>() for the format of the fields.
template <class F>
LossResult with_storage(Dtype dtype, F&& f) {
  if (dtype == Dtype::bf16) return f.template operator()<Bf16>();
  if (dtype == Dtype::f16) return f.template operator()<F16>();
  return f.template operator()<float>();
}

}  // namespace lossgate::impl
