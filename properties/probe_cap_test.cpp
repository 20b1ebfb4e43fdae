// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

/// A loss of logits that a tanh keeps within the bound, the first of which has a gradient.
impl::Implementation capped(const std::string& loss, const std::vector<std::string>& fields,
                            double bound) {
  return answering(
      loss,
      [=](Case& c) {
        for (const std::string& field : fields) {
          change_each(c.batch.at(field), [&](double x) { return bound * std::tanh(x / bound); });
        }
      },
      [=](const Case& c, LossResult& result) {
        Tensor& gradient = output(result, "gradient." + fields.front());
        for (std::int64_t i = 0; i < gradient.size(); ++i) {
          const double share = std::tanh(c.batch.at(fields.front()).at(i) / bound);
          if (gradient.at(i) != 0.0) gradient.set(i, gradient.at(i) * (1.0 - share * share));
        }
      });
}

TEST(ProbeCap, NamesTheBoundOfATanh) {
  for (const double bound : {30.0, 3.0, 12.5}) {
    const std::string text = bound == 12.5 ? "12.5" : std::to_string(static_cast<int>(bound));
    expect_shown(
        capped("cross_entropy", {"logits"}, bound), ordinary_case("cross_entropy"),
        "undeclared bound",
        "the answer is that with " + text + " tanh(x / " + text + ") in the place of each logit x");
  }
}

TEST(ProbeCap, FindsItOfTheModelAloneAndBehindATemperature) {
  Case c = ordinary_case("jsd");
  c.spec.set("beta", 0.0);
  c.spec.set("temperature", 2.0);
  EXPECT_TRUE(speaks(probe_cap, capped("jsd", {"student_logits"}, 30.0), c));
  EXPECT_TRUE(speaks(probe_cap, capped("jsd", {"student_logits", "teacher_logits"}, 30.0), c));
}

TEST(ProbeCap, FindsItWhereALayerMakesTheLogits) {
  expect_shown(through_layer(capped("cross_entropy", {"logits"}, 30.0)),
               ordinary_case("linear_cross_entropy"), "undeclared bound",
               "the answer is that with 30 tanh(x / 30) in the place of each logit x");
}

TEST(ProbeCap, SaysNothingOfABoundThatIsNone) {
  const auto clamped = answering("cross_entropy", [](Case& c) {
    change_each(c.batch.at("logits"), [](double x) { return std::clamp(x, -1.0, 1.0); });
  });
  EXPECT_FALSE(speaks(probe_cap, clamped, ordinary_case("cross_entropy")));
  const auto halved = answering("cross_entropy", nullptr, [](const Case&, LossResult& result) {
    for (Output& each : result.outputs) change_each(each.tensor, [](double x) { return 0.5 * x; });
  });
  EXPECT_FALSE(speaks(probe_cap, halved, ordinary_case("cross_entropy")));
}

}  // namespace
}  // namespace lossgate::properties
