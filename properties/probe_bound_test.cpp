// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

constexpr double kBound = 10.0;

/// beta D of a pair.
double margin(const Case& c, std::int64_t pair) {
  const auto at = [&](const char* field) { return c.batch.at(field).at(pair); };
  return c.spec.number("beta") * (at("chosen_log_prob") - at("rejected_log_prob") -
                                  (at("ref_chosen_log_prob") - at("ref_rejected_log_prob")));
}

/// Pairs of which one lies far beyond the bound.
Case with_a_far_pair() {
  Case c = ordinary_case("dpo");
  c.spec.set("beta", 0.1);
  c.batch.at("chosen_log_prob").set(0, -400.0);
  return c;
}

TEST(ProbeBound, NameAMarginThatIsHeldWithinABound) {
  const auto clamped = answering(
      "dpo",
      [](Case& c) {
        Tensor& chosen = c.batch.at("chosen_log_prob");
        for (std::int64_t i = 0; i < chosen.size(); ++i) {
          const double h = margin(c, i), held = std::clamp(h, -kBound, kBound);
          // One that is held is the same number for all margins.
          if (!(std::fabs(h) > kBound)) continue;
          for (const char* other :
               {"rejected_log_prob", "ref_chosen_log_prob", "ref_rejected_log_prob"}) {
            c.batch.at(other).set(i, 0.0);
          }
          chosen.set(i, held / c.spec.number("beta"));
        }
      },
      [](const Case& c, LossResult& result) {
        for (const char* name : {"gradient.chosen_log_prob", "gradient.rejected_log_prob"}) {
          Tensor& gradient = output(result, name);
          for (std::int64_t i = 0; i < gradient.size(); ++i) {
            if (std::fabs(margin(c, i)) > kBound) gradient.set(i, 0.0);
          }
        }
      });
  expect_shown(clamped, with_a_far_pair(), "undeclared bound",
               "from some distance on the answer stays what it is there, where the formula's goes "
               "on");
}

/// GRPO whose dual clip bounds all of a token's loss, the KL term as well.
impl::Implementation with_all_below_the_dual_clip() {
  const auto without = [](Case& c) { c.spec.set("dual_clip", None{}); };
  return answering("grpo", without, [](const Case& c, LossResult& result) {
    if (c.spec.is_none("dual_clip")) return;
    Tensor& values = output(result, "per_token");
    double sum = 0.0, count = 0.0;
    bool holds = false;
    at_positions(c, true, [&](std::int64_t i) {
      const double advantage = c.batch.at("advantage").at(i);
      const double most = -advantage * c.spec.number("dual_clip");
      if (advantage < 0.0 && values.at(i) > most) {
        values.set(i, most);
        output(result, "gradient.log_prob").set(i, 0.0);
        holds = true;
      }
      sum += values.at(i);
      ++count;
    });
    if (holds) output(result, "loss").set(0, sum / count);
  });
}

TEST(ProbeBound, BlameTheOptionWithoutWhichNothingIsHeld) {
  Case c = ordinary_case("grpo");
  c.spec.set("dual_clip", 3.0);
  c.spec.set("kl_penalty", 1.0);
  expect_shown(with_all_below_the_dual_clip(), c, "option misread",
               "from some distance on dual_clip holds the answer, where the formula's goes on");
}

TEST(ProbeBound, NameAnAdvantageThatIsHeldWithinABoundWhereAnInfinityIsANumberToo) {
  const auto clamped = answering("grpo", [](Case& c) {
    change_each(c.batch.at("advantage"), [](double x) { return std::clamp(x, -kBound, kBound); });
  });
  const char* because =
      "from some advantage on the answer stays what it is there, where the formula's goes on";
  Case c = ordinary_case("grpo");
  expect_shown_of_lost(clamped, c, "undeclared bound", because);
  c.batch.at("advantage").set(0, 40.0);
  expect_shown(clamped, c, "undeclared bound", because);
}

TEST(ProbeBound, NameLogRatiosThatAreHeldOneByOne) {
  const std::pair<const char*, const char*> ratios[] = {
      {"chosen_log_prob", "ref_chosen_log_prob"}, {"rejected_log_prob", "ref_rejected_log_prob"}};
  const auto far = [](const Case& c, const auto& ratio, std::int64_t pair) {
    const double distance = c.batch.at(ratio.first).at(pair) - c.batch.at(ratio.second).at(pair);
    return std::fabs(distance) > kBound ? distance : 0.0;
  };
  const auto held = answering(
      "dpo",
      [=](Case& c) {
        for (const auto& ratio : ratios) {
          for (std::int64_t i = 0; i < c.batch.at(ratio.first).size(); ++i) {
            const double distance = far(c, ratio, i);
            if (distance == 0.0) continue;
            c.batch.at(ratio.first).set(i, std::copysign(kBound, distance));
            c.batch.at(ratio.second).set(i, 0.0);
          }
        }
      },
      [=](const Case& c, LossResult& result) {
        for (const auto& ratio : ratios) {
          Tensor& gradient = output(result, "gradient." + std::string(ratio.first));
          for (std::int64_t i = 0; i < gradient.size(); ++i) {
            if (far(c, ratio, i) != 0.0) gradient.set(i, 0.0);
          }
        }
      });
  expect_shown(held, with_a_far_pair(), "undeclared bound",
               "from some distance on the answer stays what it is there, where the formula's goes "
               "on");
}

TEST(ProbeBound, TakeASquareWithoutItsClipForNoBound) {
  // Far from the old value it stays what it is, and has a slope.
  const auto unclipped = answering("value_clip", [](Case& c) { c.spec.set("value_clip", None{}); });
  EXPECT_FALSE(speaks(probe_bound, unclipped, ordinary_case("value_clip")));
}

TEST(ProbeBound, TakeWhatIsLeftOutFarAwayForNoBound) {
  const auto dropped = answering("dpo", nullptr, [](const Case& c, LossResult& result) {
    const Tensor terms = output(result, "per_pair");
    const auto pairs = static_cast<double>(terms.size());
    for (std::int64_t i = 0; i < terms.size(); ++i) {
      if (!(std::fabs(margin(c, i)) > kBound)) continue;
      add_to_loss(result, c.spec.reduction == Reduction::sum ? -terms.at(i) : -terms.at(i) / pairs);
      for (const char* name :
           {"per_pair", "gradient.chosen_log_prob", "gradient.rejected_log_prob"}) {
        output(result, name).set(i, 0.0);
      }
    }
  });
  EXPECT_NE(diagnosed(dropped, with_a_far_pair()).cause, "undeclared bound");
}

TEST(ProbeBound, TakeASlopeThatGrowsTooSlowlyForNoBound) {
  const auto slow = answering("dpo", [](Case& c) {
    Tensor& chosen = c.batch.at("chosen_log_prob");
    for (std::int64_t i = 0; i < chosen.size(); ++i) {
      const double h = margin(c, i), beyond = std::fabs(h) - kBound;
      if (beyond > 0.0) {
        chosen.set(i, chosen.at(i) - std::copysign(0.5 * beyond, h) / c.spec.number("beta"));
      }
    }
  });
  EXPECT_NE(diagnosed(slow, with_a_far_pair()).cause, "undeclared bound");
}

}  // namespace
}  // namespace lossgate::properties
