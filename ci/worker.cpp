// SPDX-License-Identifier: Apache-2.0
#include "ci/worker.h"

#include <chrono>
#include <iostream>
#include <string>
#include <utility>

#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/preload.h"
#include "ci/protocol.h"
#include "ci/reply.h"
#include "report/record_file.h"

namespace lossgate::ci {
namespace {

/// While the same implementation is asked about the same case.
constexpr auto kSignOfLifeEvery = std::chrono::seconds(1);

/// The plan, where the subjects that are loaded already run in their processes.
PlanOptions with_hosts(PlanOptions options, const std::vector<SubjectFile>& loaded) {
  for (SubjectFile& file : options.filters.subjects) {
    for (const SubjectFile& known : loaded) {
      if (known.name == file.name) file.hosts = known.hosts;
    }
  }
  return options;
}

}  // namespace

int run_worker() {
  become_worker();
  std::string line;
  std::vector<SubjectFile> loaded;
  do {
    if (!std::getline(std::cin, line)) return static_cast<int>(Exit::usage);
  } while (answer_load(line, loaded));
  const Plan plan(with_hosts(decode_plan(line), loaded));
  Shown shown;
  BenignCases benign(plan.selection());
  while (std::getline(std::cin, line)) {
    try {
      check_environment(plan.options().filters.subjects.empty());
      std::pair<std::int64_t, std::string> said = {-1, ""};
      auto when = std::chrono::steady_clock::now();
      const auto at = [&](std::int64_t ordinal, const std::string& implementation) {
        const auto now = std::chrono::steady_clock::now();
        const bool same = ordinal == said.first && implementation == said.second;
        if (same && now - when < kSignOfLifeEvery) return;
        reply("at " + std::to_string(ordinal) + " " + implementation + "\n");
        said = {ordinal, implementation};
        when = now;
      };
      const auto record =
          run_task(plan, decode_task(line), shown, benign, at, [] { reply("met\n"); });
      reply("done " + report::to_json(record, -1));
    } catch (const std::exception& error) {
      reply("failed " + one_line(error.what()) + "\n");
    }
  }
  return static_cast<int>(Exit::green);
}

}  // namespace lossgate::ci
