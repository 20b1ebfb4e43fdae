// SPDX-License-Identifier: Apache-2.0
#include "ci/evidence/record.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <mutex>
#include <thread>

#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/progress.h"

namespace lossgate::ci::evidence {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// What must be the same for units to be of one run.
constexpr const char* kIdentity[] = {"schema", "kind", "commit", "seed", "effort", "torch"};

json stored(const fs::path& file) {
  std::ifstream in(file);
  return in ? json::parse(in, nullptr, false) : json();
}

}  // namespace

Record::Record(const fs::path& folder, const Kind& kind, const Effort& effort,
               const std::string& command)
    : file_(folder / (kind.name + ".json")) {
  const report::Environment environment = read_environment();
  content_ = {{"schema", 1},
              {"kind", kind.name},
              {"statement", kind.statement},
              {"commit", commit()},
              {"command", command},
              {"seed", effort.seed},
              {"effort", effort.quick ? "quick" : "full"},
              {"instruction_set", environment.instruction_set},
              {"torch", environment.torch},
              {"seconds", 0.0},
              {"units", json::object()}};
  fs::create_directories(folder);
  const json before = stored(file_);
  if (!before.is_object()) return;
  for (const char* key : kIdentity) {
    if (before.value(key, json()) != content_[key]) return;
  }
  content_["units"] = before.at("units");
  content_["seconds"] = before.at("seconds");
}

void Record::add(const std::string& unit, json counted, double seconds) {
  content_["units"][unit] = std::move(counted);
  content_["seconds"] = content_["seconds"].get<double>() + seconds;
  const Clock::duration pause = std::max<Clock::duration>(std::chrono::seconds(5), 100 * keeping_);
  if (Clock::now() - kept_ > pause) keep();
}

/// A file is whole or not there.
void Record::keep() {
  const Clock::time_point begun = Clock::now();
  const fs::path fresh = file_.string() + ".new";
  std::ofstream out(fresh);
  out << content_.dump(1) << '\n';
  out.close();
  if (!out) throw MachineError("cannot write " + fresh.string());
  fs::rename(fresh, file_);
  kept_ = Clock::now();
  keeping_ = kept_ - begun;
}

void run_kind(const Kind& kind, const Effort& effort, int jobs, Record& record) {
  std::vector<Unit> units = kind.units(effort);
  std::erase_if(units, [&](const Unit& unit) { return record.has(unit.name); });
  Progress progress(static_cast<std::int64_t>(units.size()), 0, kind.name + ": units");
  std::atomic<std::size_t> next = 0;
  std::mutex one_at_a_time;
  std::exception_ptr failure;
  const auto work = [&] {
    using Clock = std::chrono::steady_clock;
    for (std::size_t i = next++; i < units.size(); i = next++) {
      try {
        const auto start = Clock::now();
        json counted = units[i].run();
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        const std::scoped_lock lock(one_at_a_time);
        record.add(units[i].name, std::move(counted), seconds);
        progress.add_cases(1);
        progress.show();
      } catch (...) {
        const std::scoped_lock lock(one_at_a_time);
        failure = std::current_exception();
        next = units.size();
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < jobs; ++i) workers.emplace_back(work);
  }
  progress.finish();
  record.keep();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lossgate::ci::evidence
