// SPDX-License-Identifier: Apache-2.0
#include "ci/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>

namespace lossgate::ci {
namespace {

constexpr const char* kHere = "lossgate.toml";

}  // namespace

std::function<std::string(const std::string&)> whole(std::uint64_t low, std::uint64_t high) {
  return [low, high](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end && low <= value && value <= high) return "";
    const bool any = high == std::numeric_limits<std::uint64_t>::max();
    return fmt::format("expected a whole number from {}{}, found '{}'", low,
                       any ? "" : fmt::format(" to {}", high), text.substr(0, 64));
  };
}

std::string unexpected_text(const CLI::App& verb, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (!word.starts_with("--") || word == "--") continue;
    std::vector<std::string> known;
    for (const CLI::Option* option : verb.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    const std::string flag = word.substr(0, std::min<std::size_t>(word.find('='), 64));
    const std::string meant = nearest(flag, known);
    return fmt::format("{} has no option '{}'; {}", verb.get_name(), flag,
                       meant.empty() ? fmt::format("see lossgate {} --help", verb.get_name())
                                     : fmt::format("did you mean '{}'?", meant));
  }
  return fmt::format("{} has no use for '{}'", verb.get_name(), words.at(0).substr(0, 64));
}

void add_names(CLI::App& verb, const char* flag, std::vector<std::string>& names, const char* text,
               const char* what) {
  verb.add_option(flag, names, text)
      ->allow_extra_args(false)
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text(fmt::format("{},...", what));
}

void add_filters(CLI::App& verb, Filters& filters) {
  add_names(verb, "--impl", filters.implementations, "Only these implementations");
  add_names(verb, "--property", filters.properties, "Only these properties");
}

void add_accepted(CLI::App& verb, std::string& waivers, std::string& baseline) {
  verb.add_option("--waivers", waivers, "File of findings accepted until a day");
  verb.add_option("--baseline", baseline, "File of findings accepted as they are");
}

void add_configs(CLI::App& verb, std::vector<std::string>& configs) {
  add_names(verb, "--config", configs, "Ask the losses that these lossgate.toml bring, no others",
            "FILE");
}

std::vector<SubjectFile> subject_files(const std::vector<std::string>& configs) {
  std::vector<SubjectFile> files;
  for (const std::string& path : configs) files.push_back(read_subject_file(path));
  return files;
}

std::vector<SubjectFile> subject_files_or_those_here(const std::vector<std::string>& configs) {
  if (!configs.empty() || !std::filesystem::exists(kHere)) return subject_files(configs);
  fmt::print(stderr, "the losses of {} are asked, since no --config names others\n", kHere);
  return subject_files({kHere});
}

}  // namespace lossgate::ci
