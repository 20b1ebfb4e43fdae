// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/case.h"

#include <algorithm>
#include <stdexcept>

namespace lossgate {
namespace {

template <class Pairs>
auto* find_second(Pairs& pairs, std::string_view name) {
  const auto at = std::ranges::find_if(pairs, [&](const auto& pair) { return pair.first == name; });
  return at == pairs.end() ? nullptr : &at->second;
}

[[noreturn]] void missing(std::string_view what, std::string_view name) {
  throw std::out_of_range(std::string(what) + " '" + std::string(name) + "' is missing");
}

template <class IsSilent>
void silence(std::vector<bool>& positions, IsSilent&& is_silent) {
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (is_silent(static_cast<std::int64_t>(i))) positions[i] = false;
  }
}

}  // namespace

const OptionValue* LossSpec::find(std::string_view option) const {
  return find_second(options, option);
}

bool LossSpec::is_none(std::string_view option) const {
  const OptionValue* value = find(option);
  return !value || std::holds_alternative<None>(*value);
}

double LossSpec::number(std::string_view option) const {
  const OptionValue* value = find(option);
  if (!value || !std::holds_alternative<double>(*value)) missing("number option", option);
  return std::get<double>(*value);
}

const std::string& LossSpec::choice(std::string_view option) const {
  const OptionValue* value = find(option);
  if (!value || !std::holds_alternative<std::string>(*value)) missing("choice option", option);
  return std::get<std::string>(*value);
}

void LossSpec::set(std::string_view option, OptionValue value) {
  if (auto* slot = find_second(options, option)) {
    *slot = std::move(value);
  } else {
    options.emplace_back(option, std::move(value));
  }
}

LossSpec standard_spec(const LossSignature& signature) {
  LossSpec spec{.loss = signature.id, .reduction = Reduction::none, .options = {}};
  if (!signature.reductions.empty()) spec.reduction = signature.reductions.front();
  for (const Option& option : signature.options) {
    spec.options.emplace_back(option.name, option.standard);
  }
  return spec;
}

void follow(const LossSignature& signature, LossSpec& spec) {
  for (const Option& option : signature.options) {
    if (option.follows.empty()) continue;
    if (const OptionValue* value = spec.find(option.follows)) spec.set(option.name, *value);
  }
}

Extents Shape::of(const std::vector<Axis>& axes) const {
  Extents extents;
  extents.reserve(axes.size());
  for (Axis axis : axes) extents.push_back((*this)[axis]);
  return extents;
}

const Tensor* Batch::find(std::string_view field) const { return find_second(fields, field); }
Tensor* Batch::find(std::string_view field) { return find_second(fields, field); }

const Tensor& Batch::at(std::string_view field) const {
  const Tensor* tensor = find(field);
  if (!tensor) missing("field", field);
  return *tensor;
}

Tensor& Batch::at(std::string_view field) {
  Tensor* tensor = find(field);
  if (!tensor) missing("field", field);
  return *tensor;
}

std::string_view name(Layout layout) {
  switch (layout) {
    case Layout::contiguous:
      return "contiguous";
    case Layout::offset:
      return "offset";
    case Layout::padded_rows:
      return "padded_rows";
    case Layout::transposed:
      return "transposed";
    case Layout::sliced:
      return "sliced";
    case Layout::mixed:
      return "mixed";
  }
  return "?";
}

Layout layout_of(const Case& c, std::int64_t number) {
  constexpr Layout kTurns[] = {Layout::contiguous, Layout::padded_rows, Layout::transposed};
  constexpr std::int64_t kRound = std::ssize(kTurns);
  if (c.layout != Layout::mixed) return c.layout;
  const std::int64_t positions = c.shape.positions();
  // In every other length each round begins one turn later: no two arrays lie alike in all cases.
  const std::int64_t late = positions % 2 * (number / kRound);
  return kTurns[(number + late + positions) % kRound];
}

Layout layout_of(const Case& c, std::string_view field) {
  const auto named =
      std::ranges::find(c.batch.fields, field, &std::pair<std::string, Tensor>::first);
  return layout_of(c, named - c.batch.fields.begin());
}

std::string_view name(History history) {
  switch (history) {
    case History::alone:
      return "alone";
    case History::evaluation:
      return "evaluation";
    case History::two_forwards:
      return "two_forwards";
    case History::summed_losses:
      return "summed_losses";
    case History::backward_twice:
      return "backward_twice";
    case History::backward_by_rows:
      return "backward_by_rows";
    case History::updated:
      return "updated";
    case History::autocast:
      return "autocast";
  }
  return "?";
}

bool asks_gradient(const LossSignature& signature, GradMode mode, std::string_view field) {
  const auto named = std::ranges::find(signature.fields, field, &Field::name);
  const auto before = std::count_if(signature.fields.begin(), named, [](const Field& other) {
    return other.role == Role::differentiable;
  });
  switch (mode) {
    case GradMode::none:
      return false;
    case GradMode::first:
      return before == 0;
    case GradMode::second:
      return before == 1;
    case GradMode::third:
      return before == 2;
    case GradMode::all_but_first:
      return before != 0;
    case GradMode::all_but_second:
      return before != 1;
    case GradMode::all_but_third:
      return before != 2;
    case GradMode::all:
      break;
  }
  return true;
}

Dtype float_dtype(const LossSignature& signature, const Case& c) {
  std::optional<Dtype> shared;
  for (const Field& field : signature.fields) {
    if (!field.dtypes.empty()) continue;
    const Tensor* tensor = c.batch.find(field.name);
    if (!tensor) continue;
    // Which fields are wide, not every signature of the loss says.
    if (size_of(tensor->dtype) == 2) return tensor->dtype;
    if (!shared) shared = tensor->dtype;
  }
  return shared.value_or(Dtype::f32);
}

Dtype dtype_beside(const Field& field, Dtype shared) {
  return field.wide && size_of(shared) == 2 ? Dtype::f32 : shared;
}

std::vector<bool> valid_positions(const LossSignature& signature, const Case& c) {
  const std::int64_t positions = c.shape[Axis::sequences] * c.shape.positions();
  std::vector<bool> valid(static_cast<std::size_t>(std::max<std::int64_t>(positions, 0)), true);
  if (!signature.mask.empty()) {
    const Tensor& mask = c.batch.at(signature.mask);
    if (size_of(mask.dtype) == 1) {  // as most are
      silence(valid,
              [bytes = mask.bytes.data()](std::int64_t i) { return bytes[i] == std::byte{0}; });
    } else {
      silence(valid, [&](std::int64_t i) { return mask.at(i) == 0.0; });
    }
  }
  if (!signature.ignore_label.empty()) {
    const Tensor& label = c.batch.at(signature.ignore_label);
    silence(valid, [&](std::int64_t i) { return label.integer_at(i) == kIgnoreLabel; });
  }
  return valid;
}

bool may_autocast(const LossSignature& signature, const Case& c) {
  return signature.autocast && float_dtype(signature, c) == Dtype::f32;
}

bool allows_empty_rows(const LossSignature& signature, const LossSpec& spec) {
  return signature.empty_rows == EmptyRows::skipped || !averages_sequences(spec.reduction);
}

Infinity infinity_of(const Field& field, const LossSpec& spec) {
  if (!field.infinite_where) return field.infinity;
  const auto& [option, value] = *field.infinite_where;
  const OptionValue* given = spec.find(option);
  return given && *given == OptionValue(value) ? Infinity::legal : field.infinity;
}

bool is_positional(const Field& field) { return has_positions(field.axes); }

}  // namespace lossgate
