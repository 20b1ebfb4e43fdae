// SPDX-License-Identifier: Apache-2.0
// Entries of a gradient that are lost: when a kernel that filters is to blame, and when not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

double largest_of(const Tensor& tensor) {
  double largest = 0.0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    largest = std::max(largest, std::fabs(tensor.at(i)));
  }
  return largest;
}

/// Cross-entropy whose gradient lacks entries that are smaller than this share of the largest,
/// where it is driven by `upstream`.
impl::Implementation filtering(double share, double upstream) {
  return answering("cross_entropy", nullptr, [=](const Case& c, LossResult& result) {
    if (c.upstream != upstream) return;
    Tensor& gradient = output(result, "gradient.logits");
    const double least = share * largest_of(gradient);
    change_each(gradient, [&](double g) { return std::fabs(g) < least ? 0.0 : g; });
  });
}

/// Logits that are so far apart that gradients of all sizes come about.
Case of_all_sizes(double upstream) {
  Case c = ordinary_case("cross_entropy");
  Tensor& logits = c.batch.at("logits");
  for (std::int64_t i = 0; i < logits.size(); ++i) logits.set(i, -2.5 * static_cast<double>(i % 5));
  c.upstream = upstream;
  return c;
}

TEST(ProbeFilteredGradient, WantsLostEntriesToBeSmallBesideTheLargestWhateverItsSize) {
  for (const double upstream : {0x1p-12, 0x1p12}) {
    const Case c = of_all_sizes(upstream);
    expect_shown(filtering(1.0 / 1024, upstream), c, "gradient filtered",
                 "entries are 0 below a size, and right above it");
    EXPECT_NE(diagnosed(filtering(1.0 / 64, upstream), c).cause, "gradient filtered") << upstream;
  }
}

TEST(ProbeFilteredGradient, WantsLostEntriesToBeSmallerThanAllThatAreKept) {
  const auto fake = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    if (c.upstream == 1.0) return;
    Tensor& gradient = output(result, "gradient.logits");
    const double largest = largest_of(gradient);
    change_each(gradient, [&](double g) {
      const double share = std::fabs(g) / largest;
      return share > 0x1p-13 && share < 0x1p-10 ? 0.0 : g;
    });
  });
  EXPECT_NE(diagnosed(fake, of_all_sizes(0x1p-12)).cause, "gradient filtered");
}

/// How many entries have another number.
int differing(const Tensor& a, const Tensor& b) {
  int count = 0;
  for (std::int64_t i = 0; i < std::min(a.size(), b.size()); ++i) count += a.at(i) != b.at(i);
  return count;
}

TEST(ProbeGradient, TakesNoLossThatOverflowsAStepAwayForASlope) {
  const Case plain = ordinary_case("cispo");
  const auto fake = answering("cispo", nullptr, [&plain](const Case& c, LossResult& result) {
    const Tensor &log_prob = c.batch.at("log_prob"), &known = plain.batch.at("log_prob");
    change_each(output(result, "gradient.log_prob"), [](double g) { return 0.73 * g; });
    if (differing(log_prob, known) != 1) return;
    for (std::int64_t i = 0; i < log_prob.size(); ++i) {
      if (log_prob.at(i) > known.at(i)) output(result, "loss").set(0, HUGE_VAL);
    }
  });
  EXPECT_EQ(diagnosed(fake, plain).cause, "backward is not the derivative");
}

/// A case in which all policies are the same.
Case on_policy(const std::string& loss) {
  const LossSignature& signature = *reference::find_signature(loss);
  Case c = ordinary_case(loss);
  for (const ReachAxis& axis : signature.reach) {
    c.batch.at(axis.field) = c.batch.at(axis.towards);
  }
  return c;
}

/// Whatever is masked.
bool is_on_policy(const Case& c) {
  bool same = true;
  for (const ReachAxis& axis : reference::find_signature(c.spec.loss)->reach) {
    const Tensor &other = c.batch.at(axis.field), &own = c.batch.at(axis.towards);
    at_positions(c, true, [&](std::int64_t p) { same &= other.at(p) == own.at(p); });
  }
  return same;
}

/// DPO that has no gradient on policy, nor where `also` says so.
impl::Implementation detached_on_policy(bool (*also)(const Case&) = nullptr) {
  return answering("dpo", nullptr, [=](const Case& c, LossResult& result) {
    if (!is_on_policy(c) && !(also && also(c))) return;
    for (const char* name : {"gradient.chosen_log_prob", "gradient.rejected_log_prob"}) {
      change_each(output(result, name), [](double) { return 0.0; });
    }
  });
}

TEST(ProbeGradient, AsksForADeadSignalWhereAllPoliciesAreTheSame) {
  expect_shown(detached_on_policy(), on_policy("dpo"), "dead signal",
               "where all policies are the same, what is wrong of the gradient is 0");
}

TEST(ProbeGradient, AsksForAWeightThatIsNotDetachedWhereAllPoliciesAreTheSame) {
  const auto sound = answering("vespo", nullptr);
  const auto attached = answering("vespo", nullptr, [&](const Case& c, LossResult& result) {
    if (!is_on_policy(c)) return;
    at_positions(c, true, [&](std::int64_t p) {
      double ends[2];
      for (const int side : {0, 1}) {
        Case moved = c;
        Tensor& log_prob = moved.batch.at("log_prob");
        log_prob.set(p, log_prob.at(p) + (side == 0 ? -0x1p-12 : 0x1p-12));
        LossResult there = sound.evaluate(*reference::find_signature("vespo"), moved);
        ends[side] = output(there, "loss").at(0);
      }
      output(result, "gradient.log_prob").set(p, c.upstream * (ends[1] - ends[0]) * 0x1p11);
    });
  });
  expect_shown(attached, on_policy("vespo"), "gradient through what is constant",
               "where all policies are the same, the gradient is the slope of the loss, part of "
               "which is a constant");
}

TEST(ProbeGradient, BlamesNoAgreementForWhatIsWrongWithoutIt) {
  const auto fake = detached_on_policy([](const Case& c) { return c.upstream == 0.5; });
  Case c = ordinary_case("dpo");
  c.upstream = 0.5;
  EXPECT_FALSE(speaks(probe_gradient, fake, c));
}

TEST(ProbeFilteredGradient, TakesARowOfAnOutputLayerForOneNumber) {
  const auto fake = answering("linear_cross_entropy", nullptr, [](const Case& c, LossResult& r) {
    if (c.upstream == 1.0) return;
    Tensor& gradient = output(r, "gradient.weight");
    const std::int64_t width = gradient.extents.back(), rows = gradient.size() / width;
    std::vector<double> sizes(static_cast<std::size_t>(rows), 0.0);
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      double& size = sizes[static_cast<std::size_t>(i / width)];
      size = std::max(size, std::fabs(gradient.at(i)));
    }
    const double least = std::ranges::max(sizes) / 1024;
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      if (sizes[static_cast<std::size_t>(i / width)] < least) gradient.set(i, 0.0);
    }
  });
  Case c = ordinary_case("linear_cross_entropy");
  c.upstream = 0x1p-12;
  Tensor &hidden = c.batch.at("hidden"), &weight = c.batch.at("weight");
  change_each(c.batch.at("label"), [](double label) { return label > 0.0 ? 0.0 : label; });
  const std::int64_t width = weight.extents.back();
  // Entries of one row are far from each other: small ones are kept beside larger ones that lack.
  for (std::int64_t i = 0; i < hidden.size(); ++i) hidden.set(i, i % width == 0 ? 1.0 : 0x1p-12);
  for (std::int64_t i = 0; i < weight.size(); ++i) {
    weight.set(i, i % width == 0 ? -7.5 * static_cast<double>(i / width) : 0.0);
  }
  EXPECT_EQ(diagnosed(fake, c).cause, "gradient filtered");
}

TEST(ProbeDeadGradient, TurnsAFlagOffThatLetsAGradientComeAnotherWay) {
  const auto detached = answering("kl_penalty", nullptr, [](const Case& c, LossResult& result) {
    const double left = c.spec.number("kl_weighted") != 0.0 ? 0.5 : 0.0;
    change_each(output(result, "gradient.log_prob"), [=](double g) { return left * g; });
  });
  Case c = ordinary_case("kl_penalty");
  c.spec.set("kl_weighted", 1.0);
  expect_shown(detached, c, "dead signal",
               "without kl_weighted the forward is right, and what is wrong of the gradient is 0");
}

TEST(ProbeFilteredGradient, SaysNothingWhereTheGivenCaseIsRight) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (c.batch.at("advantage").at(0) == 0.0) output(result, "gradient.log_prob").set(0, 0.01);
  });
  const Diagnosis diagnosis = diagnosed(fake, ordinary_case("grpo"));
  EXPECT_EQ(diagnosis.cause, "gradient without an advantage");
  EXPECT_EQ(diagnosis.because, "");
}

TEST(ProbeFilteredGradient, SaysNothingWhereAValueIsLostWithThem) {
  const auto fake = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    if (c.upstream == 1.0) return;
    const LossResult filtered =
        filtering(1.0 / 1024, c.upstream).evaluate(*reference::find_signature("cross_entropy"), c);
    output(result, "gradient.logits") = *filtered.find("gradient.logits");
    output(result, "per_token").set(0, 0.0);
  });
  EXPECT_NE(diagnosed(fake, of_all_sizes(0x1p-12)).cause, "gradient filtered");
}

}  // namespace
}  // namespace lossgate::properties
