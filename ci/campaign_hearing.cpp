// SPDX-License-Identifier: Apache-2.0
// What the processes of a campaign say of their searches.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ci/campaign_worker.h"
#include "ci/protocol.h"
#include "ci/stint.h"
#include "report/record_file.h"

namespace lossgate::ci {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);

/// What a campaign that is over waits for a violation to be explained, and one that is called off.
constexpr double kSecondsToExplain = 15.0, kSecondsToExplainAtOnce = 3.0;

}  // namespace

void Campaign::wait() {
  std::vector<Child*> children;
  for (const auto& worker : workers_) children.push_back(worker->child.get());
  for (const std::size_t i : speaking(children, kTick)) listen(*workers_[i]);
}

void Campaign::listen(Worker& worker) {
  const bool open = worker.child->read();
  while (worker.child) {
    const auto line = worker.child->next_line();
    if (!line) break;
    hear(worker, *line);
  }
  if (!open && worker.child) failed(worker, "does_not_crash", worker.child->end());
}

void Campaign::hear(Worker& worker, const std::string& line) {
  const std::string_view text = line;
  if (text == "ready") {
    worker.ready = true;
    failed_starts_.worked();
    worker.seconds_to_start = since(worker.started);
    worker.stretch = std::max(kLeastStretch, kStretchPerStart * worker.seconds_to_start);
    worker.stretch_began = Clock::now();
  } else if (text.starts_with("part ")) {
    worker.met.reset();
    take_part(worker, decode_record(text.substr(5)));
  } else if (text.starts_with("met ")) {
    worker.met = decode_record(text.substr(4));
  } else if (text == "turn") {
    worker.turn_over = true;
  } else if (text == "spent") {
    settle(worker);
    worker.child.reset();
  } else if (text.starts_with("kept ")) {
    take_kept(worker, decode_kept(text.substr(5)));
  } else if (text.starts_with("long ")) {
    worker.long_case.reset();
    if (text != "long end") worker.long_case = std::stoll(line.substr(5));
    // One that ends the process is not asked again.
    long_from_[worker.arm] = worker.long_case ? *worker.long_case + 1 : -1;
    folder_.asked_long(arms_[worker.arm].name(), worker.long_case.value_or(-1));
  } else {
    retire(worker, text);
  }
}

/// What was met when time was over is told before its process ends, in the end as it was met.
void Campaign::hear_out(const std::atomic<bool>& interrupted) {
  const auto over = Clock::now();
  const auto patience = [&] { return interrupted ? kSecondsToExplainAtOnce : kSecondsToExplain; };
  for (bool any = true; any && since(over) < patience();) {
    any = std::ranges::any_of(workers_, [](const auto& worker) { return is_explaining(*worker); });
    if (any) wait();
    for (auto& worker : workers_) hear_all(*worker);
  }
  for (auto& worker : workers_) take_met(*worker);
}

/// Enters what its process was looking into, if anything: whether it was.
bool Campaign::take_met(Worker& worker) {
  auto met = std::exchange(worker.met, std::nullopt);
  if (met) take_part(worker, std::move(*met));
  return met.has_value();
}

/// Whether it has met a violation that it has not told of.
bool Campaign::is_explaining(const Worker& worker) {
  return worker.child && worker.under_way.explaining();
}

/// Whatever it has said so far.
void Campaign::hear_all(Worker& worker) {
  constexpr std::chrono::milliseconds kNow(0);
  while (worker.child) {
    Child* const child = worker.child.get();
    if (speaking({&child, 1}, kNow).empty()) return;
    listen(worker);
  }
}

}  // namespace lossgate::ci
