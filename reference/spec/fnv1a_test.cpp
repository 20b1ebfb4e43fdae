// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/fnv1a.h"

#include <gtest/gtest.h>

#include <string_view>

namespace lossgate {
namespace {

std::uint64_t hash(std::string_view text) {
  Fnv1a bytes;
  for (char c : text) bytes.add(static_cast<std::uint8_t>(c));
  return bytes.value();
}

TEST(Fnv1a, HasTheValuesOfItsSpecification) {
  EXPECT_EQ(hash(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace lossgate
