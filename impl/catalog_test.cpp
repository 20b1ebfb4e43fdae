// SPDX-License-Identifier: Apache-2.0
#include "impl/catalog.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace lossgate::impl {
namespace {

TEST(Catalog, NamesEveryImplementationOfALossOnce) {
  std::set<std::pair<std::string, std::string>> names;
  for (const Implementation& i : catalog(false)) {
    EXPECT_TRUE(names.emplace(i.loss, i.name).second) << i.loss << " " << i.name;
  }
}

TEST(Catalog, ListsSoundImplementationsFirst) {
  bool faulty = false;
  for (const Implementation& i : catalog(false)) {
    EXPECT_FALSE(faulty && !i.fault) << i.loss << " " << i.name;
    faulty = faulty || i.fault.has_value();
  }
  EXPECT_TRUE(faulty);
}

TEST(Catalog, PutsEveryFaultyImplementationBesideASoundOneOfTheSameLoss) {
  for (const Implementation& faulty : catalog(false)) {
    if (!faulty.fault) continue;
    bool found = false;
    for (const Implementation& sound : catalog(false)) {
      found =
          found || (!sound.fault && sound.loss == faulty.loss && sound.name == faulty.fault->twin);
    }
    EXPECT_TRUE(found) << faulty.loss << " " << faulty.name << ": no twin " << faulty.fault->twin;
  }
}

TEST(Catalog, SaysOfEveryFaultWhereItIsFromAndWhatMustNotice) {
  for (const Implementation& i : catalog(false)) {
    if (!i.fault) continue;
    EXPECT_TRUE(i.fault->thread.starts_with("https://")) << i.name;
    EXPECT_FALSE(i.fault->cause.empty()) << i.name;
    EXPECT_FALSE(i.fault->trigger.empty()) << i.name;
    EXPECT_FALSE(i.fault->killers.empty()) << i.name;
  }
}

TEST(Catalog, CanBeAskedEverything) {
  for (const Implementation& i : catalog(false)) {
    EXPECT_TRUE(i.unsupported) << i.name;
    EXPECT_TRUE(i.arithmetic) << i.name;
    EXPECT_TRUE(i.evaluate) << i.name;
    EXPECT_FALSE(i.source.file.empty()) << i.name;
  }
}

TEST(Torch, IsOpenedFromWhereTheEnvironmentSays) {
  setenv("LOSSGATE_TORCH_LIBRARY", "/nowhere/liblossgate_torch.so", 1);
  EXPECT_EQ(torch_library(), "/nowhere/liblossgate_torch.so");
  EXPECT_FALSE(torch_status().empty());
  EXPECT_EQ(catalog().size(), catalog(false).size());
  unsetenv("LOSSGATE_TORCH_LIBRARY");
}

}  // namespace
}  // namespace lossgate::impl
