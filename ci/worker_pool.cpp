// SPDX-License-Identifier: Apache-2.0
#include "ci/worker_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <optional>

#include "ci/errors.h"
#include "ci/protocol.h"

namespace lossgate::ci {
namespace {

using Clock = std::chrono::steady_clock;

/// A task in which more calls crash or hang than this is given up, and the run is not whole.
constexpr std::size_t kMostSkips = 64;

constexpr auto kTick = std::chrono::milliseconds(200);

struct Worker {
  std::unique_ptr<Child> child;
  std::optional<Task> task;
  InHand in_hand;
  Clock::time_point since;  ///< the last sign of life
};

report::RunRecord trouble(const std::string& text) {
  report::RunRecord record;
  record.troubles.push_back(text);
  return record;
}

std::string task_name(const Task& task) {
  return task.variant.empty()
             ? fmt::format("cases {} to {}", task.begin, task.end - 1)
             : fmt::format("faulty implementation {} of {}", task.variant, task.loss);
}

class Pool {
 public:
  Pool(const Plan& plan, std::vector<Task> tasks, const PoolOptions& options,
       const Collect& collect, const Tick& tick, std::unique_ptr<Child> first)
      : plan_(plan),
        waiting_(tasks.begin(), tasks.end()),
        options_(options),
        collect_(collect),
        tick_(tick),
        workers_(std::min(static_cast<std::size_t>(options.jobs), tasks.size())) {
    if (first && !workers_.empty()) hire(workers_.front(), std::move(first));
  }

  void run(const std::atomic<bool>& interrupted) {
    while (!interrupted && give_work()) {
      wait();
      for (Worker& worker : workers_) {
        const std::chrono::duration<double> silent = Clock::now() - worker.since;
        if (worker.task && silent.count() > patience()) hung(worker);
      }
      tell(nullptr);
    }
  }

 private:
  double patience() const { return patience_with(plan_.selection(), options_.timeout_s); }

  /// False when everything is done.
  bool give_work() {
    bool busy = false;
    for (Worker& worker : workers_) {
      if (!worker.task && !waiting_.empty()) give(worker);
      busy |= worker.task.has_value();
    }
    return busy;
  }

  void hire(Worker& worker, std::unique_ptr<Child> child) {
    worker.child = std::move(child);
    worker.child->write(encode(plan_.options()));
  }

  void give(Worker& worker) {
    if (!worker.child) hire(worker, std::make_unique<Child>());
    worker.task = std::move(waiting_.front());
    waiting_.pop_front();
    worker.in_hand = {};
    worker.since = Clock::now();
    worker.child->write(encode(*worker.task));
  }

  void wait() {
    std::vector<Child*> children;
    for (const Worker& worker : workers_) children.push_back(worker.child.get());
    for (const std::size_t i : speaking(children, kTick)) listen(workers_[i]);
  }

  void listen(Worker& worker) {
    const bool open = worker.child->read();
    while (const auto line = worker.child->next_line()) hear(worker, *line);
    if (!open) crashed(worker);
  }

  void hear(Worker& worker, const std::string& line) {
    if (!worker.task) return;
    worker.since = Clock::now();
    const std::string_view text = line;
    if (text.starts_with("at ")) {
      const std::size_t blank = text.find(' ', 3);
      std::int64_t ordinal = -1;
      std::from_chars(text.data() + 3, text.data() + blank, ordinal);
      worker.in_hand.announced(ordinal, text.substr(blank + 1));
      return;
    }
    if (text == "met") {
      worker.in_hand.finding = true;
      return;
    }
    failed_starts_.worked();
    if (text.starts_with("done ")) {
      collect_(decode_record(text.substr(5)));
    } else {
      collect_(trouble(fmt::format("{}: {}", task_name(*worker.task), text)));
    }
    const Task done = *std::exchange(worker.task, std::nullopt);
    tell(&done);
  }

  void crashed(Worker& worker) {
    const std::string how = worker.child->end();
    worker.child.reset();
    if (worker.task) retry(worker, "does_not_crash", how);
  }

  void hung(Worker& worker) {
    worker.child->end();
    worker.child.reset();
    retry(worker, "does_not_hang", fmt::format("no answer within {} s", patience()));
  }

  /// Enters what happened and puts the task back without the call in which it happened.
  void retry(Worker& worker, const std::string& property, const std::string& cause) {
    Task task = *std::exchange(worker.task, std::nullopt);
    const InHand& call = worker.in_hand;
    if (call.ordinal < 0) {
      failed_starts_.failed(cause);
    } else {
      task.skips.emplace_back(call.ordinal, call.implementation);
      if (!plan_.selection().brought.empty()) {
        collect_(trouble(fmt::format("case {}, {}: {}{}", call.ordinal, call.implementation,
                                     kOwnProcess, cause)));
      } else if (task.variant.empty()) {
        report::RunRecord record;
        const PlannedCase planned = case_of(plan_, task, call.ordinal);
        const auto* implementation =
            plan_.selection().find_implementation(planned.c.spec.loss, call.implementation);
        add_failure(record, planned, call.ordinal, *implementation, property, cause);
        collect_(record);
      }
    }
    if (task.skips.size() > kMostSkips) {
      collect_(trouble(task_name(task) + ": given up, since too many calls crash or hang"));
      tell(&task);
    } else {
      waiting_.push_front(std::move(task));
    }
  }

  void tell(const Task* done) {
    tick_(done, std::ranges::count_if(workers_, [](const Worker& worker) {
            return worker.task && worker.in_hand.finding;
          }));
  }

  const Plan& plan_;
  std::deque<Task> waiting_;
  const PoolOptions& options_;
  const Collect& collect_;
  const Tick& tick_;
  std::vector<Worker> workers_;
  FailedStarts failed_starts_;
};

}  // namespace

void run_tasks(const Plan& plan, std::vector<Task> tasks, const PoolOptions& options,
               const Collect& collect, const Tick& tick, const std::atomic<bool>& interrupted,
               std::unique_ptr<Child> first) {
  if (options.jobs > 0) {
    Pool(plan, std::move(tasks), options, collect, tick, std::move(first)).run(interrupted);
    return;
  }
  Shown shown;
  BenignCases benign(plan.selection());
  for (const Task& task : tasks) {
    if (interrupted) return;
    try {
      InHand in_hand;
      const auto announce = [&](std::int64_t ordinal, const std::string& implementation) {
        in_hand.announced(ordinal, implementation);
        tick(nullptr, in_hand.finding);
      };
      collect(run_task(plan, task, shown, benign, announce, [&] { in_hand.finding = true; }));
    } catch (const std::exception& error) {  // what was found by others stands
      collect(trouble(fmt::format("{}: {}", task_name(task), error.what())));
    }
    tick(&task, 0);
  }
}

}  // namespace lossgate::ci
