// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "corpora/files.h"
#include "corpora/safetensors.h"
#include "corpora/text_codec.h"
#include "reference/reference.h"
#include "report/record_file.h"

/// fuzz_seeds FOLDER CASE_FILE...: a seed corpus for each target in FOLDER/<target>, made of cases.
/// A mutation gets no further than a header where there is nothing to begin with.
namespace {

using namespace lossgate;
namespace fs = std::filesystem;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// What a brought loss's process says of itself, with the case's tensors as those of an answer.
std::string frame_of(const Case& c) {
  return text_of(corpora::write_tensors(
      {.tensors = c.batch.fields,
       .metadata = {{"file", "losses.py"},
                    {"line", "7"},
                    {"code", "def loss(log_prob, mask):"},
                    {"guilty", R"({"file":"losses.py","line":9,"text":"x = y","element":[0,1]})"},
                    {"versions", R"({"torch":"2.11"})"},
                    {"arguments", R"({"mask":"mask"})"},
                    {"options", R"(["clip_low"])"},
                    {"facts", R"(["global_token_count"])"},
                    {"reduction", "1"},
                    {"tied", R"({"clip_low":"clip_high"})"}}}));
}

/// Lines of every kind, without the checksums, which the target puts before each.
std::string journal_of(const Case& c) {
  report::RunRecord found;
  report::RecordedFinding& finding = found.findings.emplace_back();
  finding.loss = c.spec.loss;
  finding.implementation = "host";
  finding.fingerprint = c.spec.loss + "|token_mean|host|finite_forward|wrong sign|loss";
  finding.grade = "ordinary";
  finding.case_id = corpora::case_id(c);
  std::string line = report::to_json(found, -1);
  while (line.ends_with('\n')) line.pop_back();
  const std::string arm = R"("arm":")" + c.spec.loss + R"(/host")";
  return R"({"campaign":{"journal":1,"version":"0.1.0"}})"
         "\n{\"spent\":{" +
         arm + ",\"cases\":100,\"seconds\":0.5}}\n{\"kept\":{" + arm + ",\"case\":\"" +
         finding.case_id + "\",\"features\":[1,2]}}\n{\"found\":" + line +
         "}\n{\"elapsed\":1.5,\"memory_mib\":300}\n";
}

std::string benchmarks_of(const Case& c) {
  return R"({"context":{"host_name":"h","num_cpus":2},"benchmarks":[{"name":"gate/)" + c.spec.loss +
         R"(","run_type":"iteration","iterations":10,"real_time":1.5,"cpu_time":1.5,)"
         R"("time_unit":"ns","items_per_second":20000.0}]})";
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::fputs("usage: fuzz_seeds FOLDER CASE_FILE...\n", stderr);
    return 2;
  }
  const fs::path folder = words[1];
  const std::vector<std::pair<std::string, std::function<std::string(const Case&)>>> targets = {
      {"benchmarks", benchmarks_of},
      {"case",
       [](const Case& c) { return corpora::encode(c, *reference::find_signature(c.spec.loss)); }},
      {"frame", frame_of},
      {"journal", journal_of},
      {"safetensors", [](const Case& c) { return text_of(corpora::encode_safetensors(c)); }}};
  for (const char* file : std::span(words, static_cast<std::size_t>(count)).subspan(2)) {
    const Case c = corpora::read_case_file(file, reference::find_signature);
    for (const auto& [target, seed_of] : targets) {
      fs::create_directories(folder / target);
      corpora::write_file(folder / target / corpora::case_id(c), seed_of(c));
    }
  }
  return 0;
}
