// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "corpora/case_check.h"
#include "corpora/dump.h"
#include "corpora/element_text.h"
#include "reference/spec/kinds.h"
#include "reference/spec/numbers.h"

/// Dumps as cases.
namespace lossgate::corpora {
namespace {

std::string text_of(const OptionValue& value) {
  if (const double* number = std::get_if<double>(&value)) return number_text(*number);
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  return "none";
}

/// The widest of the floating-point formats among the fields that are free in theirs: all of them
/// have one in a case that any function may be asked, and widening changes no value.
Dtype shared_dtype(const Dump& dump, const LossSignature& signature) {
  Dtype widest = Dtype::f16;
  bool any = false;
  for (const Field& field : signature.fields) {
    const Tensor* tensor = dump.find_field(field.name);
    if (!tensor || !field.dtypes.empty() || !is_float(tensor->dtype)) continue;
    const bool same = !any || tensor->dtype == widest;
    // Neither 16-bit format holds the numbers of the other.
    const bool mixed = !same && size_of(tensor->dtype) == size_of(widest);
    if (mixed) {
      widest = Dtype::f32;
    } else if (!any || size_of(tensor->dtype) > size_of(widest)) {
      widest = tensor->dtype;
    }
    any = true;
  }
  return any ? widest : Dtype::f32;
}

/// Whether the format has this very number.
bool holds(Dtype dtype, double value) {
  if (is_float(dtype)) return std::isnan(value) || round_to(dtype, value) == value;
  constexpr double kInt32 = 0x1p31, kInt64 = 0x1p63;
  const double most = dtype == Dtype::boolean ? 1.0
                      : dtype == Dtype::u8    ? 255.0
                      : dtype == Dtype::i32   ? kInt32 - 1.0
                                              : kInt64;
  const double least = dtype == Dtype::i32 ? -kInt32 : dtype == Dtype::i64 ? -kInt64 : 0.0;
  return std::trunc(value) == value && least <= value && value <= most;
}

/// The first element that the format does not have, or -1.
std::int64_t first_lost(const Tensor& tensor, Dtype dtype) {
  for (std::int64_t i = 0; tensor.dtype != dtype && i < tensor.size(); ++i) {
    if (!holds(dtype, tensor.at(i))) return i;
  }
  return -1;
}

/// As wide as whole numbers that stand beside it need.
Dtype widened(Dtype shared, const Dump& dump, const LossSignature& signature) {
  for (const Field& field : signature.fields) {
    const Tensor* tensor = dump.find_field(field.name);
    if (!tensor || !field.dtypes.empty() || is_float(tensor->dtype)) continue;
    for (const Dtype wider : {Dtype::f32, Dtype::f64}) {
      const bool grows = size_of(wider) > size_of(shared);
      if (grows && first_lost(*tensor, shared) >= 0) shared = wider;
    }
  }
  return shared;
}

/// A number of each row at each position.
Tensor spread(const Tensor& tensor, const Extents& extents) {
  Tensor wide = Tensor::zeros(tensor.dtype, extents);
  const std::int64_t each = extents[0] > 0 ? wide.size() / extents[0] : 0;
  for (std::int64_t i = 0; i < wide.size(); ++i) {
    std::copy_n(tensor.element(i / each), size_of(tensor.dtype), wide.element(i));
  }
  return wide;
}

/// The lengths of the axes, as far as the dump tells them.
Shape shape_of(const Dump& dump, const LossSignature& signature) {
  Shape shape;
  for (const Field& field : signature.fields) {
    const Tensor* tensor = dump.find_field(field.name);
    if (!tensor || tensor->extents.size() != field.axes.size()) continue;
    for (std::size_t i = 0; i < field.axes.size(); ++i) {
      // The longest: one that stands for all is 1.
      shape[field.axes[i]] = std::max(shape[field.axes[i]], tensor->extents[i]);
    }
  }
  return shape;
}

/// Whether the tensor has one number for each row, [S] or [S, 1], where the field has one for each
/// position.
bool has_rows_alone(const Tensor& tensor, const Extents& extents) {
  return extents.size() == 2 && tensor.size() == extents[0] && tensor.extents != extents;
}

/// Nothing is allocated because a file claims a length: no field that is made has more numbers than
/// the largest tensor that is there.
void check_size(const Dump& dump, const LossSignature& signature, const Shape& shape,
                std::string_view name) {
  std::int64_t largest = 1;
  for (const auto& [field, tensor] : dump.fields) largest = std::max(largest, tensor.size());
  for (const Field& field : signature.fields) {
    const Extents extents = shape.of(field.axes);
    const Tensor* given = dump.find_field(field.name);
    if (given && !has_rows_alone(*given, extents)) continue;
    if (std::ranges::any_of(extents, [](std::int64_t n) { return n < 0; })) continue;
    const std::optional<std::int64_t> count = checked_count(extents);
    if (count && *count <= largest) continue;
    throw FormatError(name, 0, "tensor " + field.name,
                      "expected up to " + std::to_string(largest) +
                          " numbers, as the largest tensor has, found tensors whose axes together "
                          "make them more");
  }
}

[[noreturn]] void lacks(const Dump& dump, const LossSignature& signature, const Field& field,
                        std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [each, tensor] : dump.fields) names.push_back(each);
  throw FormatError(name, 0, "tensor " + field.name,
                    "expected watch(" + field.name + "=...), as the loss " + signature.id +
                        " names it; the dump has " + listed(names));
}

/// Takes the tensor out of the dump: large ones are not copied.
Tensor tensor_of(Dump& dump, const LossSignature& signature, const Field& field, const Shape& shape,
                 Dtype shared, std::string_view name) {
  const auto found =
      std::ranges::find(dump.fields, field.name, &std::pair<std::string, Tensor>::first);
  Tensor* given = found == dump.fields.end() ? nullptr : &found->second;
  const Extents extents = shape.of(field.axes);
  const bool known = std::ranges::all_of(extents, [](std::int64_t n) { return n >= 0; });
  // Whoever leaves a mask away has none; of two kinds of sequences nobody means the one.
  const bool needed =
      field.role == Role::differentiable || field.role == Role::label || tells_kinds(field);
  if (!given && (needed || !known)) lacks(dump, signature, field, name);
  Dtype dtype = field.dtypes.empty() ? shared : field.dtypes.front();
  if (!given) {
    Tensor absent = Tensor::zeros(dtype, extents);
    for (std::int64_t i = 0; field.role == Role::mask && i < absent.size(); ++i) absent.set(i, 1.0);
    return absent;
  }
  const auto& dtypes = field.dtypes;
  if (std::ranges::find(dtypes, given->dtype) != dtypes.end()) dtype = given->dtype;
  const bool rows = known && has_rows_alone(*given, extents);
  if (const std::int64_t at = first_lost(*given, dtype); at >= 0) {
    throw FormatError(name, 0, "tensor " + field.name,
                      "expected numbers that " + std::string(lossgate::name(dtype)) +
                          " holds, found " + number_text(given->at(at)));
  }
  return as_dtype(rows ? spread(*given, extents) : std::move(*given), dtype);
}

}  // namespace

TensorFile case_file_of(Dump dump, const LossSignature& signature, std::string_view file_name) {
  TensorFile file;
  file.metadata.emplace_back("loss", signature.id);
  const Dump::Given* reduction = dump.find_given("reduction");
  if (reduction) {
    file.metadata.emplace_back("reduction", text_of(reduction->value));
  } else if (signature.reductions.size() == 1) {
    file.metadata.emplace_back("reduction", name(signature.reductions.front()));
  } else {
    std::vector<std::string_view> names;
    for (const Reduction each : signature.reductions) names.push_back(name(each));
    throw FormatError(file_name, 0, "reduction",
                      "expected watch(reduction=...), one of " + listed(names));
  }
  for (const Option& option : signature.options) {
    const Dump::Given* given = dump.find_given(option.name);
    if (given) file.metadata.emplace_back("option." + option.name, text_of(given->value));
  }
  file.metadata.emplace_back("upstream", number_text(dump.upstream));
  const Dtype shared = widened(shared_dtype(dump, signature), dump, signature);
  const Shape shape = shape_of(dump, signature);
  check_size(dump, signature, shape, file_name);
  for (const Field& field : signature.fields) {
    file.tensors.emplace_back(field.name,
                              tensor_of(dump, signature, field, shape, shared, file_name));
  }
  return file;
}

}  // namespace lossgate::corpora
