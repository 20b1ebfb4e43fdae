// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "properties/fake_answer.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// Plain answers, all of them desirable or none.
Case of_kind(double desirable) {
  Case c = ordinary_case("kto");
  Tensor& tensor = c.batch.at("desirable");
  for (std::int64_t s = 0; s < tensor.size(); ++s) tensor.set(s, desirable);
  return c;
}

/// That has no loss where it has no answer of this kind.
impl::Implementation needing(bool desirable) {
  return answering("kto", nullptr, [desirable](const Case& c, LossResult& result) {
    const Tensor& tensor = c.batch.at("desirable");
    for (std::int64_t s = 0; s < tensor.size(); ++s) {
      if ((tensor.integer_at(s) != 0) == desirable) return;
    }
    add_to_loss(result, std::numeric_limits<double>::quiet_NaN());
  });
}

TEST(ProbeKinds, SeesWhatABatchOfOneKindAloneBreaks) {
  expect_shown(needing(true), of_kind(0.0), "empty divisor",
               "where desirable is 0 of every sequence, plain numbers give no number");
  expect_shown(needing(false), of_kind(1.0), "empty divisor",
               "where desirable is 1 of every sequence, plain numbers give no number");
}

TEST(ProbeKinds, SaysNothingOfWhatNumbersBreak) {
  const auto broken = answering("kto", nullptr, [](const Case& c, LossResult& result) {
    if (c.batch.at("log_prob").at(0) < -100.0) {
      add_to_loss(result, std::numeric_limits<double>::quiet_NaN());
    }
  });
  Case far = of_kind(0.0);
  far.batch.at("log_prob").set(0, -200.0);
  EXPECT_NE(diagnosed(broken, far).cause, "empty divisor");
}

}  // namespace
}  // namespace lossgate::properties
