// SPDX-License-Identifier: Apache-2.0
#include "ci/asked_under.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "impl/catalog.h"

namespace lossgate::ci {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const reference::Loss& grpo() { return *reference::find_loss("grpo"); }

/// What rounds its results to 8 bits, and says that it computes in this format.
AskedUnder rounding_to_8_bits(Dtype declared) {
  const impl::Implementation& host = *std::ranges::find_if(
      impl::catalog(),
      [](const impl::Implementation& one) { return one.loss == "grpo" && one.name == "host"; });
  impl::Implementation rounding = host;
  rounding.arithmetic = [declared](Dtype) { return plain_arithmetic(declared, ""); };
  rounding.evaluate = [exact = host.evaluate](const LossSignature& signature, const Case& c) {
    LossResult result = exact(signature, c);
    for (Output& output : result.outputs) {
      if (!is_float(output.tensor.dtype)) continue;
      for (std::int64_t i = 0; i < output.tensor.size(); ++i) {
        output.tensor.set(i, round_to(Dtype::bf16, output.tensor.at(i)));
      }
    }
    return result;
  };
  return {grpo(), rounding};
}

TEST(AskedUnder, TellsWhatFailsUnderAnotherDeclarationAlone) {
  const AskedUnder wide = rounding_to_8_bits(Dtype::bf16), narrow = rounding_to_8_bits(Dtype::f32);
  Progress progress(kTrials, 0);
  const Failures found = failures(narrow, Dtype::f32, progress, kTrialSeed, Breadth::of_the_case);
  EXPECT_THAT(new_kinds(narrow, found, seen_under(wide)),
              Contains(StartsWith("reference_agreement (")));
  EXPECT_THAT(new_kinds(narrow, found, seen_under(narrow)), IsEmpty());
}

}  // namespace
}  // namespace lossgate::ci
