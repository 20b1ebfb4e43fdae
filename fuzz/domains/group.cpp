// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/group.h"

#include <algorithm>
#include <span>

namespace lossgate::fuzz {
namespace {

constexpr Share<GroupForm> kForms[] = {
    {GroupForm::one, {1, 1, 1}},        {GroupForm::blocks, {4, 2, 1}},
    {GroupForm::singletons, {0, 1, 1}}, {GroupForm::uneven, {1, 2, 2}},
    {GroupForm::scattered, {0, 2, 2}},
};

/// How far apart numbers of groups are at most, as an f32 and as an f64 still holds them.
constexpr std::int64_t kWidest = 1 << 23, kWidestLong = std::int64_t{1} << 52;

/// Numbers as trainers give them: counted from 0, or anything that tells groups apart, upwards or
/// downwards, which 16 bits do not hold; nor, of long ones, as hashes are, an f32 or 32 bits. A
/// hash may be negative, though none is -1, which often stands for no group.
struct Numbering {
  std::int64_t first = 0, step = 1;
  bool falls = false;

  static Numbering draw(std::int64_t count, bool are_long, Temper temper, Choices& choices) {
    Numbering numbers;
    if (temper == Temper::plain || !choices.sometimes(0.4)) return numbers;
    numbers.first = choices.integer(0, 1 << 20);
    numbers.step = choices.integer(1, 64);
    // Half of the time all that tells groups apart are bits that a narrower integer has not.
    constexpr std::int64_t kWraps[] = {1 << 8, 1 << 15, 1 << 16, 1 << 24, std::int64_t{1} << 32};
    const std::int64_t wraps = choices.one_of(std::span(kWraps).first(are_long ? 5 : 3));
    if (choices.sometimes(0.5) && count <= (are_long ? kWidestLong : kWidest) / wraps) {
      numbers.step = wraps;
    } else if (are_long) {
      numbers.first *= wraps;
      if (wraps > kWidest && choices.sometimes(0.5)) numbers.first = -numbers.first - 2 * kWidest;
    }
    numbers.falls = choices.sometimes(0.5);
    return numbers;
  }

  double of(std::int64_t group, std::int64_t most) const {
    return static_cast<double>(first + step * (falls ? most - group : group));
  }
};

/// Of groups that are as large as each other, or scattered: how many members, or groups. Among many
/// positions also what is one more than the last count that bf16 and f16 have next to each other.
std::int64_t draw_members(std::int64_t positions, Choices& choices) {
  if (positions >= kMany) {
    constexpr std::int64_t kUncounted[] = {257, 2049};
    return choices.sometimes(0.3) ? choices.one_of(kUncounted) : choices.integer(2, 64);
  }
  const std::int64_t largest = std::max<std::int64_t>(positions, 4);
  return choices.integer(2, choices.sometimes(0.25) ? largest : 4);
}

void draw_column(const Column& column, bool are_compared, Temper temper, Choices& choices) {
  Tensor& tensor = *column.tensor;
  const bool are_long = are_compared && tensor.dtype == Dtype::i64;
  const GroupForm form = pick(kForms, temper, choices);
  const std::int64_t members = draw_members(tensor.size(), choices);
  const Numbering numbers = Numbering::draw(tensor.size(), are_long, temper, choices);
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
    tensor.set(i, numbers.of(group, tensor.size()));
  }
}

}  // namespace

GroupForm pick_group_form(Temper temper, Choices& choices) { return pick(kForms, temper, choices); }

void draw_groups(Columns columns, bool are_compared, Temper temper, Choices& choices) {
  for (const Column& column : columns) draw_column(column, are_compared, temper, choices);
}

}  // namespace lossgate::fuzz
