// SPDX-License-Identifier: Apache-2.0
#include "ci/benign_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "ci/inquiry.h"
#include "impl/catalog.h"

namespace lossgate::ci {
namespace {

using properties::Property;

constexpr const char* kCause = "disagrees with the formula";

const Property& agreement() { return *properties::find_property("reference_agreement"); }
const reference::Loss& grpo() { return *reference::find_loss("grpo"); }

const impl::Implementation& host() {
  return *std::ranges::find_if(impl::catalog(), [](const impl::Implementation& one) {
    return one.loss == "grpo" && one.name == "host";
  });
}

/// A sound implementation that answers half of what it should where `wrong` says so.
template <class Wrong>
impl::Implementation halved_where(Wrong wrong) {
  impl::Implementation fake = host();
  fake.name = "halved";
  fake.evaluate = [wrong](const LossSignature& signature, const Case& c) {
    LossResult result = host().evaluate(signature, c);
    for (Output& output : result.outputs) {
      for (std::int64_t i = 0; wrong(c) && i < output.tensor.size(); ++i) {
        output.tensor.set(i, output.tensor.at(i) / 2);
      }
    }
    return result;
  };
  return fake;
}

/// The fingerprint of the first finding of a run with this seed.
std::string first_fingerprint(const impl::Implementation& subject, std::uint64_t seed) {
  PlanOptions options;
  options.filters.losses = {"grpo"};
  options.filters.dtypes = {"f64"};
  options.filters.properties = {"reference_agreement"};
  options.seed = seed;
  options.cases = 40;
  const Plan plan(options);
  Shown shown;
  BenignCases benign(plan.selection());
  const Announce announce = [](std::int64_t, const std::string&) {};
  Inquiry inquiry(plan, shown, benign, announce);
  for (std::int64_t i = 0; i < plan.size(); ++i) {
    const PlannedCase planned = plan.at(i);
    properties::CaseStudy study(*planned.loss, planned.c);
    inquiry.ask(study, subject, planned, i);
    if (!inquiry.record().findings.empty()) return inquiry.record().findings.front().fingerprint;
  }
  return "";
}

TEST(BenignCases, GiveAFaultOfAboutHalfOfThemOneNameWhateverTheSeed) {
  const auto fake = halved_where([](const Case& c) { return c.shape[Axis::sequences] % 2 == 0; });
  std::set<bool> another;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const std::string fingerprint = first_fingerprint(fake, seed);
    ASSERT_NE(fingerprint, "") << seed;
    another.insert(fingerprint.find("|another formula|") != fingerprint.npos);
  }
  EXPECT_EQ(another.size(), 1u);
}

TEST(BenignCases, AreAskedInTheWidestFormatWhicheverCaseFailed) {
  const auto asked = std::make_shared<std::set<Dtype>>();
  impl::Implementation fake = halved_where([asked](const Case& c) {
    asked->insert(float_dtype(grpo().signature, c));
    return true;
  });
  fake.unsupported = [](const Case& c) -> std::optional<std::string> {
    if (float_dtype(grpo().signature, c) == Dtype::f64) return "f64 is not asked";
    return host().unsupported(c);
  };
  const Selection selection;
  BenignCases benign(selection);
  properties::Violation violation;
  violation.cause = kCause;
  EXPECT_TRUE(benign.another_formula(grpo(), fake, agreement(), violation));
  EXPECT_EQ(*asked, std::set<Dtype>{Dtype::f32});
  EXPECT_FALSE(benign.another_formula(grpo(), host(), agreement(), violation));
}

TEST(BenignCases, ShowWhatLeavesOutSequencesWithoutAnAdvantage) {
  const auto solved = [](const Case& c) {
    const Tensor& advantage = c.batch.at("advantage");
    const std::int64_t rows = c.shape[Axis::sequences], each = advantage.size() / rows;
    for (std::int64_t row = 0; row < rows; ++row) {
      bool zero = true;
      for (std::int64_t i = row * each; i < (row + 1) * each; ++i) zero &= advantage.at(i) == 0.0;
      if (zero && each > 0) return true;
    }
    return false;
  };
  const auto fake = halved_where(solved);
  const Selection selection;
  BenignCases benign(selection);
  EXPECT_TRUE(
      benign.show(grpo(), fake, agreement(), benign_case(grpo().signature, Dtype::f32, 0), kCause));
  properties::Violation violation;
  violation.cause = kCause;
  EXPECT_FALSE(benign.another_formula(grpo(), fake, agreement(), violation));
}

TEST(BenignCases, AreAskedUnderTheOptionsOfWhatFailsToo) {
  const auto fake =
      halved_where([](const Case& c) { return *c.spec.find("clip_low") == OptionValue(0.3125); });
  Case failing = benign_case(grpo().signature, Dtype::f32, 0);
  failing.spec.set("clip_low", 0.3125);
  const Selection selection;
  BenignCases benign(selection);
  EXPECT_TRUE(benign.show(grpo(), fake, agreement(), failing, kCause));
  const double end = grpo().signature.find_option("clip_low")->low;
  const auto at_end = halved_where([end](const Case& c) {
    return *c.spec.find("clip_low") == OptionValue(end) &&
           *c.spec.find("clip_high") == OptionValue(0.3125);
  });
  failing.spec.set("clip_low", end);
  failing.spec.set("clip_high", 0.3125);
  BenignCases others(selection);
  EXPECT_FALSE(others.show(grpo(), at_end, agreement(), failing, kCause));
}

}  // namespace
}  // namespace lossgate::ci
