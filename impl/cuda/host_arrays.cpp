// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/host_arrays.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "impl/cuda/stepped_block.h"
#include "impl/cuda/weighing.h"

namespace lossgate::impl {
namespace {

constexpr std::byte kGuard{0xff};
constexpr std::int64_t kPadding = 3;  ///< elements; rows no longer lie on 16-byte borders

std::int64_t row_width(const Extents& extents) {
  std::int64_t width = 1;
  for (std::size_t axis = 2; axis < extents.size(); ++axis) width *= extents[axis];
  return width;
}

}  // namespace

const KernelMemory kHostMemory = {[](std::size_t bytes) { return new std::byte[bytes]; },
                                  [](std::byte* memory) { delete[] memory; }};

LaidOut::LaidOut(Dtype dtype, Extents extents, Layout layout, const KernelMemory& memory)
    : dtype_(dtype),
      extents_(std::move(extents)),
      width_(row_width(extents_)),
      first_(layout == Layout::offset || (layout == Layout::sliced && extents_.size() == 2)),
      sequence_stride_(width_ * extents_[1]),
      token_stride_(width_),
      buffer_(nullptr, memory.release) {
  std::int64_t count = element_count(extents_) + first_;
  if (layout == Layout::padded_rows && extents_.size() == 2) {
    sequence_stride_ += kPadding;
    count = extents_[0] * sequence_stride_;
  } else if (layout == Layout::padded_rows) {
    token_stride_ += kPadding;
    sequence_stride_ = token_stride_ * extents_[1];
    count = extents_[0] * sequence_stride_;
  } else if (layout == Layout::sliced) {
    sequence_stride_ += width_;
    count = extents_[0] * sequence_stride_;
  } else if (layout == Layout::transposed) {
    sequence_stride_ = width_;
    token_stride_ = width_ * extents_[0];
  }
  bytes_ = static_cast<std::size_t>(count) * size_of(dtype);
  buffer_.reset(memory.allocate(bytes_));
  std::fill_n(buffer_.get(), bytes_, kGuard);
}

LaidOut::LaidOut(const Tensor& tensor, Layout layout, const KernelMemory& memory)
    : LaidOut(tensor.dtype, tensor.extents, layout, memory) {
  const std::size_t bytes = static_cast<std::size_t>(width_) * size_of(dtype_);
  for_each_row([&](std::size_t here, std::size_t there) {
    std::memcpy(buffer_.get() + here, tensor.bytes.data() + there, bytes);
  });
}

template <class F>
void LaidOut::for_each_row(F&& f) const {
  const auto size = static_cast<std::int64_t>(size_of(dtype_));
  for (std::int64_t s = 0; s < extents_[0]; ++s) {
    for (std::int64_t t = 0; t < extents_[1]; ++t) {
      const std::int64_t here = first_ + s * sequence_stride_ + t * token_stride_;
      const std::int64_t there = (s * extents_[1] + t) * width_;
      if (width_ > 0)
        f(static_cast<std::size_t>(here * size), static_cast<std::size_t>(there * size));
    }
  }
}

Tensor LaidOut::gathered() const {
  Tensor dense = Tensor::zeros(dtype_, extents_);
  const std::size_t bytes = static_cast<std::size_t>(width_) * size_of(dtype_);
  std::vector<std::byte> rest(buffer_.get(), buffer_.get() + bytes_);
  for_each_row([&](std::size_t here, std::size_t there) {
    std::memcpy(dense.bytes.data() + there, buffer_.get() + here, bytes);
    std::memset(rest.data() + here, static_cast<int>(kGuard), bytes);
  });
  if (std::ranges::any_of(rest, [](std::byte b) { return b != kGuard; })) {
    throw BlockFault("a block wrote beside its array");
  }
  return dense;
}

HostArrays::HostArrays(MicroBatch& micro_batch, const KernelMemory& memory)
    : batch_(micro_batch), memory_(memory) {}

LaidOut& HostArrays::laid_out(std::string_view name) {
  return arrays_.emplace_back(batch_.part.batch.at(name), layout_of(batch_.part, name), memory_);
}

LaidOut& HostArrays::created(Dtype dtype, Extents extents) {
  const Layout layout = layout_of(batch_.part, std::ssize(arrays_));
  return arrays_.emplace_back(dtype, std::move(extents), layout, memory_);
}

Strided<const float> HostArrays::widened_field(std::string_view name) {
  const Tensor& stored = batch_.part.batch.at(name);
  Tensor wide = Tensor::zeros(Dtype::f32, stored.extents);
  for (std::int64_t i = 0; i < wide.size(); ++i) wide.set(i, stored.at(i));
  return arrays_.emplace_back(wide, layout_of(batch_.part, name), memory_).as<const float>();
}

Labels HostArrays::labels(std::string_view name) {
  if (batch_.part.batch.at(name).dtype == Dtype::i32) {
    return {.narrow = field<std::int32_t>(name), .wide = {}};
  }
  return {.narrow = {}, .wide = field<std::int64_t>(name)};
}

TokenArrays HostArrays::tokens() {
  const LossSignature& signature = batch_.signature;
  TokenArrays tokens;
  tokens.sequences = extent(Axis::sequences);
  tokens.tokens = extent(Axis::tokens);
  if (!signature.mask.empty()) tokens.validity.mask = field<std::uint8_t>(signature.mask);
  if (!signature.ignore_label.empty()) tokens.validity.labels = labels(signature.ignore_label);
  tokens.weighing = weighing_of(spec(), batch_.totals);
  tokens.row_tokens =
      arrays_.emplace_back(Dtype::i64, Extents{1, tokens.sequences}, Layout::contiguous, memory_)
          .as<std::int64_t>()
          .data;
  tokens.upstream = static_cast<float>(batch_.part.upstream);
  tokens.weighted = memory("weighted", {tokens.sequences, tokens.tokens});
  return tokens;
}

LossResult HostArrays::result(float loss) const {
  LossResult result;
  if (spec().reduction != Reduction::none) {
    Tensor total = Tensor::zeros(Dtype::f32, {});
    total.set(0, static_cast<double>(loss));
    result.outputs.push_back({"loss", std::move(total)});
  }
  for (const LaidOut& array : arrays_) {
    Tensor dense = array.gathered();
    for (const auto& [name, output] : outputs_) {
      if (output == &array) result.outputs.push_back({name, std::move(dense)});
    }
  }
  return result;
}

}  // namespace lossgate::impl
