// SPDX-License-Identifier: Apache-2.0
#include "properties/behind_mask.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "reference/reference.h"

namespace lossgate::properties {
namespace {

/// One sequence of two tokens of a loss with a layer of its own, everything 1, labels too.
CaseStudy study_of_ones(bool first, bool second) {
  const reference::Loss& loss = *reference::find_loss("linear_grpo");
  Case c;
  c.spec = standard_spec(loss.signature);
  for (const Axis axis : {Axis::sequences, Axis::hidden}) c.shape[axis] = 1;
  for (const Axis axis : {Axis::tokens, Axis::vocab}) c.shape[axis] = 2;
  for (const Field& field : loss.signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes.front();
    Tensor tensor = Tensor::zeros(dtype, c.shape.of(field.axes));
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 1.0);
    c.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  Tensor& label = c.batch.at(loss.signature.ignore_label);
  if (!first) label.set(0, kIgnoreLabel);
  if (!second) label.set(1, kIgnoreLabel);
  return CaseStudy(loss, std::move(c));
}

std::vector<double> zeroed(const CaseStudy& study, std::string_view field) {
  const auto plain = zeroed_behind_mask(study, study.whole());
  std::vector<double> values;
  const Tensor& tensor = (plain ? *plain : study.whole()).batch.at(field);
  for (std::int64_t i = 0; i < tensor.size(); ++i) values.push_back(tensor.at(i));
  return values;
}

TEST(BehindTheMask, IsTheDataOfMaskedPositions) {
  const CaseStudy study = study_of_ones(true, false);
  EXPECT_EQ(zeroed(study, "old_log_prob"), (std::vector{1.0, 0.0}));
  EXPECT_EQ(zeroed(study, "hidden"), (std::vector{1.0, 0.0}));
  EXPECT_EQ(zeroed(study, "bias"), (std::vector{1.0, 1.0}));
}

TEST(BehindTheMask, IsEverythingWhereNothingCounts) {
  const CaseStudy study = study_of_ones(false, false);
  for (const std::string_view field : {"old_log_prob", "hidden", "weight", "bias"}) {
    const std::vector<double> values = zeroed(study, field);
    EXPECT_EQ(values, std::vector(values.size(), 0.0)) << field;
  }
}

TEST(BehindTheMask, IsNothingWhereEverythingCounts) {
  const CaseStudy study = study_of_ones(true, true);
  EXPECT_FALSE(zeroed_behind_mask(study, study.whole()));
}

TEST(BehindTheMask, IsNothingWhereEverythingThereIsZeroAlready) {
  const CaseStudy study = study_of_ones(true, false);
  const auto plain = zeroed_behind_mask(study, study.whole());
  ASSERT_TRUE(plain);
  EXPECT_FALSE(zeroed_behind_mask(study, *plain));
}

}  // namespace
}  // namespace lossgate::properties
