// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include "reference/reference.h"

namespace lossgate::reference {
namespace {

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::optional<Refusal> refuse_option(const Option& option, const OptionValue* value) {
  const auto refusal = [&](std::string message) {
    return Refusal{.argument = option.name, .message = std::move(message)};
  };
  if (!value) return refusal("option is missing");
  if (std::holds_alternative<None>(*value)) {
    if (!option.nullable) return refusal("none is not a value of this option");
    return std::nullopt;
  }
  if (option.kind == Option::Kind::choice) {
    const auto* text = std::get_if<std::string>(value);
    if (!text || std::ranges::find(option.choices, *text) == option.choices.end()) {
      return refusal("not one of the choices");
    }
    return std::nullopt;
  }
  const auto* number = std::get_if<double>(value);
  if (!number || !(*number >= option.low && *number <= option.high)) {
    return refusal("outside [" + std::to_string(option.low) + ", " + std::to_string(option.high) +
                   "]");
  }
  const bool integral = option.kind != Option::Kind::real;
  if (integral && *number != std::floor(*number)) return refusal("not an integer");
  return std::nullopt;
}

std::optional<Refusal> refuse_spec(const LossSignature& signature, const LossSpec& spec) {
  // As they mostly are; then none is to be looked for.
  const bool in_order = std::ranges::equal(signature.options, spec.options, {}, &Option::name,
                                           &std::pair<std::string, OptionValue>::first);
  for (std::size_t i = 0; i < signature.options.size(); ++i) {
    const Option& option = signature.options[i];
    const OptionValue* value = in_order ? &spec.options[i].second : spec.find(option.name);
    if (auto refusal = refuse_option(option, value)) return refusal;
  }
  for (const auto& [name, value] : spec.options) {
    if (!in_order && !signature.find_option(name)) {
      return Refusal{.argument = name, .message = "unknown option"};
    }
  }
  const bool known =
      signature.reductions.empty()
          ? spec.reduction == Reduction::none
          : std::ranges::find(signature.reductions, spec.reduction) != signature.reductions.end();
  if (!known) {
    return Refusal{.argument = "reduction",
                   .message = quoted(name(spec.reduction)) + " is not a reduction of this loss"};
  }
  return std::nullopt;
}

bool fit(const Extents& extents, const std::vector<Axis>& axes, const Shape& shape) {
  return std::ranges::equal(extents, axes, {}, {}, [&](Axis axis) { return shape[axis]; });
}

std::optional<Refusal> refuse_fields(const LossSignature& signature, const Case& c) {
  const Dtype shared = float_dtype(signature, c);
  for (const Field& field : signature.fields) {
    const Tensor* tensor = c.batch.find(field.name);
    if (!tensor) return Refusal{.argument = field.name, .message = "field is missing"};
    const bool dtype_ok =
        field.dtypes.empty()
            ? is_float(tensor->dtype) && tensor->dtype == dtype_beside(field, shared)
            : std::ranges::find(field.dtypes, tensor->dtype) != field.dtypes.end();
    if (!dtype_ok) {
      return Refusal{.argument = field.name,
                     .message = "dtype " + std::string(name(tensor->dtype)) + " is not accepted"};
    }
    if (!fit(tensor->extents, field.axes, c.shape)) {
      return Refusal{.argument = field.name, .message = "extents differ from the case's shape"};
    }
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_mask(const LossSignature& signature, const Case& c) {
  if (signature.mask.empty()) return std::nullopt;
  const Tensor& mask = c.batch.at(signature.mask);
  std::byte bits{};  // of all entries together, which are bytes: one look for most masks
  for (std::byte byte : mask.bytes) bits |= byte;
  if (bits <= std::byte{1}) return std::nullopt;
  for (std::int64_t i = 0; i < mask.size(); ++i) {
    const double value = mask.at(i);
    if (value == 0.0 || value == 1.0) continue;
    const std::int64_t tokens = c.shape[Axis::tokens];
    return Refusal{.argument = signature.mask,
                   .sequence = i / tokens,
                   .token = i % tokens,
                   .message = "neither 0 nor 1"};
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_labels(const LossSignature& signature, const Case& c) {
  std::vector<bool> valid;
  for (const Field& field : signature.fields) {
    if (field.quantity != Quantity::label || !is_positional(field)) continue;
    if (valid.empty()) valid = valid_positions(signature, c);
    const Tensor& labels = c.batch.at(field.name);
    const std::int64_t tokens = c.shape[Axis::tokens];
    const std::int64_t vocab = c.shape[Axis::vocab];  // -1: what they number is not among the axes
    const std::int64_t each =
        labels.size() / std::max<std::int64_t>(c.shape[Axis::sequences] * tokens, 1);
    for (std::int64_t i = 0; i < labels.size(); ++i) {
      const std::int64_t position = i / std::max<std::int64_t>(each, 1);
      if (!valid[static_cast<std::size_t>(position)]) continue;
      const std::int64_t label = labels.integer_at(i);
      if (label >= 0 && (vocab < 0 || label < vocab)) continue;
      return Refusal{.argument = field.name,
                     .sequence = position / tokens,
                     .token = position % tokens,
                     .message = "label " + std::to_string(label) + " is outside the vocabulary"};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> expected_refusal(const Loss& loss, const Case& c) {
  const LossSignature& signature = loss.signature;
  if (auto refusal = refuse_spec(signature, c.spec)) return refusal;
  if (auto refusal = refuse_fields(signature, c)) return refusal;
  if (auto refusal = refuse_mask(signature, c)) return refusal;
  if (auto refusal = refuse_labels(signature, c)) return refusal;
  return loss.refuse(c);
}

}  // namespace lossgate::reference
