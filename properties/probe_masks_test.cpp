// SPDX-License-Identifier: Apache-2.0
// What lies behind the mask and at the edges, where one number alone shows it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "properties/plain_case.h"
#include "properties/probes.h"
#include "reference/given_case.h"

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

TEST(ProbeMaskedTerms, SeesWhatIsReadWhereThereAreZeros) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, false, [&](std::int64_t p) {
      const double x = c.batch.at("log_prob").at(p);
      if (x == 0.0 || std::isinf(x)) add_to_loss(result, 0.25);
    });
  });
  expect_shown(fake, ordinary_case("grpo"), "masked data leaks", kLeaks);
}

TEST(ProbeMaskedTerms, TakesAValueAtAMaskedPositionForNoGradient) {
  const auto filled = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, false, [&](std::int64_t p) { output(result, "per_token").set(p, 0.25); });
  });
  EXPECT_EQ(diagnosed(filled, ordinary_case("grpo")).cause, "disagrees with the formula");
}

TEST(ProbeMaskedTerms, TellsDataFromAnotherFillerWhereNoPlainCaseIsKnown) {
  const auto answered = [](double (*number)(std::int64_t)) {
    return answering("teacher_payload", nullptr, [number](const Case&, LossResult& result) {
      Tensor& teacher = output(result, "token_log_prob");
      for (std::int64_t i = 0; i < teacher.size(); ++i) teacher.set(i, number(i));
    });
  };
  reference::SmallCases cases(*reference::find_signature("teacher_payload"), 2);
  Case c = cases.draw(Dtype::f64);
  while (c.shape[Axis::tokens] * c.shape[Axis::support] < 4) c = cases.draw(Dtype::f64);
  const auto data = answered([](std::int64_t i) { return -7.0 - static_cast<double>(i); });
  const char* because = "there is data where the formula has a filler";
  expect_shown(data, c, "masked data leaks", because);
  EXPECT_NE(diagnosed(answered([](std::int64_t) { return -7.0; }), c).cause, "masked data leaks");
  // Log-probs have another filler than tokens.
  const auto both = answering("teacher_payload", nullptr, [](const Case&, LossResult& result) {
    for (const char* name : {"token_log_prob", "token_id"}) {
      Tensor& filled = output(result, name);
      for (std::int64_t i = 0; i < filled.size(); ++i) filled.set(i, 7.0 + static_cast<double>(i));
    }
  });
  expect_shown(both, c, "masked data leaks", because);
}

TEST(ProbeMaskedTerms, TakesManyNumbersThatTheFormulaHasForNoFillers) {
  const auto off = answering("teacher_payload", nullptr, [](const Case&, LossResult& result) {
    Tensor& teacher = output(result, "token_log_prob");
    for (std::int64_t i = 0; i < teacher.size(); ++i) {
      teacher.set(i, -7.0 - static_cast<double>(i));
    }
  });
  reference::SmallCases cases(*reference::find_signature("teacher_payload"), 2);
  Case c = cases.draw(Dtype::f64);
  while (c.shape[Axis::tokens] * c.shape[Axis::support] < 8) c = cases.draw(Dtype::f64);
  std::vector<std::byte>& text = c.batch.at("payload").bytes;
  for (std::size_t i = 1, seen = 0; i < text.size(); ++i) {
    if (text[i - 1] == std::byte{'.'}) text[i] = static_cast<std::byte>("123"[seen++ % 3]);
  }
  EXPECT_NE(diagnosed(off, c).cause, "masked data leaks");
}

TEST(ProbeBehindMask, SeesWhatBreaksTheLossWhereOrdinaryNumbersDoSoToo) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    for (const bool valid : {true, false}) {
      at_positions(c, valid, [&](std::int64_t p) {
        const double x = c.batch.at("advantage").at(p);
        if (valid ? x > 0.25 : !std::isfinite(x)) add_to_loss(result, kNan);
      });
    }
  });
  Case c = ordinary_case("grpo");
  change_each(c.batch.at("advantage"), [](double) { return 0.125; });
  c.batch.at("advantage").set(5, kNan);
  expect_shown(fake, c, "non-finite value behind a mask",
               "what is made of data behind the mask is no number, and reaches the loss");
}

/// GRPO whose loss is no number where a valid log-ratio overflows exp.
void overflow(const Case& c, LossResult& result) {
  at_positions(c, true, [&](std::int64_t p) {
    if (c.batch.at("log_prob").at(p) > c.batch.at("old_log_prob").at(p) + 709.0) {
      add_to_loss(result, kNan);
    }
  });
}

TEST(ProbeEmpty, SaysNothingWhereNoPlainCaseIsComputed) {
  auto fake = answering("grpo", nullptr, overflow);
  fake.unsupported = [](const Case& c) {
    return c.shape[Axis::sequences] > 3 ? std::optional<std::string>("too many") : std::nullopt;
  };
  Case c = grpo_case(3, 4, Dtype::f64);
  for (std::int64_t t = 0; t < 4; ++t) mask_out(c, 2, t);
  put_log_ratio(c, 0, 1, 1000.0);
  EXPECT_EQ(diagnosed(fake, c).cause, "clamp after exp");
}

TEST(ProbeEmpty, SaysNothingOfAnEmptyBatchThatIsNotComputed) {
  auto fake = answering("grpo", nullptr, overflow);
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

TEST(ProbeExponents, SaysNothingWherePlainNumbersAreWrong) {
  const auto fake = [](double off) {
    return answering("grpo", nullptr, [off](const Case& c, LossResult& result) {
      add_to_loss(result, off);
      at_positions(c, true, [&](std::int64_t p) {
        const double d = c.batch.at("log_prob").at(p) - c.batch.at("old_log_prob").at(p);
        if (d > 100.0) add_to_loss(result, kNan);
      });
    });
  };
  Case c = ordinary_case("grpo");
  c.batch.at("old_log_prob").set(0, c.batch.at("log_prob").at(0) - 1000.0);
  EXPECT_GT(diagnosed(fake(0.0), c).confidence, 0.0);
  EXPECT_EQ(diagnosed(fake(0.01), c).confidence, 0.0);
}

TEST(ProbeExponents, NamesASquareThatOverflowsInTheNarrowestFormat) {
  auto square = answering("value_clip", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t p) {
      const double d = c.batch.at("value").at(p) - c.batch.at("return").at(p);
      if (d * d > max_finite(Dtype::f16)) output(result, "loss").set(0, HUGE_VAL);
    });
  });
  square.arithmetic = [](Dtype stored) { return plain_arithmetic(stored, ""); };
  Case c = ordinary_case("value_clip", Dtype::f16);
  c.batch.at("value").set(0, 300.0);  // half of its square is 45,000
  EXPECT_EQ(diagnosed(square, c).cause, "overflow of a square or sum");
}

TEST(ProbeLogits, IsLessSureOfAnUnshiftedLogitThatLeavesNumbers) {
  const auto off_beyond = [](double limit, double by) {
    return answering("cross_entropy", nullptr, [=](const Case& c, LossResult& result) {
      const Tensor& logits = c.batch.at("logits");
      for (std::int64_t i = 0; i < logits.size(); ++i) {
        if (valid_of(c)[static_cast<std::size_t>(i / c.shape[Axis::vocab])] &&
            logits.at(i) > limit) {
          add_to_loss(result, logits.at(i) > 1e3 ? kNan : by);
        }
      }
    });
  };
  Case c = ordinary_case("cross_entropy");
  c.batch.at("logits").set(3, 90.0);
  const Diagnosis sure = diagnosed(off_beyond(88.0, kNan), c),
                  less = diagnosed(off_beyond(88.0, 1.0), c);
  EXPECT_EQ(sure.cause, "exp of an unshifted logit");
  EXPECT_EQ(less.cause, sure.cause);
  EXPECT_LT(less.confidence, sure.confidence);
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

TEST(ProbeEmptiedRow, BlamesNoEmptySequenceForWhatIsWrongWithoutIt) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const bool present = c.batch.at("advantage").at(0) == 3.0 && valid_of(c)[0];
    if (!present && std::ranges::count(valid_of(c), true) > 0) add_to_loss(result, 0.01);
  });
  Case c = ordinary_case("grpo");
  put(c, "advantage", 0, 0, 3.0);
  EXPECT_EQ(check("empty_is_zero", fake, c).violation->cause, "empty row counted");
  EXPECT_EQ(diagnosed(fake, c).cause, "disagrees with the formula");
}

TEST(ProbeEmptiedRow, LeavesADivisionBy0ToItsName) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const std::vector<bool> valid = valid_of(c);
    const bool first = std::count(valid.begin(), valid.begin() + c.shape[Axis::tokens], true) > 0;
    if (!first && std::ranges::count(valid, true) > 0) add_to_loss(result, kNan);
  });
  const Case c = ordinary_case("grpo");
  EXPECT_EQ(check("empty_is_zero", fake, c).violation->cause, "empty divisor");
}

TEST(ProbeBehindMask, BelievesALossThatIsLostWhateverItsOwnNumbersDo) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, false, [&](std::int64_t p) {
      const double x = c.batch.at("ref_log_prob").at(p);
      if (x == -3e4) add_to_loss(result, kNan);
      if (!std::isfinite(x)) output(result, "gradient.log_prob").set(p, kNan);
    });
  });
  Case c = ordinary_case("grpo");
  at_positions(c, false, [&](std::int64_t p) { c.batch.at("ref_log_prob").set(p, -3e4); });
  expect_shown(fake, c, "non-finite value behind a mask",
               "what is made of data behind the mask is no number, and reaches the loss");
}

}  // namespace
}  // namespace lossgate::properties
