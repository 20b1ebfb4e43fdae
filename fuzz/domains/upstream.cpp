// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/upstream.h"

#include <algorithm>
#include <cmath>

namespace lossgate::fuzz {
namespace {

enum class Kind { one, nearly_one, zero, minus_one, power_of_two, loss_scale, small, free };

constexpr Share<Kind> kKinds[] = {
    {Kind::one, {8, 4, 3}},       {Kind::nearly_one, {0, 1, 1}},   {Kind::zero, {0, 1, 2}},
    {Kind::minus_one, {0, 3, 2}}, {Kind::power_of_two, {1, 2, 2}}, {Kind::loss_scale, {0, 2, 2}},
    {Kind::small, {0, 1, 2}},     {Kind::free, {1, 2, 2}},
};

double draw_kind(Kind kind, Dtype dtype, Choices& choices) {
  switch (kind) {
    case Kind::one:
      return 1.0;
    case Kind::nearly_one:  // nothing that a comparison with 1 in so many digits tells apart
      return 1.0 + choices.either_sign(choices.log_uniform(4.0 * unit_roundoff(dtype), 0x1p-6));
    case Kind::zero:
      return choices.sometimes(0.25) ? -0.0 : 0.0;
    case Kind::minus_one:
      return -1.0;
    case Kind::power_of_two:
      return std::ldexp(1.0, static_cast<int>(choices.integer(-12, 12)));
    case Kind::loss_scale: {  // where scalers begin, and where they have doubled for a while
      constexpr double kScales[] = {0x1p16, 0x1p16, 0x1p24};
      return choices.one_of(kScales);
    }
    case Kind::small:
      return choices.log_uniform(0x1p-100, 0x1p-12);
    case Kind::free:
      return choices.bell();
  }
  return 1.0;
}

}  // namespace

double draw_upstream(Temper temper, Dtype dtype, Choices& choices) {
  const double value = draw_kind(pick(kKinds, temper, choices), dtype, choices);
  const double end = max_finite(dtype);
  return round_to(dtype, std::clamp(value, -end, end));
}

void draw_upstream_field(const Column& column, Temper temper, Choices& choices) {
  enum class Form { uniform, free, one_hot };
  constexpr Share<Form> kForms[] = {
      {Form::uniform, {2, 1, 1}}, {Form::free, {1, 1, 1}}, {Form::one_hot, {0, 1, 1}}};
  const Form form = pick(kForms, temper, choices);
  Tensor& tensor = *column.tensor;
  const double common = draw_upstream(temper, tensor.dtype, choices);
  const std::int64_t hot =
      form == Form::one_hot ? choices.integer(0, std::max<std::int64_t>(tensor.size() - 1, 0)) : -1;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (form == Form::free) {
      tensor.set(i, draw_upstream(temper, tensor.dtype, choices));
    } else {
      tensor.set(i, hot < 0 || i == hot ? common : 0.0);
    }
  }
}

}  // namespace lossgate::fuzz
