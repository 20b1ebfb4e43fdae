// SPDX-License-Identifier: Apache-2.0
#include "ci/evidence/record.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <stdexcept>

#include "corpora/given_folder.h"

namespace lossgate::ci::evidence {
namespace {

namespace fs = std::filesystem;

std::atomic<int> runs = 0;
std::atomic<bool> broken = false;

std::vector<Unit> three_units(const Effort&) {
  std::vector<Unit> units;
  for (const char* name : {"a", "b", "c"}) {
    units.push_back({name, [name]() -> nlohmann::json {
                       if (broken && *name == 'c') throw std::runtime_error("broken");
                       ++runs;
                       return {{"name", name}};
                     }});
  }
  return units;
}

const Kind kThree = {"three", "Three units.", three_units};

class RecordTest : public testing::Test {
 protected:
  void SetUp() override {
    runs = 0;
    broken = false;
  }
  void run(const Effort& effort, int jobs = 1) {
    Record record(folder_.path(), kThree, effort, "the command");
    run_kind(kThree, effort, jobs, record);
  }
  nlohmann::json stored() const {
    return nlohmann::json::parse(std::ifstream(folder_ / "three.json"));
  }

  GivenFolder folder_;
};

TEST_F(RecordTest, HoldsEveryUnitAndWhereItCameFrom) {
  run({.seed = 5, .quick = true}, 3);
  const auto content = stored();
  EXPECT_EQ(content["units"].size(), 3U);
  EXPECT_EQ(content["units"]["b"]["name"], "b");
  EXPECT_EQ(content["seed"], 5);
  EXPECT_EQ(content["effort"], "quick");
  EXPECT_EQ(content["command"], "the command");
  EXPECT_FALSE(content["commit"].get<std::string>().empty());
}

TEST_F(RecordTest, GoesOnWhereItWas) {
  broken = true;
  EXPECT_THROW(run({}), std::runtime_error);
  EXPECT_EQ(stored()["units"].size(), 2U);
  broken = false;
  run({});
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(stored()["units"].size(), 3U);
}

TEST_F(RecordTest, BeginsAnewForAnotherSeedOrEffort) {
  run({});
  run({});
  EXPECT_EQ(runs, 3);
  run({.seed = 2, .quick = true});
  EXPECT_EQ(runs, 6);
  run({.seed = 2, .quick = false});
  EXPECT_EQ(runs, 9);
}

TEST_F(RecordTest, TakesNoRecordThatIsCutShort) {
  run({});
  std::ofstream(folder_ / "three.json") << "{\"schema\": 1, \"units\": {\"a\"";
  run({});
  EXPECT_EQ(runs, 6);
}

}  // namespace
}  // namespace lossgate::ci::evidence
