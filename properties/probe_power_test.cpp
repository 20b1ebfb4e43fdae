// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

TEST(ProbePower, FindsThePowerOfAnOptionThatIsOneFactorTooMany) {
  for (const int power : {1, -1, 2, -2}) {
    const auto fake = answering("jsd", nullptr, [power](const Case& c, LossResult& result) {
      const double factor = std::pow(c.spec.number("temperature"), power);
      change_each(output(result, "gradient.student_logits"), [&](double g) { return factor * g; });
    });
    Case c = ordinary_case("jsd");
    c.spec.set("temperature", 3.0);
    expect_shown(fake, c, "option misread", "what is wrong is off by a power of temperature");
  }
}

TEST(ProbePower, BlamesNoOptionForAPowerOfAnotherThatIsTheSameNumber) {
  const auto fake = answering("jsd", nullptr, [](const Case& c, LossResult& result) {
    change_each(output(result, "gradient.student_logits"),
                [&](double g) { return g * c.spec.number("temperature"); });
  });
  Case c = ordinary_case("jsd");
  for (const auto& [beta, its_power] : {std::pair(0.29, 1.0 / 0.29), std::pair(0.61, 0.3721)}) {
    c.spec.set("beta", beta);
    c.spec.set("temperature", its_power);
    expect_shown(fake, c, "option misread", "what is wrong is off by a power of temperature");
  }
}

TEST(ProbePower, MovesAnOptionWithTheOneThatFollowsIt) {
  reference::Loss tied = *reference::find_loss("jsd");
  std::ranges::find(tied.signature.options, "temperature", &Option::name)->follows = "beta";
  const auto fake = answering("jsd", nullptr, [](const Case& c, LossResult& result) {
    const double beta = c.spec.number("beta");
    change_each(output(result, "gradient.student_logits"), [&](double g) { return beta * g; });
    if (c.spec.number("temperature") != beta) add_to_loss(result, 1.0);  // one parameter is both
  });
  Case c = ordinary_case("jsd");
  c.spec.set("beta", 0.3);
  follow(tied.signature, c.spec);
  CaseStudy study(tied, c);
  const Violation violation{};
  Suspect suspect(study, fake, violation);
  const Opinion opinion = probe_power(suspect);
  ASSERT_TRUE(opinion);
  EXPECT_EQ(opinion->because, "what is wrong is off by a power of beta");
}

}  // namespace
}  // namespace lossgate::properties
