// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "ci/explain.h"
#include "ci/verbs.h"

/// Flags of the verbs that are about one file.
namespace lossgate::ci {

/// Makes a verb of the command: its name, what it is for, and what it does.
using AddVerb =
    std::function<CLI::App*(const char* name, const char* text, std::function<int()> action)>;

/// What the flags of the verbs on one file are read into.
struct FileFlags {
  ReplayOptions replay;
  MinimiseOptions minimise;
  ShareOptions share;
  ExplainOptions explain;
  std::vector<std::string> configs;
};

/// replay, minimise, share, explain.
void add_file_verbs(const AddVerb& verb, FileFlags& flags);

}  // namespace lossgate::ci
