// SPDX-License-Identifier: Apache-2.0
#include "properties/causes.h"

#include <gtest/gtest.h>

#include "impl/catalog.h"

namespace lossgate::properties {
namespace {

TEST(Causes, AreOneListWithoutDoubles) {
  for (const Cause& each : causes()) {
    EXPECT_EQ(find_cause(each.name), &each) << each.name;
    EXPECT_TRUE(each.statement.ends_with(".")) << each.name;
    EXPECT_TRUE(each.symptom || !each.repair.empty()) << each.name;
  }
}

TEST(Causes, AreWhatFaultyVariantsAreRegisteredWith) {
  for (const impl::Implementation& variant : impl::catalog()) {
    if (variant.fault) EXPECT_TRUE(find_cause(variant.fault->cause)) << variant.fault->cause;
  }
}

}  // namespace
}  // namespace lossgate::properties
