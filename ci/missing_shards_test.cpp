// SPDX-License-Identifier: Apache-2.0
#include "ci/missing_shards.h"

#include <gtest/gtest.h>

namespace lossgate::ci {
namespace {

std::vector<std::string> missing_beside(const std::vector<std::string>& shards) {
  std::vector<report::RunRecord> parts;
  for (const std::string& shard : shards) parts.emplace_back().request.shard = shard;
  return missing_shards(parts);
}

using Texts = std::vector<std::string>;

TEST(MissingShards, AreNoneWhereAllAreThereOrNothingWasDealt) {
  EXPECT_EQ(missing_beside({"2/2", "1/2"}), Texts{});
  EXPECT_EQ(missing_beside({"", ""}), Texts{});
  EXPECT_EQ(missing_beside({"", "1/2", "2/2", "2/2"}), Texts{});
}

TEST(MissingShards, AreNamed) {
  EXPECT_EQ(missing_beside({"2/2"}), Texts{"1 of 2 shards missing: 1/2"});
  EXPECT_EQ(missing_beside({"", "2/3"}), Texts{"2 of 3 shards missing: 1/3, 3/3"});
}

TEST(MissingShards, AreNotMadeUpForByThoseOfAnotherCampaign) {
  EXPECT_EQ(missing_beside({"2/2", "3/3"}),
            (Texts{"1 of 2 shards missing: 1/2", "2 of 3 shards missing: 1/3, 2/3"}));
}

TEST(MissingShards, AreNotListedWithoutEnd) {
  EXPECT_EQ(missing_beside({"1/1000000000000"}),
            Texts{"999999999999 of 1000000000000 shards missing: 2/1000000000000, "
                  "3/1000000000000, 4/1000000000000, 5/1000000000000, 6/1000000000000, "
                  "7/1000000000000, 8/1000000000000, 9/1000000000000, ..."});
}

}  // namespace
}  // namespace lossgate::ci
