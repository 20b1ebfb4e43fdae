// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/group.h"

#include <algorithm>

namespace lossgate::fuzz {
namespace {

constexpr Share<GroupForm> kForms[] = {
    {GroupForm::one, {1, 1, 1}},        {GroupForm::blocks, {4, 2, 1}},
    {GroupForm::singletons, {0, 1, 1}}, {GroupForm::uneven, {1, 2, 2}},
    {GroupForm::scattered, {0, 2, 2}},
};

}  // namespace

GroupForm pick_group_form(Temper temper, Choices& choices) { return pick(kForms, temper, choices); }

void draw_groups(const Column& column, Temper temper, Choices& choices) {
  Tensor& tensor = *column.tensor;
  const GroupForm form = pick(kForms, temper, choices);
  const std::int64_t members = choices.integer(2, 4);
  std::int64_t group = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    switch (form) {
      case GroupForm::one:
        group = 0;
        break;
      case GroupForm::blocks:
        group = i / members;
        break;
      case GroupForm::singletons:
        group = i;
        break;
      case GroupForm::uneven:
        group += i > 0 && choices.sometimes(0.4);
        break;
      case GroupForm::scattered:
        group = i % members;
        break;
    }
    tensor.set(i, static_cast<double>(group));
  }
}

}  // namespace lossgate::fuzz
