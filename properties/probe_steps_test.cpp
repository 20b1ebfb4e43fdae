// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "properties/fake_answer.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// The formula with numbers of these options in fewer digits.
impl::Implementation rounding(const std::string& loss, const std::vector<std::string>& options,
                              Dtype to) {
  return answering(loss, [=](Case& c) {
    for (const std::string& option : options) {
      c.spec.set(option, round_to(to, c.spec.number(option)));
    }
  });
}

TEST(ProbeSteps, SeesAnOptionThatWasRounded) {
  for (const Dtype to : {Dtype::bf16, Dtype::f16}) {
    Case pairs = ordinary_case("dpo");
    pairs.spec.set("beta", 0.1);
    expect_shown(rounding("dpo", {"beta"}, to), pairs, "narrow arithmetic",
                 "the answer stays the same where beta moves by a 32768th of itself, and not by a "
                 "16th: it is rounded");
  }
}

TEST(ProbeSteps, SeesTwoThatWereAndWhatIsMadeOfThem) {
  Case c = ordinary_case("sapo");
  c.spec.set("tau_positive", 1.3);
  c.spec.set("tau_negative", 1.05);
  EXPECT_EQ(diagnosed(rounding("sapo", {"tau_positive", "tau_negative"}, Dtype::bf16), c).cause,
            "narrow arithmetic");
}

TEST(ProbeSteps, TakesAnOptionThatIsCachedOrHeldToANumberForNoRoundedOne) {
  const auto taken = [](double least) {
    return answering(
        "dpo", [least](Case& c) { c.spec.set("beta", std::max(c.spec.number("beta"), least)); });
  };
  const auto kept = answering("dpo", [](Case& c) { c.spec.set("beta", 0.1001); });
  Case c = ordinary_case("dpo");
  c.spec.set("beta", 0.1);
  EXPECT_FALSE(speaks(probe_steps, taken(0.1001), c));
  EXPECT_FALSE(speaks(probe_steps, kept, c));
}

TEST(ProbeSteps, SaysNothingOfWhatIsNarrowThroughout) {
  const auto narrow = answering("dpo", nullptr, [](const Case&, LossResult& result) {
    for (Output& each : result.outputs) {
      change_each(each.tensor, [](double x) { return round_to(Dtype::bf16, x); });
    }
  });
  EXPECT_FALSE(speaks(probe_steps, narrow, ordinary_case("dpo")));
}

}  // namespace
}  // namespace lossgate::properties
