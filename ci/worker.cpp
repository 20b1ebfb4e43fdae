// SPDX-License-Identifier: Apache-2.0
#include "ci/worker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <string>

#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/protocol.h"
#include "report/record_file.h"

namespace lossgate::ci {
namespace {

void reply(const std::string& line) {
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t written = ::write(kReplyDescriptor, line.data() + sent, line.size() - sent);
    if (written < 0 && errno != EINTR) throw MachineError("the gate no longer listens");
    if (written > 0) sent += static_cast<std::size_t>(written);
  }
}

std::string one_line(std::string text) {
  for (char& letter : text) letter = letter == '\n' ? ' ' : letter;
  return text;
}

}  // namespace

int run_worker() {
  // The gate decides what a Ctrl-C means; without a gate there is nothing to work for.
  std::signal(SIGINT, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // What a subject's process writes on whatever it finds open is no answer of ours.
  ::fcntl(kReplyDescriptor, F_SETFD, FD_CLOEXEC);
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
