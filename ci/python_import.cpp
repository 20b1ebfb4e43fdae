// SPDX-License-Identifier: Apache-2.0
#include "ci/python_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <vector>

#include "ci/python_text.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

/// What a test calls its own.
constexpr std::string_view kVariables[] = {"torch", "math",    "loss",   "losses", "result",
                                           "parts", "results", "actual", "rows",   "return_"};

/// FILE.py or PACKAGE.MODULE, and the name in it.
struct Entry {
  std::string place, name;

  explicit Entry(const impl::Subject& subject) {
    const std::size_t colon = subject.entry.rfind(':');
    place = subject.entry.substr(3, colon - 3);
    name = subject.entry.substr(colon + 1);
  }
  bool is_file() const { return place.ends_with(".py"); }
  /// A class, where the name is one of its methods.
  std::string top() const { return name.substr(0, name.find('.')); }
};

std::string alias(const Brought& brought, const std::string& top) {
  const bool taken = std::ranges::find(kVariables, top) != std::end(kVariables) ||
                     brought.loss.signature.find_field(top) != nullptr;
  return taken ? top + "_under_test" : top;
}

bool is_identifier(std::string_view text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text.front())) &&
         std::ranges::all_of(text,
                             [](unsigned char c) { return c == '_' || std::isalnum(c) != 0; });
}

/// Where the worker looks, in its order.
std::vector<fs::path> searched(const impl::Subject& subject) {
  std::vector<fs::path> folders = {subject.folder};
  for (const std::string& more : subject.path) folders.push_back(subject.folder / more);
  return folders;
}

/// The folder among those that are searched in which one of these is, or nothing.
fs::path holder(const impl::Subject& subject, const std::vector<std::string>& any) {
  for (const fs::path& folder : searched(subject)) {
    for (const std::string& name : any) {
      if (fs::exists(folder / name)) return fs::weakly_canonical(folder / name).parent_path();
    }
  }
  return {};
}

/// A path from the folder as Python has it.
std::string python_path(const fs::path& path, const fs::path& folder, Written written) {
  const std::string relative = python_string(fs::relative(path, folder).string());
  return written == Written::as_lines
             ? relative
             : "str(pathlib.Path(__file__).resolve().parent / " + relative + ")";
}

}  // namespace

std::string python_import(const Brought& brought, const std::string& folder, Written written) {
  const Entry entry(brought.subject);
  const std::string first = entry.place.substr(0, entry.place.find('.'));
  const fs::path from = entry.is_file() ? holder(brought.subject, {entry.place})
                                        : holder(brought.subject, {first, first + ".py"});
  const std::string top = entry.top(), own = alias(brought, top);
  const std::string stem = fs::path(entry.place).stem().string();
  const fs::path here = fs::weakly_canonical(folder.empty() ? "." : folder);
  const std::string needs = written == Written::as_file ? "import pathlib, " : "import ";
  if (entry.is_file() && !is_identifier(stem)) {
    const fs::path file = from / fs::path(entry.place).filename();
    return fmt::format("{}runpy\n{} = runpy.run_path({})[\"{}\"]", needs, own,
                       python_path(file, here, written), top);
  }
  std::string text;
  if (!from.empty() && from != here) {
    text = fmt::format("{}sys; sys.path.insert(0, {})\n", needs, python_path(from, here, written));
  }
  text += fmt::format("from {} import {}", entry.is_file() ? stem : entry.place, top);
  return own == top ? text : text + " as " + own;
}

std::string python_name(const Brought& brought) {
  const Entry entry(brought.subject);
  const std::string top = entry.top();
  return alias(brought, top) + entry.name.substr(top.size());
}

}  // namespace lossgate::ci
