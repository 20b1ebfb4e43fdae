// SPDX-License-Identifier: Apache-2.0
#include "fuzz/long_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fuzz/acceptance.h"
#include "fuzz/domains/long_shape.h"
#include "fuzz/domains/shape.h"
#include "reference/reference.h"
#include "reference/spec/contract.h"
#include "reference/spec/masked.h"
#include "reference/teacher_message.h"

namespace lossgate::fuzz {
namespace {

/// Production's length along that axis.
Tier longest(const LossSignature& signature, Axis axis) {
  const auto all = longest_tiers(signature);
  return *std::ranges::find(all, axis, &Tier::axis);
}

TEST(DrawLongCase, MasksAFewOfThousandsAndTakesTheLastToken) {
  for (const char* loss : {"cross_entropy", "log_prob", "grpo", "value_clip"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    for (const Tier& tier : longest_tiers(signature)) {
      const Case c = draw_long_case(1, signature, {tier, Dtype::f32});
      EXPECT_EQ(fault_of(signature, c, Dtype::f32), "") << loss;
      const std::vector<bool> valid = valid_positions(signature, c);
      const auto masked = std::ranges::count(valid, false);
      if (valid.size() < kMany) {
        EXPECT_EQ(masked, 0) << loss;
      } else {
        EXPECT_GT(masked, 0) << loss;
        EXPECT_LT(masked, std::ssize(valid) / 64) << loss;
      }
      EXPECT_TRUE(valid.back()) << loss;
      if (tier.axis == Axis::tokens) EXPECT_GT(std::ranges::count(valid, true), 1 << 16) << loss;
      if (tier.axis != Axis::vocab) continue;
      EXPECT_EQ(c.batch.at("label").integer_at(0), c.shape[Axis::vocab] - 1) << loss;
    }
  }
}

TEST(DrawLongCase, HasAWholeRowWhereTheCallerPadsOnTheRight) {
  for (const char* loss : {"cross_entropy", "grpo"}) {
    LossSignature signature = *reference::find_signature(loss);
    signature.prefix_mask = true;
    for (const Length& length : lengths_of(1, signature, std::array{Dtype::f32})) {
      if (length.extents.axis != Axis::tokens) continue;
      const Case c = draw_long_case(1, signature, length);
      EXPECT_EQ(fault_of(signature, c, Dtype::f32), "") << loss;
      if (length.form == LongForm::hostile) continue;
      EXPECT_TRUE(valid_positions(signature, c).back()) << loss;
    }
  }
}

TEST(DrawLongCase, HasRoomForListsThatNameNoTokenTwice) {
  LossSignature signature = *reference::find_signature("sparse_jsd");
  for (Field& field : signature.fields) field.distinct = field.name == "support_token";
  signature.pinned = {{Axis::support, 640}};
  for (const Length& length : lengths_of(1, signature, std::array{Dtype::f32})) {
    if (length.extents.last > 2048) continue;  // where there is more room than that
    const Case c = draw_long_case(1, signature, length);
    EXPECT_GE(c.shape[Axis::vocab], 640) << name(length.extents.axis);
  }
}

TEST(DrawLongCase, NamesNoTokenTwiceWhereTheCallerNamesNone) {
  LossSignature signature = *reference::find_signature("sparse_jsd");
  for (Field& field : signature.fields) field.distinct = field.name == "support_token";
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (const Length& length : lengths_of(seed, signature, std::array{Dtype::f32})) {
      if (length.extents.last > 64) continue;  // of each axis there are short ones
      const Case c = draw_long_case(seed, signature, length);
      EXPECT_TRUE(keeps_to_contract(signature, c)) << seed << " " << name(length.extents.axis);
    }
  }
}

TEST(DrawLongCase, NeedsTheLastTokensOfARowOfLogits) {
  for (const char* loss : {"log_prob", "jsd"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Case c = draw_long_case(seed, signature, {longest(signature, Axis::vocab), Dtype::f32});
      const std::int64_t vocab = c.shape[Axis::vocab];
      for (const Field& field : signature.fields) {
        if (field.quantity != Quantity::logit) continue;
        const Tensor& logits = c.batch.at(field.name);
        double others = 0.0;
        for (std::int64_t i = 0; i + 1 < vocab; ++i) {
          others += std::exp(logits.at(i) - logits.at(vocab - 1));
        }
        EXPECT_NEAR(others, 1.0, 1e-4) << loss << " " << seed << ": half of the mass";
      }
    }
  }
}

TEST(DrawLongCase, NeedsTheLastRowOfAnOutputLayer) {
  for (const auto& [loss, hidden, weight] :
       {std::array{"linear_cross_entropy", "hidden", "weight"},
        std::array{"linear_jsd", "teacher_hidden", "teacher_weight"}}) {
    const LossSignature& signature = *reference::find_signature(loss);
    int likely = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Case c = draw_long_case(seed, signature, {longest(signature, Axis::vocab), Dtype::f32});
      EXPECT_EQ(fault_of(signature, c, Dtype::f32), "");
      const Tensor &state = c.batch.at(hidden), &layer = c.batch.at(weight);
      const std::int64_t width = c.shape[Axis::hidden], vocab = c.shape[Axis::vocab];
      double last = 0.0, all = 0.0;
      for (std::int64_t token = 0; token < vocab; ++token) {
        double logit = 0.0;
        for (std::int64_t i = 0; i < width; ++i) {
          logit += state.at(state.size() - width + i) * layer.at(token * width + i);
        }
        last = std::exp(logit);
        all += last;
      }
      likely += last > 0.3 * all;
    }
    EXPECT_EQ(likely, 20) << loss;
  }
}

TEST(DrawLongCase, HoldsEveryPlainKindOfLogRatio) {
  const LossSignature& signature = *reference::find_signature("grpo");
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (const Tier& tier : longest_tiers(signature)) {
      const Case c = draw_long_case(seed, signature, {tier, Dtype::f32});
      const Tensor &now = c.batch.at("log_prob"), &old = c.batch.at("old_log_prob");
      int equal = 0, within = 0, beyond = 0;
      for (std::int64_t i = 0; i < now.size(); ++i) {
        const double log_ratio = std::fabs(now.at(i) - old.at(i));
        (log_ratio == 0.0 ? equal : log_ratio < 0.18 ? within : beyond) += 1;
      }
      EXPECT_GT(std::min({equal, within, beyond}), 100) << name(tier.axis);
    }
  }
}

TEST(DrawLongCase, LeavesAFewCoordinatesOfAHiddenState) {
  const LossSignature& signature = *reference::find_signature("linear_jsd");
  const Case c = draw_long_case(1, signature, {longest(signature, Axis::hidden), Dtype::f32});
  const std::int64_t width = c.shape[Axis::hidden];
  for (const char* field : {"student_hidden", "teacher_hidden"}) {
    const Tensor& hidden = c.batch.at(field);
    for (std::int64_t first = 0; first < hidden.size(); first += width) {
      std::int64_t left = 0;
      for (std::int64_t h = 0; h < width; ++h) left += hidden.at(first + h) != 0.0;
      EXPECT_GT(left, 20);
      EXPECT_LT(left, 60);
      EXPECT_NE(hidden.at(first + width - 1), 0.0);
      EXPECT_NE(hidden.at(first + 4096), 0.0);
    }
  }
}

TEST(DrawLongCase, LeavesAFewPositionsWhereItIsThin) {
  for (const char* loss : {"cross_entropy", "grpo", "whitening"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    for (const Tier& tier : longest_tiers(signature)) {
      const Case c = draw_long_case(1, signature, {tier, Dtype::f32, LongForm::thin});
      EXPECT_EQ(fault_of(signature, c, Dtype::f32), "") << loss;
      const std::vector<bool> valid = valid_positions(signature, c);
      if (valid.size() < kMany) continue;
      EXPECT_TRUE(valid.front() && valid.back() && valid[1024]) << loss;
      EXPECT_TRUE(valid[valid.size() - 1 - 128]) << loss;
      const auto count = std::ranges::count(valid, true);
      EXPECT_GT(count, 20) << loss;
      if (allows_empty_rows(signature, c.spec)) EXPECT_LT(count, 50) << loss;
    }
  }
}

TEST(DrawLongCase, MasksNothingWhereItIsWhole) {
  const LossSignature& signature = *reference::find_signature("gae");
  const Tier tier = longest(signature, Axis::tokens);
  const Case c = draw_long_case(1, signature, {tier, Dtype::f32, LongForm::whole});
  EXPECT_EQ(std::ranges::count(valid_positions(signature, c), false), 0);
}

TEST(DrawLongCase, TurnsEachOptionAloneUnderSomeSeed) {
  const LossSignature& signature = *reference::find_signature("grpo");
  const LossSpec standard = standard_spec(signature);
  std::set<std::string> turned;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Tier tier = longest(signature, Axis::sequences);
    const Case c = draw_long_case(seed, signature, {tier, Dtype::f32, LongForm::other_option});
    EXPECT_EQ(fault_of(signature, c, Dtype::f32), "");
    std::set<std::string> now;
    for (const Option& option : signature.options) {
      if (*c.spec.find(option.name) != *standard.find(option.name)) now.insert(option.name);
    }
    EXPECT_EQ(now.size(), 1u) << seed;
    turned.merge(now);
  }
  EXPECT_EQ(turned.size(), signature.options.size());
}

TEST(DrawLongCase, IsHostileInAllButItsLength) {
  const LossSignature& signature = *reference::find_signature("cross_entropy");
  int impossible = 0, poisoned = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (const Length& length : lengths_of(seed, signature, kFloats)) {
      if (length.form != LongForm::hostile) continue;
      const Case c = draw_long_case(seed, signature, length);
      const auto& [axis, first, last, every] = length.extents;
      ASSERT_EQ(fault_of(signature, c, length.dtype), "") << seed;
      EXPECT_TRUE(c.shape[axis] >= first && c.shape[axis] <= last) << name(axis);
      const std::vector<bool> valid = valid_positions(signature, c);
      const Tensor& logits = c.batch.at("logits");
      bool in_valid = false, in_masked = false;
      for (std::int64_t i = 0; i < logits.size(); ++i) {
        if (std::isfinite(logits.at(i))) continue;
        (valid[static_cast<std::size_t>(i / c.shape[Axis::vocab])] ? in_valid : in_masked) = true;
      }
      impossible += in_valid, poisoned += in_masked;
    }
  }
  EXPECT_GT(impossible, 100);
  EXPECT_GT(poisoned, 100);
}

TEST(DrawLongCase, LeavesTheLastTokensOfARowWhereOthersAreRuledOut) {
  for (const char* loss : {"cross_entropy", "log_prob", "jsd"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    std::set<std::int64_t> left;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const Case c = draw_long_case(
          seed, signature, {longest(signature, Axis::vocab), Dtype::f32, LongForm::ruled_out});
      EXPECT_EQ(fault_of(signature, c, Dtype::f32), "") << loss;
      const std::int64_t vocab = c.shape[Axis::vocab];
      EXPECT_EQ(c.batch.at("label").integer_at(0), vocab - 1) << loss;
      for (const Field& field : signature.fields) {
        if (field.quantity != Quantity::logit) continue;
        const Tensor& logits = c.batch.at(field.name);
        std::int64_t first = 0;
        while (std::isinf(logits.at(first))) ++first;
        EXPECT_GE(first, vocab / 2) << loss;
        for (std::int64_t i = first; i < vocab; ++i) ASSERT_TRUE(std::isfinite(logits.at(i)));
        left.insert(vocab - first);
      }
    }
    EXPECT_GT(left.size(), 3u) << "half of them, and a few";
  }
  EXPECT_TRUE(
      std::ranges::none_of(lengths_of(1, *reference::find_signature("sparse_jsd"), kFloats),
                           [](const Length& length) { return length.form == LongForm::ruled_out; }))
      << "a list would name what is impossible";
}

TEST(DrawLongCase, HasEveryOptionAtAnotherValueNext) {
  for (const char* loss : {"grpo", "gae", "cross_entropy", "jsd"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Tier tier = longest_tiers(signature).front();
      const Case plain = draw_long_case(seed, signature, {tier, Dtype::f32});
      const Case other =
          draw_long_case(seed, signature, {tier, Dtype::f32, LongForm::other_options});
      EXPECT_EQ(fault_of(signature, other, Dtype::f32), "") << loss;
      for (const Option& option : signature.options) {
        EXPECT_EQ(*plain.spec.find(option.name), option.standard) << loss << " " << option.name;
        EXPECT_NE(*other.spec.find(option.name), option.standard) << loss << " " << option.name;
      }
    }
  }
}

TEST(DrawLongCase, HasAMessageThatSaysAsMuch) {
  const LossSignature& signature = *reference::find_signature("teacher_payload");
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto lengths = lengths_of(seed, signature, std::array{Dtype::f32});
    EXPECT_GT(lengths.size(), 20U);
    for (const Length& length : lengths) {
      if (!is_plain(length) && !hides(length)) continue;
      const Case c = draw_long_case(seed, signature, length);
      const auto payload = reference::read_teacher_payload(c);
      const auto* rows = std::get_if<reference::TeacherRows>(&payload);
      ASSERT_TRUE(rows) << std::get<Refusal>(payload).message;
      EXPECT_EQ(std::ssize(*rows), c.shape[Axis::sequences]);
      EXPECT_EQ(std::ssize(rows->back()), c.shape[Axis::tokens]);
      EXPECT_EQ(std::ssize(rows->back().back().log_probs), c.shape[Axis::support]);
    }
  }
}

TEST(DrawLongCase, IsDividedInTwoAtMost) {
  const LossSignature& signature = *reference::find_signature("value_clip");
  std::size_t most = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Case c =
        draw_long_case(seed, signature, {longest(signature, Axis::sequences), Dtype::f32});
    most = std::max(most, c.split.parts.size());
  }
  EXPECT_EQ(most, 2u);
}

TEST(DrawLongCase, SameSeedGivesTheSameCase) {
  const LossSignature& signature = *reference::find_signature("value_clip");
  const auto drawn = [&](std::uint64_t seed, Axis axis) {
    return draw_long_case(seed, signature, {longest(signature, axis), Dtype::f32});
  };
  EXPECT_TRUE(is_same(drawn(1, Axis::tokens), drawn(1, Axis::tokens)));
  EXPECT_FALSE(is_same(drawn(1, Axis::tokens), drawn(2, Axis::tokens)));
  EXPECT_FALSE(is_same(drawn(1, Axis::tokens), drawn(1, Axis::sequences)));
}

TEST(LongAxisOf, KnowsItsOwn) {
  const LossSignature& signature = *reference::find_signature("linear_grpo");
  for (const Tier& tier : longest_tiers(signature)) {
    const Case c = draw_long_case(1, signature, {tier, Dtype::f32});
    EXPECT_EQ(long_axis_of(signature, c.shape), tier.axis);
  }
  for (const char* loss : {"linear_grpo", "whitening"}) {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      Choices choices(seed);
      const LossSignature& drawn = *reference::find_signature(loss);
      EXPECT_FALSE(long_axis_of(drawn, draw_shape(drawn, Temper::extreme, choices))) << loss;
    }
  }
}

}  // namespace
}  // namespace lossgate::fuzz
