// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ci/errors.h"
#include "ci/selection.h"
#include "ci/suggestion.h"

/// Flags that several verbs have.
namespace lossgate::ci {

template <class List>
std::vector<std::string> names_of(const List& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.emplace_back(name(value));
  return names;
}

template <class T>
T parsed(const std::string& kind, const std::string& text, std::optional<T> value,
         const std::vector<std::string>& known) {
  if (!value) throw InputError(unknown_name(kind, text, known));
  return *value;
}

/// A check of a flag's value: that it is a whole number between these.
std::function<std::string(const std::string&)> whole(std::uint64_t low, std::uint64_t high);

/// What is said of words that the verb has no use for: of a flag that was misspelt, rather than of
/// its value.
std::string unexpected_text(const CLI::App& verb, const std::vector<std::string>& words);

/// A flag for several names, given several times or set apart by commas. `what` is what help calls
/// one of them.
void add_names(CLI::App& verb, const char* flag, std::vector<std::string>& names, const char* text,
               const char* what = "NAME");

/// --impl and --property.
void add_filters(CLI::App& verb, Filters& filters);

/// --waivers and --baseline.
void add_accepted(CLI::App& verb, std::string& waivers, std::string& baseline);

/// --config, and what the files say.
void add_configs(CLI::App& verb, std::vector<std::string>& configs);
std::vector<SubjectFile> subject_files(const std::vector<std::string>& configs);

/// The same for what ends in a verdict, on a run or on one case: without --config those of the
/// lossgate.toml here, if there is one, and it says so. A verdict on other losses would be taken
/// for one on these.
std::vector<SubjectFile> subject_files_or_those_here(const std::vector<std::string>& configs);

}  // namespace lossgate::ci
