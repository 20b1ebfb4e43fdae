// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "reference/reference.h"

namespace lossgate::reference {

/// A loss, with the term and the gradient that it gives to the one position that counts, for tests;
/// of several gradient entries the last.
struct OneToken : Sink<Tracked> {
  OneToken(const Case& c, const Arithmetic& arithmetic) {
    const Loss& formula = *find_loss(c.spec.loss);
    const Problem problem(formula.signature, c);
    EXPECT_EQ(problem.outputs.at(1).name, "per_token");
    EXPECT_EQ(problem.outputs.at(2).kind, OutputKind::gradient);
    evaluate(formula, problem, arithmetic, *this);
  }

  void entry(std::size_t output, std::int64_t /*index*/, const Tracked& x) override {
    (output == 0 ? loss : output == 1 ? term : gradient) = x;
  }

  Tracked loss, term, gradient;
};

}  // namespace lossgate::reference
