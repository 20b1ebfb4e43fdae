// SPDX-License-Identifier: Apache-2.0
#include "properties/valid_numbers.h"

#include <gtest/gtest.h>

#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

TEST(ValidNumbers, AreChangedByWhereTheyStandAndMaskedOnesAreNot) {
  Case c = grpo_case(2, 3);
  const Case before = c;
  Tensor& mask = c.batch.at("mask");
  for (std::int64_t i = 0; i < mask.size(); ++i) mask.set(i, i == 4 ? 0.0 : 1.0);
  change_where_valid(grpo().signature, c, "old_log_prob",
                     [](std::int64_t i, double x) { return x - static_cast<double>(i); });
  const Tensor& was = before.batch.at("old_log_prob");
  const Tensor& is = c.batch.at("old_log_prob");
  for (std::int64_t i = 0; i < is.size(); ++i) {
    EXPECT_EQ(is.at(i),
              i == 4 ? was.at(i) : round_to(was.dtype, was.at(i) - static_cast<double>(i)))
        << i;
  }
  EXPECT_EQ(c.batch.at("log_prob"), before.batch.at("log_prob"));
}

}  // namespace
}  // namespace lossgate::properties
