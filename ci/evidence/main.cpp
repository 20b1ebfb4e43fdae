// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/evidence/record.h"
#include "ci/suggestion.h"

/// Measures what verdicts are worth: one record for each kind of evidence that is named, or for
/// all. ci/evidence.sh makes a page of them.
namespace {

using namespace lossgate::ci;

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const evidence::Kind& kind : evidence::kinds()) names.push_back(kind.name);
  return names;
}

const evidence::Kind& find_kind(const std::string& name) {
  const auto& all = evidence::kinds();
  const auto at = std::ranges::find(all, name, &evidence::Kind::name);
  if (at == all.end()) throw InputError(unknown_name("kind of evidence", name, kind_names()));
  return *at;
}

std::string command_of(const std::string& kind, const evidence::Effort& effort) {
  std::string text = fmt::format("ci/evidence.sh {} {}", effort.quick ? "--quick" : "--full", kind);
  return effort.seed == 1 ? text : text + fmt::format(" --seed {}", effort.seed);
}

}  // namespace

int main(int argc, char** argv) {
  evidence::Effort effort;
  bool full = false;
  std::string out = "run/evidence";
  int jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::vector<std::string> names;
  CLI::App app("Measures what verdicts are worth; ci/evidence.sh makes a page of the records.");
  app.add_flag("--full,!--quick", full, "for a night, instead of a few minutes");
  app.add_option("--seed", effort.seed, "of the drawn cases");
  app.add_option("--jobs", jobs, "threads")->check(CLI::Range(1, 256));
  app.add_option("--out", out, "folder of the records");
  app.add_option("--config", effort.config, "a lossgate.toml, for the kind `gated`");
  app.add_option("--loss", effort.losses,
                 "ID of the kind `alarms`, more than once; all without it");
  app.add_option("--cases", effort.cases, "of each loss and dtype, at least, of the kind `alarms`")
      ->check(CLI::PositiveNumber);
  app.add_option("KIND", names, "of evidence; all without it");
  CLI11_PARSE(app, argc, argv);
  effort.quick = !full;
  if (names.empty()) names = kind_names();
  try {
    check_environment();
    for (const std::string& name : names) find_kind(name);
    for (const std::string& name : names) {
      const evidence::Kind& kind = find_kind(name);
      evidence::Record record(out, kind, effort, command_of(name, effort));
      evidence::run_kind(kind, effort, jobs, record);
      fmt::print("{}/{}.json\n", out, name);
    }
  } catch (const InputError& error) {
    fmt::print(stderr, "lossgate_evidence: {}\n", error.what());
    return static_cast<int>(Exit::usage);
  } catch (const std::exception& error) {
    fmt::print(stderr, "lossgate_evidence: {}\n", error.what());
    return static_cast<int>(Exit::broken);
  }
  return static_cast<int>(Exit::green);
}
