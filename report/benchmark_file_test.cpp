// SPDX-License-Identifier: Apache-2.0
#include "report/benchmark_file.h"

#include <gtest/gtest.h>

#include "report/record_file.h"

namespace lossgate::report {
namespace {

constexpr std::string_view kRun = R"({
 "context": {"host_name": "secret", "num_cpus": 2},
 "benchmarks": [
  {"name": "grpo/1024", "run_name": "grpo/1024", "run_type": "iteration", "cpu_time": 9.0, "time_unit": "ns"},
  {"name": "grpo/1024", "run_name": "grpo/1024", "run_type": "iteration", "cpu_time": 5.0, "time_unit": "ns"},
  {"name": "grpo/1024_mean", "run_name": "grpo/1024", "run_type": "aggregate", "aggregate_name": "mean",
   "cpu_time": 7.0, "time_unit": "ns"},
  {"name": "grpo/1024_median", "run_name": "grpo/1024", "run_type": "aggregate", "aggregate_name": "median",
   "cpu_time": 6.5, "time_unit": "us", "items_per_second": 1.5e8},
  {"name": "jsd", "cpu_time": 3.25, "time_unit": "ms"},
  {"name": "broken", "error_occurred": true, "error_message": "no device"}
 ]
})";

std::string error_of(std::string_view text) {
  try {
    benchmarks_from_json(text, "b.json");
  } catch (const RecordError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(BenchmarkFile, TakesTheMedianWhereThereAreRepetitions) {
  const auto read = benchmarks_from_json(kRun, "b.json");
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].name, "grpo/1024");
  EXPECT_EQ(read[0].nanoseconds, 6500.0);
  EXPECT_EQ(read[0].items_per_second, 1.5e8);
  EXPECT_EQ(read[1].name, "jsd");
  EXPECT_EQ(read[1].nanoseconds, 3.25e6);
}

TEST(BenchmarkFile, TakesWhatBenchShMade) {
  const auto read = benchmarks_from_json(
      R"({"schema": 1, "benchmarks": {"jsd": {"nanoseconds": 12.5, "items_per_second": 3}}})",
      "b.json");
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].name, "jsd");
  EXPECT_EQ(read[0].nanoseconds, 12.5);
  EXPECT_EQ(read[0].items_per_second, 3.0);
}

TEST(BenchmarkFile, NamesWhatIsWrong) {
  EXPECT_EQ(error_of("{}"), "b.json: benchmarks: expected this key");
  EXPECT_EQ(error_of(R"({"benchmarks": 3})"), "b.json: benchmarks: expected a list or an object");
  EXPECT_EQ(error_of(R"({"benchmarks": [{"name": "a", "time_unit": "ns"}]})"),
            "b.json: benchmarks[0].cpu_time: expected a number");
  EXPECT_EQ(error_of(R"({"benchmarks": [{"name": "a", "cpu_time": 1, "time_unit": "h"}]})"),
            "b.json: benchmarks[0].time_unit: expected ns, us, ms or s");
  EXPECT_EQ(error_of(R"({"benchmarks": [{"name": "a", "error_occurred": 3}]})"),
            "b.json: benchmarks[0].cpu_time: expected a number");
  EXPECT_EQ(error_of(R"({"benchmarks": [3]})"), "b.json: benchmarks[0]: expected an object");
  EXPECT_EQ(error_of(R"({"benchmarks": {"a": {}}})"),
            "b.json: benchmarks.a.nanoseconds: expected a number");
  EXPECT_NE(error_of(R"({"benchmarks": [{"name": "a", "cpu_time": 1e999}]})"), "nothing");
}

TEST(BenchmarkFile, SaysWhereItWasCut) {
  for (std::size_t length = 0; length + 1 < kRun.size(); ++length) {
    const std::string error = error_of(kRun.substr(0, length));
    EXPECT_TRUE(error.starts_with("b.json: line ")) << error << " at " << length;
    EXPECT_NE(error.find("it was cut"), std::string::npos) << length;
  }
}

}  // namespace
}  // namespace lossgate::report
