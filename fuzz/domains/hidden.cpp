// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/hidden.h"

#include <algorithm>

namespace lossgate::fuzz {
namespace {

constexpr Share<HiddenForm> kForms[] = {
    {HiddenForm::normal, {8, 6, 2}},     {HiddenForm::zeros, {0, 1, 1}},
    {HiddenForm::rows_equal, {1, 1, 1}}, {HiddenForm::peaked, {1, 2, 2}},
    {HiddenForm::offset, {0, 2, 2}},     {HiddenForm::cancelling, {0, 1, 1}},
    {HiddenForm::large, {0, 1, 2}},      {HiddenForm::subnormal, {0, 1, 1}},
};

double draw_coordinate(HiddenForm form, std::int64_t at, double level, Dtype dtype,
                       Choices& choices) {
  switch (form) {
    case HiddenForm::zeros:
      return 0.0;
    case HiddenForm::peaked:
    case HiddenForm::offset:
      return at == 0 ? level : choices.bell();
    case HiddenForm::cancelling:
      return (at % 2 ? -level : level) + choices.bell();
    case HiddenForm::large:
      return choices.bell() * level;
    case HiddenForm::subnormal:
      return min_subnormal(dtype) * static_cast<double>(choices.integer(0, 64) - 32);
    case HiddenForm::normal:
    case HiddenForm::rows_equal:
      return choices.bell();
  }
  return 0.0;
}

double draw_level(HiddenForm form, Choices& choices) {
  switch (form) {
    case HiddenForm::peaked:
      return choices.real(5.0, 40.0);
    case HiddenForm::offset:
      return choices.either_sign(100.0);
    case HiddenForm::cancelling:
      return 64.0;
    case HiddenForm::large:
      return choices.log_uniform(8.0, 256.0);
    default:
      return 1.0;
  }
}

void draw_column(const Column& column, Temper temper, Choices& choices) {
  Tensor& tensor = *column.tensor;
  const HiddenForm form = pick(kForms, temper, choices);
  const double level = draw_level(form, choices);
  const std::int64_t row = tensor.extents.empty() ? 1 : tensor.extents.back();
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double value = form == HiddenForm::rows_equal && i >= row
                             ? tensor.at(i - row)
                             : draw_coordinate(form, i % row, level, tensor.dtype, choices);
    tensor.set(i, value);
  }
}

}  // namespace

HiddenForm pick_hidden_form(Temper temper, Choices& choices) {
  return pick(kForms, temper, choices);
}

void draw_hidden(Columns columns, Temper temper, Choices& choices) {
  const bool equal = choices.sometimes(0.3);
  for (const Column& column : columns) draw_column(column, temper, choices);
  if (!equal) return;
  for (std::size_t k = 1; k < columns.size(); ++k) copy_values(columns[0], columns[k]);
}

void draw_weights(const Column& column, Temper temper, Choices& choices) {
  enum class Form { ones, random, some_zero, all_zero, uneven };
  constexpr Share<Form> kWeightForms[] = {{Form::ones, {2, 1, 1}},
                                          {Form::random, {3, 2, 1}},
                                          {Form::some_zero, {0, 2, 1}},
                                          {Form::all_zero, {0, 1, 1}},
                                          {Form::uneven, {0, 2, 2}}};
  const Form form = pick(kWeightForms, temper, choices);
  Tensor& tensor = *column.tensor;
  const double most = std::min(0x1p14, max_finite(tensor.dtype));
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    double value = 1.0;
    if (form == Form::random) value = choices.real(1.0, 0.0);
    if (form == Form::some_zero) value = choices.sometimes(0.3) ? 0.0 : choices.real(1.0, 0.0);
    if (form == Form::all_zero) value = 0.0;
    if (form == Form::uneven) value = choices.log_uniform(0x1p-12, most);
    tensor.set(i, value);
  }
}

}  // namespace lossgate::fuzz
