// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

/// GRPO whose loss is off where a sequence is longer than that, and where `always`.
impl::Implementation off_beyond(std::int64_t tokens, bool always = false) {
  return answering("grpo", nullptr, [=](const Case& c, LossResult& result) {
    if (always || c.shape[Axis::tokens] > tokens) add_to_loss(result, 1.0);
  });
}

TEST(ProbeLength, FindsWhereALengthEnds) {
  expect_shown(off_beyond(1000), grpo_case(2, 1800, Dtype::f64), "wrong beyond a length",
               "plain numbers are right where tokens is 1000, and wrong where it is 1001");
}

TEST(ProbeLength, FindsTheEndOfARow) {
  const auto one_block = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    if (c.shape[Axis::vocab] > 512) add_to_loss(result, 1.0);
  });
  Case c = ordinary_case("cross_entropy");
  c.shape[Axis::vocab] = 600;
  Tensor& logits = c.batch.at("logits");
  logits = Tensor::zeros(logits.dtype, {c.shape[Axis::sequences], c.shape[Axis::tokens], 600});
  for (std::int64_t i = 0; i < logits.size(); ++i) logits.set(i, static_cast<double>(i % 7));
  expect_shown(one_block, c, "wrong beyond a length",
               "plain numbers are right where vocab is 512, and wrong where it is 513");
}

TEST(ProbeLength, LeavesWhatIsWrongAtAnyLengthAlone) {
  EXPECT_NE(diagnosed(off_beyond(0, true), grpo_case(2, 1800, Dtype::f64)).cause,
            "wrong beyond a length");
}

TEST(ProbeLength, SaysNothingOfLengthsThatAreRefused) {
  auto refuses = off_beyond(0, true);
  refuses.unsupported = [](const Case& c) -> std::optional<std::string> {
    if (c.shape[Axis::tokens] > 256) return std::nullopt;
    return "tiles of 512 tokens";
  };
  EXPECT_NE(diagnosed(refuses, grpo_case(2, 1800, Dtype::f64)).cause, "wrong beyond a length");
}

TEST(ProbeLength, LeavesShortCasesAlone) {
  EXPECT_NE(diagnosed(off_beyond(100), grpo_case(2, 200, Dtype::f64)).cause,
            "wrong beyond a length");
}

}  // namespace
}  // namespace lossgate::properties
