// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/advantage.h"

#include <algorithm>

namespace lossgate::fuzz {
namespace {

constexpr Share<AdvantageForm> kForms[] = {
    {AdvantageForm::per_sequence, {6, 3, 1}}, {AdvantageForm::per_token, {3, 3, 1}},
    {AdvantageForm::equal, {1, 1, 1}},        {AdvantageForm::zeros, {0, 2, 1}},
    {AdvantageForm::opposite, {1, 1, 1}},     {AdvantageForm::units, {1, 2, 1}},
    {AdvantageForm::cancelling, {0, 2, 1}},   {AdvantageForm::small, {0, 1, 1}},
    {AdvantageForm::subnormal, {0, 1, 1}},    {AdvantageForm::large, {0, 1, 2}},
    {AdvantageForm::largest, {0, 0, 2}},
};

double draw_value(AdvantageForm form, Dtype dtype, Choices& choices) {
  switch (form) {
    case AdvantageForm::per_sequence:
    case AdvantageForm::per_token:
    case AdvantageForm::opposite:
    case AdvantageForm::equal:
      return choices.bell();
    case AdvantageForm::zeros:
      return choices.either_sign(0.0);
    case AdvantageForm::units:
      return choices.either_sign(1.0);
    case AdvantageForm::cancelling:
      return static_cast<double>(choices.integer(1, 4));
    case AdvantageForm::small:
      return choices.either_sign(choices.log_uniform(0x1p-20, 0x1p-7));
    case AdvantageForm::subnormal:
      return choices.either_sign(min_subnormal(dtype) *
                                 static_cast<double>(choices.integer(1, 100)));
    case AdvantageForm::large:
      return draw_large(dtype, choices);
    case AdvantageForm::largest:
      return choices.either_sign(choices.sometimes(0.5) ? max_finite(dtype)
                                                        : max_finite(dtype) / 1024);
  }
  return 0.0;
}

bool is_shared(AdvantageForm form) {
  return form == AdvantageForm::equal || form == AdvantageForm::opposite ||
         form == AdvantageForm::cancelling;
}

}  // namespace

AdvantageForm pick_advantage_form(Temper temper, Choices& choices) {
  return pick(kForms, temper, choices);
}

namespace {

/// The `run` entries from `first` on, `row` of them a sequence's.
void draw_run(AdvantageForm form, Tensor& tensor, std::int64_t first, std::int64_t run,
              std::int64_t row, Choices& choices) {
  const double shared = is_shared(form) ? draw_value(form, tensor.dtype, choices) : 0.0;
  double value = shared;
  for (std::int64_t i = 0; i < run; ++i) {
    const bool fresh = form != AdvantageForm::per_sequence || i % row == 0;
    if (form == AdvantageForm::opposite) value = i % 2 ? -shared : shared;
    if (form == AdvantageForm::cancelling) value = (i + 1 == run ? -1.0 * i : 1.0) * shared;
    if (fresh && !is_shared(form)) value = draw_value(form, tensor.dtype, choices);
    // What cancels all others of a long run is beyond f16.
    tensor.set(first + i, std::clamp(value, -max_finite(tensor.dtype), max_finite(tensor.dtype)));
  }
}

}  // namespace

void draw_advantages(const Column& column, Temper temper, Choices& choices) {
  Tensor& tensor = *column.tensor;
  const bool mixed = temper != Temper::plain && choices.sometimes(0.5);
  const AdvantageForm picked = pick(kForms, temper, choices);
  const bool many = temper == Temper::plain && tensor.size() >= kMany;
  const AdvantageForm common = many ? AdvantageForm::per_token : picked;
  Deal deal(kForms, temper);
  const std::int64_t row = std::max<std::int64_t>(run_of(Spread::sequences, tensor), 1);
  const std::int64_t run = mixed ? row : tensor.size();
  for (std::int64_t first = 0; first < tensor.size(); first += run) {
    draw_run(mixed ? deal.next(choices, column.counts(first, run)) : common, tensor, first, run,
             row, choices);
  }
}

}  // namespace lossgate::fuzz
