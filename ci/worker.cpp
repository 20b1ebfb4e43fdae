// SPDX-License-Identifier: Apache-2.0
#include "ci/worker.h"

#include <iostream>
#include <string>

#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/protocol.h"
#include "ci/reply.h"
#include "report/record_file.h"

namespace lossgate::ci {

int run_worker() {
  become_worker();
  std::string line;
  if (!std::getline(std::cin, line)) return static_cast<int>(Exit::usage);
  const Plan plan(decode_plan(line));
  Shown shown;
  while (std::getline(std::cin, line)) {
    try {
      check_environment();
      const auto at = [](std::int64_t ordinal, const std::string& implementation) {
        reply("at " + std::to_string(ordinal) + " " + implementation + "\n");
      };
      const auto record = run_task(plan, decode_task(line), shown, at);
      reply("done " + report::to_json(record, -1));
    } catch (const std::exception& error) {
      reply("failed " + one_line(error.what()) + "\n");
    }
  }
  return static_cast<int>(Exit::green);
}

}  // namespace lossgate::ci
