// SPDX-License-Identifier: Apache-2.0
#include "ci/first_failure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "ci/errors.h"
#include "fuzz/draw_case.h"
#include "impl/catalog.h"

namespace lossgate::ci {
namespace {

impl::Implementation of_grpo(const std::string& name, std::optional<std::string> unsupported) {
  impl::Implementation row;
  row.name = name;
  row.loss = "grpo";
  row.unsupported = [unsupported](const Case&) { return unsupported; };
  return row;
}

Case of(const std::string& loss) {
  Case c;
  c.spec.loss = loss;
  return c;
}

TEST(WhyUnasked, SaysWhyOfEachThatCannotBeAsked) {
  const auto fixed = of_grpo("fixed", "clip_low is fixed"), narrow = of_grpo("narrow", "f16");
  Selection selection;
  selection.implementations = {&fixed, &narrow};
  EXPECT_EQ(why_unasked(selection, of("grpo")),
            "fixed was not asked: clip_low is fixed\nnarrow was not asked: f16\n"
            "nothing was asked\n");
}

TEST(WhyUnasked, IsEmptyWhereOneCanBeAsked) {
  const auto fixed = of_grpo("fixed", "clip_low is fixed"), open = of_grpo("open", std::nullopt);
  Selection selection;
  selection.implementations = {&fixed, &open};
  EXPECT_EQ(why_unasked(selection, of("grpo")), "");
}

TEST(CheckComputed, RefusesACaseOfALossThatNobodyComputes) {
  const auto open = of_grpo("open", std::nullopt);
  Selection selection;
  selection.implementations = {&open};
  EXPECT_NO_THROW(check_computed(selection, of("grpo"), "one.case"));
  EXPECT_THROW(check_computed(selection, of("dpo"), "one.case"), InputError);
}

/// A sound implementation, but that no number comes of it.
impl::Implementation without_numbers() {
  impl::Implementation made = *std::ranges::find_if(
      impl::catalog(/*with_torch=*/false),
      [](const auto& one) { return one.loss == "grpo" && one.name == "host"; });
  made.evaluate = [inner = made.evaluate](const LossSignature& signature, const Case& c) {
    LossResult result = inner(signature, c);
    for (Output& output : result.outputs) {
      for (std::int64_t i = 0; is_float(output.tensor.dtype) && i < output.tensor.size(); ++i) {
        output.tensor.set(i, std::numeric_limits<double>::quiet_NaN());
      }
    }
    return result;
  };
  return made;
}

TEST(AlsoViolated, LeavesOutWhatAReplayDoesNotAskAsItIsRedAlready) {
  const impl::Implementation subject = without_numbers();
  Selection selection;
  selection.implementations = {&subject};
  for (const properties::Property& property : properties::catalog()) {
    selection.properties.push_back(&property);
  }
  fuzz::Choices choices(1);
  const LossSignature& grpo = *reference::find_signature("grpo");
  const Case c = draw_case(grpo, Dtype::f32, fuzz::Profile::benign, choices);
  const auto first = first_failure(selection, c);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->property().name, "finite_forward");
  const std::string others = also_violated(selection, *first, c);
  EXPECT_NE(others.find("finite_backward"), others.npos) << others;
  EXPECT_EQ(others.find("reference_agreement"), others.npos) << others;
}

}  // namespace
}  // namespace lossgate::ci
