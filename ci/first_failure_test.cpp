// SPDX-License-Identifier: Apache-2.0
#include "ci/first_failure.h"

#include <gtest/gtest.h>

#include "ci/errors.h"

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

}  // namespace
}  // namespace lossgate::ci
