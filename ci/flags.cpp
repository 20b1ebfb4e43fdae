// SPDX-License-Identifier: Apache-2.0
#include "ci/flags.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

namespace lossgate::ci {
namespace {

constexpr const char* kHere = "lossgate.toml";

}  // namespace

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
