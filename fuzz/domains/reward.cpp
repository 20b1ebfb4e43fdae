// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/reward.h"

#include <algorithm>
#include <cmath>

namespace lossgate::fuzz {
namespace {

constexpr Share<RewardForm> kForms[] = {
    {RewardForm::spread, {6, 4, 1}}, {RewardForm::verdicts, {3, 3, 1}},
    {RewardForm::signs, {2, 2, 1}},  {RewardForm::equal, {1, 4, 2}},
    {RewardForm::lonely, {1, 2, 1}}, {RewardForm::close, {0, 3, 2}},
    {RewardForm::zeros, {0, 1, 1}},  {RewardForm::subnormal, {0, 1, 1}},
    {RewardForm::large, {0, 1, 2}},  {RewardForm::largest, {0, 0, 2}},
};

/// How often all rewards of a hostile case are far from 0, beside what they are.
constexpr double kFarShare = 0.625;

/// What all rewards have in common then: as many times what they lie apart by as there are of them,
/// or what a variance loses to it is less than their sum loses; and what lies apart by 1 keeps a
/// few of its bits.
double draw_offset(Dtype dtype, Choices& choices) {
  const double most = std::min(0.125 / unit_roundoff(dtype), 1e6);
  return choices.either_sign(choices.log_uniform(std::min(100.0, most / 2), most));
}

/// What all entries of a run have in common.
double draw_common(RewardForm form, Choices& choices) {
  switch (form) {
    case RewardForm::equal:
    case RewardForm::lonely:
    case RewardForm::close:
      return choices.bell();
    default:
      return 0.0;
  }
}

/// How far the entries of a run lie apart: some of a common value's last bits, or more.
double draw_spread(RewardForm form, double common, Dtype dtype, Choices& choices) {
  if (form != RewardForm::close) return 1.0;
  const double bits = 4.0 * unit_roundoff(dtype) * std::max(1.0, std::fabs(common));
  return choices.log_uniform(bits, std::max(bits, 0.125));
}

double draw_own(RewardForm form, double spread, Dtype dtype, Choices& choices) {
  switch (form) {
    case RewardForm::spread:
    case RewardForm::close:
      return choices.bell() * spread;
    case RewardForm::verdicts:
      return choices.sometimes(0.5) ? 1.0 : 0.0;
    case RewardForm::signs:
      return choices.either_sign(1.0);
    case RewardForm::zeros:
      return choices.either_sign(0.0);
    case RewardForm::subnormal:
      return choices.either_sign(min_subnormal(dtype) *
                                 static_cast<double>(choices.integer(1, 100)));
    case RewardForm::large:
      return draw_large(dtype, choices);
    case RewardForm::largest:
      return choices.either_sign(choices.sometimes(0.5) ? max_finite(dtype)
                                                        : max_finite(dtype) / 1024);
    default:
      return 0.0;
  }
}

void draw_run(RewardForm form, double offset, Tensor& tensor, std::int64_t first, std::int64_t run,
              Choices& choices) {
  // Beyond the largest number nothing is finite.
  const double common = draw_common(form, choices) + (form == RewardForm::largest ? 0.0 : offset);
  const double spread = draw_spread(form, common, tensor.dtype, choices);
  const std::int64_t apart = form == RewardForm::lonely ? choices.integer(0, run - 1) : -1;
  for (std::int64_t i = 0; i < run; ++i) {
    tensor.set(first + i,
               common + draw_own(form, spread, tensor.dtype, choices) + (i == apart ? 1.0 : 0.0));
  }
}

}  // namespace

RewardForm pick_reward_form(Temper temper, Choices& choices) {
  return pick(kForms, temper, choices);
}

void draw_rewards(const Column& column, Temper temper, Choices& choices) {
  Tensor& tensor = *column.tensor;
  if (tensor.size() == 0) return;
  const std::int64_t row = std::max<std::int64_t>(run_of(Spread::sequences, tensor), 1);
  const bool far = temper != Temper::plain && choices.sometimes(kFarShare);
  const RewardForm form = pick(kForms, temper, choices);
  const bool mixed = temper != Temper::plain && choices.sometimes(row > 1 ? 0.125 : 0.5);
  const double offset = far ? draw_offset(tensor.dtype, choices) : 0.0;
  if (!mixed) return draw_run(form, offset, tensor, 0, tensor.size(), choices);
  // Where a sequence has one, a few neighbours are alike, as the answers to one prompt are.
  Deal deal(kForms, temper);
  for (std::int64_t first = 0, run = 0; first < tensor.size(); first += run) {
    run = row > 1 ? row : std::min(choices.integer(1, 4), tensor.size() - first);
    draw_run(deal.next(choices, column.counts(first, run)), offset, tensor, first, run, choices);
  }
}

}  // namespace lossgate::fuzz
