// SPDX-License-Identifier: Apache-2.0
#include "report/benchmark_file.h"

#include <algorithm>

#include "report/parsed_json.h"
#include "report/record_file.h"

namespace lossgate::report {
namespace {

using Json = nlohmann::ordered_json;

struct Reader {
  std::string_view file;

  [[noreturn]] void fail(const std::string& path, const std::string& expected) const {
    throw RecordError(std::string(file) + ": " + path + ": expected " + expected);
  }
  std::string text(const Json& row, const char* key, const std::string& path) const {
    if (!row.is_object()) fail(path, "an object");
    const auto found = row.find(key);
    if (found == row.end() || !found->is_string()) fail(path + "." + key, "a string");
    return found->get<std::string>();
  }
  double number(const Json& row, const char* key, const std::string& path) const {
    if (!row.is_object()) fail(path, "an object");
    const auto found = row.find(key);
    if (found == row.end() || !found->is_number()) fail(path + "." + key, "a number");
    return found->get<double>();
  }
  double rate(const Json& row, const char* key) const {
    const auto found = row.find(key);
    return found != row.end() && found->is_number() ? found->get<double>() : 0.0;
  }
  double nanoseconds_in(const std::string& unit, const std::string& path) const {
    constexpr std::pair<std::string_view, double> kUnits[] = {
        {"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const auto known = std::ranges::find(kUnits, unit, &std::pair<std::string_view, double>::first);
    if (known == std::end(kUnits)) fail(path + ".time_unit", "ns, us, ms or s");
    return known->second;
  }

  // One row of Google Benchmark's list: a repetition, or an aggregate of several.
  void add(const Json& row, const std::string& path, std::vector<Benchmark>& benchmarks) const {
    if (row.is_object() && row.contains("error_occurred") && row["error_occurred"] == true) return;
    const bool aggregate = row.is_object() && row.contains("aggregate_name");
    if (aggregate && text(row, "aggregate_name", path) != "median") return;
    const std::string key = row.is_object() && row.contains("run_name") ? "run_name" : "name";
    const Benchmark read = {.name = text(row, key.c_str(), path),
                            .nanoseconds = number(row, "cpu_time", path) *
                                           nanoseconds_in(text(row, "time_unit", path), path),
                            .items_per_second = rate(row, "items_per_second"),
                            .bytes_per_second = rate(row, "bytes_per_second")};
    const auto known = std::ranges::find(benchmarks, read.name, &Benchmark::name);
    if (known == benchmarks.end()) {
      benchmarks.push_back(read);
    } else if (aggregate) {
      *known = read;
    }
  }
};

}  // namespace

std::vector<Benchmark> benchmarks_from_json(std::string_view text, std::string_view file_name) {
  const Reader reader{file_name};
  const Json json = parsed_json(text, file_name, "Google Benchmark");
  if (!json.is_object() || !json.contains("benchmarks")) reader.fail("benchmarks", "this key");
  const Json& rows = json["benchmarks"];
  std::vector<Benchmark> benchmarks;
  if (rows.is_array()) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      reader.add(rows[i], "benchmarks[" + std::to_string(i) + "]", benchmarks);
    }
  } else if (rows.is_object()) {  // ci/bench.sh's, by name
    for (const auto& [name, row] : rows.items()) {
      const double nanoseconds = reader.number(row, "nanoseconds", "benchmarks." + name);
      benchmarks.push_back({name, nanoseconds, reader.rate(row, "items_per_second"),
                            reader.rate(row, "bytes_per_second")});
    }
  } else {
    reader.fail("benchmarks", "a list or an object");
  }
  return benchmarks;
}

std::vector<Benchmark> read_benchmarks(const std::filesystem::path& file) {
  return benchmarks_from_json(read_text(file, "what Google Benchmark writes as JSON"),
                              file.string());
}

}  // namespace lossgate::report
