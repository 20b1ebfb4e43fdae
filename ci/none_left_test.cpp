// SPDX-License-Identifier: Apache-2.0
#include "ci/none_left.h"

#include <gtest/gtest.h>

namespace lossgate::ci {
namespace {

const SubjectFile kFile{.text = "[[subject]]\nloss = 'dpo'\nentry = 'py:a.py:mine'\n",
                        .name = "lossgate.toml",
                        .folder = "."};

TEST(NoneLeft, NamesTheSubjectsThatThereAre) {
  Filters filters;
  filters.losses = {"jsd"};
  filters.subjects = {kFile};
  EXPECT_EQ(none_left(filters, {}), "no subject of jsd in lossgate.toml, which has mine (dpo)");
  filters.implementations = {"mine"};
  EXPECT_EQ(none_left(filters, {}),
            "no subject of jsd called mine in lossgate.toml, which has mine (dpo)");
}

TEST(NoneLeft, NamesTheDtypesThatASubjectIsAskedIn) {
  const auto brought = std::make_shared<Brought>();
  brought->implementation.name = "mine";
  brought->dtypes = {Dtype::f32};
  Selection left;
  left.brought = {brought};
  EXPECT_EQ(none_left({}, left), "mine is asked in f32 alone");
  brought->dtypes = {Dtype::f32, Dtype::f16};
  EXPECT_EQ(none_left({}, left), "mine is asked in f32, f16");
}

TEST(NoneLeft, NamesWhatComputesTheLoss) {
  Filters filters;
  filters.losses = {"jsd"};
  filters.implementations = {"other"};
  const std::string said = none_left(filters, {});
  EXPECT_TRUE(said.starts_with("no implementation of jsd called other")) << said;
}

}  // namespace
}  // namespace lossgate::ci
