// SPDX-License-Identifier: Apache-2.0
#include "ci/misfits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <string_view>

#include "ci/suggestion.h"
#include "ci/tasks.h"
#include "impl/catalog.h"

namespace lossgate::ci {
namespace {

/// The parts of a fingerprint that a pattern says for certain, those before its first star: a star
/// may stand for several.
std::vector<std::string> parts_of(std::string_view pattern) {
  std::vector<std::string> parts;
  for (const auto& range : std::views::split(pattern, '|')) {
    const std::string_view part(range.begin(), range.end());
    if (part.find('*') != part.npos) break;
    parts.emplace_back(part);
  }
  return parts;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// "no property is called 'x'; did you mean 'y'?"
std::string missing(const std::string& kind, const std::string& name,
                    const std::vector<std::string>& names) {
  const std::string meant = nearest(name, names);
  return fmt::format("no {} is called '{}'{}", kind, name,
                     meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

/// What the pattern names that does not exist; empty where all of it does. Where there may be
/// others, only what looks like a slip is taken for one.
std::string misfit(std::string_view pattern, const KnownNames& known) {
  constexpr std::size_t kImplementation = 2, kProperty = 3;
  const std::vector<std::string> parts = parts_of(pattern);
  if (parts.empty()) return "";
  const auto loss = known.implementations.find(parts[0]);
  if (loss == known.implementations.end()) {
    std::vector<std::string> losses;
    for (const auto& [name, implementations] : known.implementations) losses.push_back(name);
    const bool slip = known.all || !nearest(parts[0], losses).empty();
    return slip ? missing("loss", parts[0], losses) : "";
  }
  if (parts.size() > kImplementation && !has(loss->second, parts[kImplementation])) {
    const std::string& name = parts[kImplementation];
    if (known.all || !nearest(name, loss->second).empty()) {
      return missing("implementation of " + parts[0], name, loss->second);
    }
  }
  if (parts.size() > kProperty && !has(known.properties, parts[kProperty])) {
    return missing("property", parts[kProperty], known.properties);
  }
  return "";
}

KnownNames known_names(const Filters& filters, bool with_torch) {
  KnownNames known;
  known.all = false;  // another lossgate.toml, or another build, may bring more
  for (const std::string& loss : loss_names()) known.implementations[loss];
  for (const SubjectFile& file : filters.subjects) {
    const std::vector<impl::Subject> subjects = subjects_of(file);
    for (const impl::Subject& subject : subjects) {
      auto& names = known.implementations[subject.loss];
      names.push_back(subject.name);
      for (const impl::Omission& omission : omissions_in(subjects, subject)) {
        names.push_back(omission.name);
      }
    }
  }
  for (const impl::Implementation& implementation : impl::catalog(with_torch)) {
    known.implementations[implementation.loss].push_back(implementation.name);
  }
  known.properties = property_names();
  for (const report::PropertyEntry& entry : run_properties()) {
    known.properties.push_back(entry.name);
  }
  return known;
}

}  // namespace

std::vector<std::string> misfits(const Policy& policy, const KnownNames& known) {
  std::vector<std::string> patterns;
  for (const Waiver& waiver : policy.waivers) patterns.push_back(waiver.pattern);
  for (const Accepted& accepted : policy.baseline) patterns.push_back(accepted.fingerprint);
  struct Lines {
    std::string why, first;
    std::int64_t others = 0;
  };
  std::vector<Lines> all;  // one for each name: a baseline may hold it a hundred times
  for (const std::string& pattern : patterns) {
    const std::string why = misfit(pattern, known);
    if (why.empty()) continue;
    const auto same = std::ranges::find(all, why, &Lines::why);
    if (same == all.end()) {
      all.push_back({.why = why, .first = pattern});
    } else {
      same->others += 1;
    }
  }
  std::vector<std::string> texts;
  for (const auto& [why, first, others] : all) {
    texts.push_back(fmt::format("{}{}: {}", first,
                                others == 0 ? "" : fmt::format(" and {} more", others), why));
  }
  return texts;
}

std::vector<std::string> misfits(const Policy& policy, const Filters& filters) {
  if (policy.waivers.empty() && policy.baseline.empty()) return {};
  // LibTorch takes most of a second to open, which only a name that nothing else has is worth.
  KnownNames without = known_names(filters, false);
  without.all = true;
  if (misfits(policy, without).empty()) return {};
  return misfits(policy, known_names(filters, true));
}

}  // namespace lossgate::ci
