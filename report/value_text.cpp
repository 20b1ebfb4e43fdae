// SPDX-License-Identifier: Apache-2.0
#include "report/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>

namespace lossgate::report {
namespace {

std::string bits_text(Dtype dtype, const std::byte* bits) {
  return fmt::format("0x{:0{}x}", load_bits(dtype, bits), 2 * size_of(dtype));
}

// Row-major offset of the field's entry at the place, where the place says which one that is.
std::optional<std::int64_t> offset_at(const Field& field, const Tensor& tensor,
                                      const properties::Place& place) {
  if (place.output == "gradient." + field.name) return place.index;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < field.axes.size(); ++i) {
    const std::int64_t at = field.axes[i] == Axis::sequences ? place.sequence
                            : field.axes[i] == Axis::tokens  ? place.token
                                                             : -1;
    if (at < 0 || at >= tensor.extents[i]) return std::nullopt;
    offset = offset * tensor.extents[i] + at;
  }
  return offset < tensor.size() ? std::optional(offset) : std::nullopt;
}

/// So few numbers say more than their range.
constexpr std::int64_t kMostListed = 6;

std::string range_text(const Tensor& tensor) {
  if (tensor.size() == 0) return "empty";
  if (tensor.size() <= kMostListed) {
    std::vector<std::string> numbers;
    for (std::int64_t i = 0; i < tensor.size(); ++i) numbers.push_back(decimal(tensor.at(i)));
    return fmt::format("= {}", fmt::join(numbers, " "));
  }
  double low = INFINITY, high = -INFINITY;
  std::int64_t nans = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double value = tensor.at(i);
    nans += value != value;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const std::string range =
      nans == tensor.size() ? "" : fmt::format("in [{}, {}]", decimal(low), decimal(high));
  return nans == 0 ? range : fmt::format("{}{}{} NaN", range, range.empty() ? "" : ", ", nans);
}

// Whether the position counts in the case, and not where the property looked.
bool masked_by_property(const LossSignature& signature, const Field& field, const Tensor& tensor,
                        std::int64_t offset, const properties::Place& place) {
  const bool by_mask_alone = signature.mask == field.name && signature.ignore_label.empty();
  return by_mask_alone && place.token >= 0 && !place.valid && tensor.at(offset) != 0.0;
}

}  // namespace

std::string decimal(double value) {
  if (value != value) return "nan";
  return fmt::format("{}", value);
}

std::string decimal(reference::Real value) {
  if (value != value) return "nan";
  const double rounded = static_cast<double>(value);
  if (static_cast<reference::Real>(rounded) == value) return decimal(rounded);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.20Lg", value);
  return text.data();
}

std::string brief(double value) {
  if (value != value) return "nan";
  return fmt::format("{:.3g}", value);
}

std::string with_bits(Dtype dtype, const std::byte* bits) {
  const std::string value =
      is_float(dtype) ? decimal(decode(dtype, bits)) : std::to_string(decode_integer(dtype, bits));
  return is_float(dtype) ? value + " (" + bits_text(dtype, bits) + ")" : value;
}

std::string with_bits(Dtype dtype, double value) {
  // A wrong count is no number of an integer type.
  if (!is_float(dtype) && (!std::isfinite(value) || value != std::trunc(value))) {
    return decimal(value);
  }
  std::array<std::byte, 8> bits{};
  encode(dtype, value, bits.data());
  return with_bits(dtype, bits.data());
}

std::string option_text(const OptionValue& value) {
  if (const double* number = std::get_if<double>(&value)) return decimal(*number);
  if (const std::string* choice = std::get_if<std::string>(&value)) return *choice;
  return "none";
}

std::string place_text(const properties::Place& place) {
  std::string text = place.output.empty() ? "the call" : place.output;
  if (!place.coordinates.empty()) text += fmt::format("[{}]", fmt::join(place.coordinates, ", "));
  if (place.token >= 0) {
    text += fmt::format(" (sequence {}, token {}, {})", place.sequence, place.token,
                        place.valid ? "valid" : "masked");
  } else if (place.sequence >= 0) {
    text += fmt::format(" (sequence {})", place.sequence);
  }
  return text;
}

std::vector<std::string> inputs_at(const LossSignature& signature, const Case& c,
                                   const properties::Place& place) {
  std::vector<std::string> inputs;
  for (const Field& field : signature.fields) {
    const Tensor* tensor = c.batch.find(field.name);
    if (!tensor || field.quantity == Quantity::payload) continue;
    const auto offset = offset_at(field, *tensor, place);
    if (offset && masked_by_property(signature, field, *tensor, *offset, place)) {
      inputs.push_back(fmt::format("{} 0 (as asked; {} in the case)", field.name,
                                   with_bits(tensor->dtype, tensor->element(*offset))));
    } else if (offset) {
      inputs.push_back(field.name + " " + with_bits(tensor->dtype, tensor->element(*offset)));
    } else if (place.sequence < 0) {
      inputs.push_back(field.name + " " + range_text(*tensor));
    }
  }
  return inputs;
}

std::vector<std::string> options_of(const LossSignature& signature, const Case& c) {
  std::vector<std::string> options;
  if (!signature.reductions.empty()) {
    options.push_back(fmt::format("reduction {}", name(c.spec.reduction)));
  }
  for (const auto& [option, value] : c.spec.options) {
    options.push_back(option + " " + option_text(value));
  }
  if (c.upstream != 1.0) options.push_back("upstream " + decimal(c.upstream));
  return options;
}

std::string case_line(const LossSignature& signature, const Case& c) {
  std::string text = c.spec.loss;
  text += ", " + std::string(name(float_dtype(signature, c)));
  for (const Axis axis : kAllAxes) {
    if (c.shape[axis] >= 0) text += fmt::format(", {} {}", name(axis), c.shape[axis]);
  }
  text += ", " + std::string(name(c.spec.reduction));
  if (!c.split.whole()) {
    text += fmt::format(", {} micro-batch{} on {} rank{}", c.split.parts.size(),
                        c.split.parts.size() == 1 ? "" : "es", c.split.world,
                        c.split.world == 1 ? "" : "s");
  }
  if (c.layout != Layout::contiguous) text += ", " + std::string(name(c.layout));
  if (c.upstream != 1.0) text += ", upstream " + decimal(c.upstream);
  for (const auto& [option, value] : c.spec.options) {
    const Option* declared = signature.find_option(option);
    if (!declared || declared->standard != value) text += ", " + option + " " + option_text(value);
  }
  return text;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > width) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

}  // namespace lossgate::report
