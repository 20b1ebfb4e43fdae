// SPDX-License-Identifier: Apache-2.0
#include "impl/validate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "impl/positions.h"

namespace lossgate::impl {
namespace {

[[noreturn]] void refuse(std::string_view argument, std::string message) {
  throw Refusal{.argument = std::string(argument), .message = std::move(message)};
}

[[noreturn]] void refuse_at(std::string_view argument, std::int64_t sequence, std::int64_t token,
                            std::string message) {
  throw Refusal{std::string(argument), sequence, token, std::move(message)};
}

std::string as_text(double value) {
  std::string text = std::to_string(value);
  if (text.find('.') == std::string::npos) return text;  // inf, nan
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string as_text(const Extents& extents) {
  std::string text = "[";
  for (std::int64_t extent : extents) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + "]";
}

void check_number(const Option& option, double value) {
  if (!(value >= option.low && value <= option.high)) {
    refuse(option.name, "is " + as_text(value) + ", outside [" + as_text(option.low) + ", " +
                            as_text(option.high) + "]");
  }
  if (option.kind != Option::Kind::real && value != std::floor(value)) {
    refuse(option.name, "is " + as_text(value) + ", not a whole number");
  }
}

void check_option(const Option& option, const OptionValue& value) {
  if (std::holds_alternative<None>(value)) {
    if (!option.nullable) refuse(option.name, "is none, which it may not be");
  } else if (const double* number = std::get_if<double>(&value)) {
    if (option.kind == Option::Kind::choice) refuse(option.name, "is a number, not a choice");
    check_number(option, *number);
  } else {
    const std::string& choice = std::get<std::string>(value);
    if (option.kind != Option::Kind::choice) refuse(option.name, "is '" + choice + "', no number");
    if (std::ranges::find(option.choices, choice) == option.choices.end()) {
      refuse(option.name, "is '" + choice + "', which is no choice of it");
    }
  }
}

void check_shape(const Field& field, const Shape& shape, const Tensor& tensor) {
  for (Axis axis : field.axes) {
    if (shape[axis] < 0) {
      refuse(field.name, "has the axis " + std::string(name(axis)) + ", which the case lacks");
    }
  }
  const auto extent_of = [&](Axis axis) { return shape[axis]; };
  if (!std::ranges::equal(tensor.extents, field.axes, {}, {}, extent_of)) {
    refuse(field.name,
           "has shape " + as_text(tensor.extents) + ", not " + as_text(shape.of(field.axes)));
  }
  // Divided, not multiplied: a product of absurd extents would overflow.
  std::size_t left = tensor.bytes.size() / size_of(tensor.dtype);
  bool fits = tensor.bytes.size() % size_of(tensor.dtype) == 0;
  const bool empty = std::ranges::find(tensor.extents, 0) != tensor.extents.end();
  for (std::int64_t extent : tensor.extents) {
    if (empty) break;
    fits = fits && left % static_cast<std::size_t>(extent) == 0;
    left /= static_cast<std::size_t>(extent);
  }
  if (!fits || left != (empty ? 0u : 1u)) {
    refuse(field.name, "holds " + std::to_string(tensor.bytes.size()) + " bytes, not those of " +
                           as_text(tensor.extents));
  }
}

void check_dtype(const Field& field, Dtype dtype) {
  const bool accepted = field.dtypes.empty()
                            ? is_float(dtype)
                            : std::ranges::find(field.dtypes, dtype) != field.dtypes.end();
  if (!accepted) {
    refuse(field.name, "has dtype " + std::string(name(dtype)) + ", which it may not have");
  }
}

/// Where an element of a field lies, as far as the field has these axes.
struct Place {
  std::int64_t sequence, token;
};

Place place_of(const Field& field, const Tensor& tensor, std::int64_t index) {
  if (!has_rows(field.axes)) return {-1, -1};
  const std::int64_t row = tensor.size() / tensor.extents[0];
  if (!is_positional(field)) return {index / row, -1};
  return {index / row, index % row / (row / tensor.extents[1])};
}

void check_mask(const Field& field, const Tensor& tensor) {
  const std::size_t width = size_of(tensor.dtype);
  std::byte bits{};  // of them all together: one look for most masks
  for (std::byte byte : tensor.bytes) bits |= byte;
  if (width == 1 && bits <= std::byte{1}) return;
  for (std::size_t byte = 0; byte < tensor.bytes.size(); ++byte) {
    const bool lowest = width == 1 || byte % width == 0;
    if (tensor.bytes[byte] <= (lowest ? std::byte{1} : std::byte{0})) continue;
    const auto i = static_cast<std::int64_t>(byte / width);
    const Place place = place_of(field, tensor, i);
    refuse_at(field.name, place.sequence, place.token,
              "is " + std::to_string(tensor.integer_at(i)) + ", not 0 or 1");
  }
}

/// Calls f(index, place) for every element that may count in the loss.
template <class F>
void for_each_valid(const Field& field, const Tensor& tensor, const Positions& positions, F&& f) {
  const auto count = static_cast<std::int64_t>(positions.valid.size());
  const std::int64_t width = is_positional(field) && count > 0 ? tensor.size() / count : 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (width > 0 && !positions.valid[static_cast<std::size_t>(i / width)]) continue;
    f(i, place_of(field, tensor, i));
  }
}

}  // namespace

void check_reduction(const LossSignature& signature, const Case& c) {
  const auto& known = signature.reductions;
  const bool found = known.empty() ? c.spec.reduction == Reduction::none
                                   : std::ranges::find(known, c.spec.reduction) != known.end();
  if (!found) {
    refuse("reduction",
           "'" + std::string(name(c.spec.reduction)) + "' is no reduction of " + signature.id);
  }
}

void check_options(const LossSignature& signature, const Case& c) {
  // As they mostly are; then none is to be looked for.
  const bool in_order =
      std::ranges::equal(c.spec.options, signature.options, {},
                         &std::pair<std::string, OptionValue>::first, &Option::name);
  for (const auto& [option, value] : c.spec.options) {
    if (in_order) break;
    if (!signature.find_option(option)) refuse(option, "is no option of " + signature.id);
  }
  for (std::size_t i = 0; i < signature.options.size(); ++i) {
    const Option& option = signature.options[i];
    const OptionValue* value = in_order ? &c.spec.options[i].second : c.spec.find(option.name);
    if (!value) refuse(option.name, "is missing");
    check_option(option, *value);
  }
}

void check_fields(const LossSignature& signature, const Case& c) {
  const bool in_order = std::ranges::equal(c.batch.fields, signature.fields, {},
                                           &std::pair<std::string, Tensor>::first, &Field::name);
  for (const auto& [field, tensor] : c.batch.fields) {
    if (in_order) break;
    if (!signature.find_field(field)) refuse(field, "is no field of " + signature.id);
  }
  const Dtype shared = float_dtype(signature, c);
  for (std::size_t i = 0; i < signature.fields.size(); ++i) {
    const Field& field = signature.fields[i];
    const Tensor* tensor = in_order ? &c.batch.fields[i].second : c.batch.find(field.name);
    if (!tensor) refuse(field.name, "is missing");
    check_dtype(field, tensor->dtype);
    check_shape(field, c.shape, *tensor);
    if (!field.dtypes.empty()) continue;
    if (tensor->dtype != dtype_beside(field, shared)) {
      refuse(field.name, "has dtype " + std::string(name(tensor->dtype)) + ", not " +
                             std::string(name(dtype_beside(field, shared))) + " beside " +
                             std::string(name(shared)));
    }
  }
}

void check_values(const LossSignature& signature, const Case& c) {
  for (const Field& field : signature.fields) {
    if (field.role == Role::mask) check_mask(field, c.batch.at(field.name));
  }
  std::optional<Positions> positions;
  const auto valid = [&]() -> const Positions& {
    if (!positions) positions = find_positions(signature, c);
    return *positions;
  };
  const std::int64_t vocab = c.shape[Axis::vocab];
  for (const Field& field : signature.fields) {
    const Tensor& tensor = c.batch.at(field.name);
    if (field.quantity == Quantity::label && vocab >= 0) {
      for_each_valid(field, tensor, valid(), [&](std::int64_t i, Place place) {
        const std::int64_t label = tensor.integer_at(i);
        if (label >= 0 && label < vocab) return;
        refuse_at(
            field.name, place.sequence, place.token,
            "is " + std::to_string(label) + ", outside a vocabulary of " + std::to_string(vocab));
      });
    }
    if (field.infinity == Infinity::refused && is_float(tensor.dtype)) {
      for_each_valid(field, tensor, valid(), [&](std::int64_t i, Place place) {
        if (!std::isinf(tensor.at(i))) return;
        refuse_at(field.name, place.sequence, place.token, "is infinite where it counts");
      });
    }
  }
}

void check_split(const LossSignature& signature, const Case& c) {
  if (c.split.world < 1) refuse("split", "has no rank");
  if (c.split.whole()) return;
  if (!signature.splittable) refuse("split", signature.id + " cannot be dealt to micro-batches");
  std::vector<bool> dealt(
      static_cast<std::size_t>(std::max<std::int64_t>(c.shape[Axis::sequences], 0)));
  std::size_t count = 0;
  for (const Split::Part& part : c.split.parts) {
    if (part.rank < 0 || part.rank >= c.split.world) {
      refuse("split", "names rank " + std::to_string(part.rank) + " of a world of " +
                          std::to_string(c.split.world));
    }
    for (std::int64_t s : part.sequences) {
      const bool exists = s >= 0 && s < c.shape[Axis::sequences];
      if (!exists || dealt[static_cast<std::size_t>(s)]) {
        refuse_at("split", s, -1, exists ? "deals the sequence twice" : "names no sequence");
      }
      dealt[static_cast<std::size_t>(s)] = true;
      ++count;
    }
  }
  if (count != dealt.size()) refuse("split", "leaves sequences out");
}

void require_valid(const LossSignature& signature, const Case& c) {
  if (c.spec.loss != signature.id) refuse("loss", "'" + c.spec.loss + "' is not " + signature.id);
  check_reduction(signature, c);
  check_options(signature, c);
  check_fields(signature, c);
  check_values(signature, c);
  check_split(signature, c);
}

}  // namespace lossgate::impl
