// SPDX-License-Identifier: Apache-2.0
// What lies behind the mask and at the edges, where one number alone shows it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kLeaks = "other numbers behind the mask change the result";

TEST(ProbeMaskedTerms, SeesWhatOneMaskedPositionAloneLets) {
  at_positions(ordinary_case("grpo"), false, [](std::int64_t leaking) {
    const auto fake = answering("grpo", nullptr, [leaking](const Case& c, LossResult& result) {
      if (valid_of(c)[static_cast<std::size_t>(leaking)]) return;
      add_to_loss(result, 0.01 * c.batch.at("advantage").at(leaking));
    });
    expect_shown(fake, ordinary_case("grpo"), "masked data leaks", kLeaks);
  });
}

TEST(ProbeMaskedTerms, SeesADifferenceOfMaskedNumbers) {
  const auto of_fields = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, false, [&](std::int64_t p) {
      add_to_loss(result, c.batch.at("log_prob").at(p) - c.batch.at("old_log_prob").at(p));
    });
  });
  expect_shown(of_fields, ordinary_case("grpo"), "masked data leaks", kLeaks);
  const auto of_neighbours = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const Tensor& advantage = c.batch.at("advantage");
    if (!valid_of(c)[5] && !valid_of(c)[6]) add_to_loss(result, advantage.at(6) - advantage.at(5));
  });
  expect_shown(of_neighbours, ordinary_case("grpo"), "masked data leaks", kLeaks);
}

TEST(ProbeMaskedTerms, TellsTheGradientThatMovesWithMaskedNumbersFromOneThatLeaks) {
  const auto moving = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, false, [&](std::int64_t p) {
      output(result, "gradient.log_prob").set(p, 0.1 * c.batch.at("advantage").at(p));
    });
  });
  expect_shown(moving, ordinary_case("grpo"), "gradient at a masked position",
               "it is there with plain numbers, too");
}

TEST(ProbeMaskedTerms, TellsATermForEveryMaskedPositionFromAGradientThere) {
  const auto counting = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, false, [&](std::int64_t p) {
      add_to_loss(result, 0.25);
      output(result, "gradient.log_prob").set(p, 0.5);
    });
  });
  expect_shown(counting, ordinary_case("grpo"), "masked data leaks",
               "masked positions add to the loss, whatever is there");
}

TEST(ProbeEmpty, SaysNothingOfAnEmptyBatchThatIsNotComputed) {
  auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t p) {
      if (c.batch.at("log_prob").at(p) > c.batch.at("old_log_prob").at(p) + 709.0) {
        add_to_loss(result, kNan);
      }
    });
  });
  fake.unsupported = [](const Case& c) {
    const bool empty = std::ranges::count(valid_of(c), true) == 0;
    return empty ? std::optional<std::string>("nothing counts") : std::nullopt;
  };
  Case c = ordinary_case("grpo");
  for (std::int64_t t = 0; t < 5; ++t) mask_out(c, 2, t);
  c.batch.at("old_log_prob").set(0, c.batch.at("log_prob").at(0) - 1000.0);
  EXPECT_EQ(diagnosed(fake, c).cause, "clamp after exp");
}

TEST(ProbeExponents, SaysNothingWhereWhatIsWrongIsANumber) {
  const auto off = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t p) {
      if (c.batch.at("log_prob").at(p) > c.batch.at("old_log_prob").at(p) + 100.0) {
        add_to_loss(result, 1.0);
      }
    });
  });
  Case c = ordinary_case("grpo");
  c.batch.at("old_log_prob").set(0, c.batch.at("log_prob").at(0) - 1000.0);
  EXPECT_NE(diagnosed(off, c).cause, "clamp after exp");
}

/// A sparse divergence that, where a token is impossible, cannot bear the first one to be it, nor
/// in a list.
TEST(ProbeLogits, MovesEveryListedTokenWithItsLogit) {
  const auto fake = answering("sparse_jsd", nullptr, [](const Case& c, LossResult& result) {
    const std::int64_t vocab = c.shape[Axis::vocab], support = c.shape[Axis::support];
    at_positions(c, true, [&](std::int64_t p) {
      const Tensor& logits = c.batch.at("student_logits");
      bool impossible = false, bad = logits.at(p * vocab) == -HUGE_VAL;
      for (std::int64_t v = 0; v < vocab; ++v) impossible |= logits.at(p * vocab + v) == -HUGE_VAL;
      for (std::int64_t k = 0; k < support; ++k) {
        bad |= c.batch.at("support_token").integer_at(p * support + k) == 0;
      }
      if (!impossible || !bad) return;
      add_to_loss(result, kNan);
      output(result, "gradient.student_logits").set(p * vocab, kNan);
    });
  });
  Case c = ordinary_case("sparse_jsd");
  const std::int64_t vocab = c.shape[Axis::vocab], support = c.shape[Axis::support];
  ASSERT_GE(support, 3);
  at_positions(c, true, [&](std::int64_t p) {
    c.batch.at("student_logits").set(p * vocab, -HUGE_VAL);
    c.batch.at("student_logits").set(p * vocab + vocab - 1, 6.0);
    for (std::int64_t k = 0; k < support; ++k) {
      c.batch.at("support_token").set(p * support + k, static_cast<double>((p + k) % 3));
    }
  });
  expect_shown(fake, c, "infinity minus infinity",
               "right where the likeliest token comes first in the vocabulary");
}

}  // namespace
}  // namespace lossgate::properties
