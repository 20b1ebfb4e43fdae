// SPDX-License-Identifier: Apache-2.0
#include "ci/preload.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ci/decoded_line.h"
#include "ci/errors.h"
#include "ci/protocol.h"
#include "ci/reply.h"

namespace lossgate::ci {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kLoad = "load ", kLoaded = "loaded ", kRefused = "refused ";

/// Libraries are loaded in no time; a function in the process of its caller is asked from here.
bool takes_seconds(const SubjectFile& file) {
  const auto subjects = subjects_of(file);
  return !subjects.empty() && std::ranges::all_of(subjects, [](const impl::Subject& subject) {
    return subject.entry.starts_with("py:");
  });
}

/// The next line that it says, or nothing where it ends.
std::optional<std::string> next_line_of(Child& child) {
  for (;;) {
    if (auto line = child.next_line()) return line;
    if (!child.read()) return std::nullopt;
  }
}

}  // namespace

std::unique_ptr<Child> worker_that_loads(PlanOptions& options) {
  check_names(options.filters);
  const auto& files = options.filters.subjects;
  if (files.empty() || !std::ranges::all_of(files, takes_seconds)) return nullptr;
  auto child = std::make_unique<Child>();
  child->write(std::string(kLoad) + encode(options));
  const auto line = next_line_of(*child);
  if (!line) return nullptr;
  const std::string_view said = *line;
  if (said.starts_with(kRefused)) {
    throw InputError(decoded(said.substr(kRefused.size()), "a worker's refusal",
                             [](const Json& text) { return text.get<std::string>(); }));
  }
  if (!said.starts_with(kLoaded)) throw MachineError("a worker said: " + *line);
  options = decode_plan(said.substr(kLoaded.size()));
  return child;
}

bool answer_load(std::string_view line, std::vector<SubjectFile>& loaded) {
  if (!line.starts_with(kLoad)) return false;
  PlanOptions options = decode_plan(line.substr(kLoad.size()));
  try {
    for (SubjectFile& file : options.filters.subjects) {
      load_here(file, options.filters.implementations);
    }
    reply(std::string(kLoaded) + encode(options));
    loaded = std::move(options.filters.subjects);
  } catch (const InputError& error) {
    reply(std::string(kRefused) + Json(error.what()).dump() + "\n");
  }
  return true;
}

}  // namespace lossgate::ci
