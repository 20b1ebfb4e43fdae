// SPDX-License-Identifier: Apache-2.0
#include "corpora/case_check.h"

#include <algorithm>
#include <utility>

#include "corpora/format_error.h"
#include "corpora/header.h"

namespace lossgate::corpora {
namespace {

std::string extents_text(const Extents& extents) {
  std::vector<std::string> numbers;
  for (std::int64_t extent : extents) numbers.push_back(std::to_string(extent));
  return "[" + listed(numbers) + "]";
}

void check_field(const Field& field, const Tensor& tensor, const Shape& shape,
                 std::optional<Dtype>& shared, std::string_view file) {
  const auto fail = [&](const std::string& expected) {
    throw FormatError(file, 0, "field " + field.name, expected);
  };
  if (const std::string expected = wrong_dtype(field, tensor.dtype, shared); !expected.empty()) {
    fail(expected);
  }
  if (tensor.extents != shape.of(field.axes)) {
    fail("expected the shape " + shape_text(field.axes, shape) + ", found " +
         extents_text(tensor.extents));
  }
  const std::optional<std::int64_t> count = checked_count(tensor.extents);
  const auto held = static_cast<std::int64_t>(tensor.bytes.size() / size_of(tensor.dtype));
  if (!count || *count != held || tensor.bytes.size() % size_of(tensor.dtype) != 0) {
    fail("expected as many bytes as the shape says, found " + std::to_string(tensor.bytes.size()));
  }
  const auto is_truth = [](std::byte byte) { return byte <= std::byte{1}; };
  if (tensor.dtype == Dtype::boolean && !std::ranges::all_of(tensor.bytes, is_truth)) {
    fail("expected bool elements to be 0 or 1");
  }
}

}  // namespace

std::optional<std::int64_t> checked_count(const Extents& extents) {
  std::int64_t count = 1;
  bool fits = true;
  for (std::int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    fits = !__builtin_mul_overflow(count, extent, &count) && fits;
  }
  // An extent of 0 makes any product 0, but a file that needs it to be saved from an overflow is
  // not one that anybody meant.
  return fits ? std::optional(count) : std::nullopt;
}

std::string shape_text(const std::vector<Axis>& axes, const Shape& shape) {
  std::vector<std::string> parts;
  for (Axis axis : axes)
    parts.push_back(std::string(name(axis)) + " " + std::to_string(shape[axis]));
  return "[" + listed(parts) + "]";
}

std::string wrong_dtype(const Field& field, Dtype dtype, std::optional<Dtype>& shared) {
  if (!field.dtypes.empty()) {
    if (std::ranges::find(field.dtypes, dtype) != field.dtypes.end()) return "";
    std::vector<std::string_view> names;
    for (Dtype allowed : field.dtypes) names.push_back(name(allowed));
    return "expected the dtype " + listed(names) + ", found " + std::string(name(dtype));
  }
  if (is_float(dtype)) {
    Dtype narrow = shared.value_or(dtype), wide = dtype;
    if (size_of(wide) < size_of(narrow)) std::swap(narrow, wide);
    if (narrow == wide || (size_of(narrow) == 2 && wide == Dtype::f32)) {
      shared = narrow;
      return "";
    }
  }
  const std::string expected =
      shared ? std::string(name(*shared)) + " as the fields before it" : "f64, f32, f16 or bf16";
  return "expected the dtype " + expected + ", found " + std::string(name(dtype));
}

void check_fields(const Case& c, const LossSignature& signature, std::string_view file) {
  std::optional<Dtype> shared;
  for (const Field& field : signature.fields) {
    const Tensor* tensor = c.batch.find(field.name);
    if (!tensor)
      throw FormatError(file, 0, "field " + field.name, "expected this field, found none");
    check_field(field, *tensor, c.shape, shared, file);
  }
  for (const auto& [field, tensor] : c.batch.fields) {
    if (signature.find_field(field)) continue;
    throw FormatError(file, 0, "field " + in_quotes(field),
                      "expected a field that the loss " + signature.id + " has");
  }
  if (c.batch.fields.size() != signature.fields.size()) {
    throw FormatError(file, 0, "fields", "expected each field only once");
  }
}

void check_case(const Case& c, const LossSignature& signature, std::string_view file) {
  if (c.spec.loss != signature.id) {
    throw FormatError(file, 0, "loss",
                      "expected " + signature.id + ", found " + in_quotes(c.spec.loss));
  }
  std::vector<Entry> entries;
  for (auto& [key, value] : describe(c)) entries.push_back({std::move(key), std::move(value), 0});
  const Header header(file, std::move(entries));
  Case read;
  read_description(header, signature, Missing::error, Shape(), read);
  for (const auto& [option, value] : c.spec.options) {
    if (*read.spec.find(option) != value) {
      header.fail("option." + option, "expected a value of the option's own kind");
    }
  }
  check_fields(c, signature, file);
}

}  // namespace lossgate::corpora
