// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ci/candidates.h"
#include "ci/config_text.h"
#include "ci/fake_function.h"

namespace lossgate::ci {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// Forward KL at a temperature, times a power of it.
FakeFunction distillation(double power) {
  FakeFunction function("jsd");
  function.with("beta", 0.0).with("soft_cross_entropy", 0.0).only(Reduction::token_mean);
  function.defaults = {{"temperature", 2.0}};
  function.after = [power](const Case& c, LossResult& result) {
    scale(result, std::pow(c.spec.number("temperature"), power));
  };
  return function;
}

TEST(ScaleRecognition, TakesTheSquareOfATemperatureForTheScaleThatItIs) {
  const Recognition found = distillation(2.0).recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_EQ(found.subject.scaled_by, "temperature");
  EXPECT_EQ(find_value(found.subject.options, "temperature"), nullptr) << "a gate asks it";
  EXPECT_THAT(found.remarks, Contains("returns temperature^2 times the formula"));
  EXPECT_THAT(found.remarks, Not(Contains(HasSubstr("will not be asked there"))));
  EXPECT_THAT(config_text({}, found, {}, {}), HasSubstr("\nscale = \"temperature^2\"  # "));
}

TEST(ScaleRecognition, TakesNoOtherPowerForAScale) {
  for (const double power : {0.0, 1.0, 3.0, -2.0}) {
    const Recognition found = distillation(power).recognised();
    EXPECT_EQ(found.subject.scaled_by, "") << power;
    EXPECT_EQ(find_value(found.subject.options, "temperature"), nullptr) << "a gate asks " << power;
    EXPECT_EQ(find_value(found.let_go, "temperature") == nullptr, power == 0.0) << power;
    const auto said = Contains(HasSubstr("the loss is off by a power of it: at 2 it is "));
    if (power != 0.0) EXPECT_THAT(found.faults, said) << power;
  }
}

TEST(ScaleRecognition, TakesNoFactorForASquareThatIsOneAtASingleTemperature) {
  FakeFunction other = distillation(0.0);  // 4 at 2, as the square, and 8 at 4
  other.after = [](const Case& c, LossResult& result) {
    const double temperature = c.spec.number("temperature");
    if (temperature != 1.0) scale(result, 2.0 * temperature);
  };
  EXPECT_EQ(other.recognised().subject.scaled_by, "");
}

}  // namespace
}  // namespace lossgate::ci
