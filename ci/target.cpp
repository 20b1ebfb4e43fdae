// SPDX-License-Identifier: Apache-2.0
#include "ci/target.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "ci/errors.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

/// Why no file can be written there, or empty. Folders that are missing are made later.
std::error_code obstacle(const fs::path& path, const fs::file_status& there) {
  if (fs::is_directory(there)) return std::make_error_code(std::errc::is_a_directory);
  const bool is_new = !fs::exists(there) || fs::is_regular_file(there);
  fs::path at = path;
  int mode = W_OK;
  if (is_new) {  // a file beside it takes its name
    std::error_code ignored;
    if (fs::is_symlink(path, ignored)) at = fs::weakly_canonical(path, ignored);
    at = fs::absolute(at, ignored).parent_path();
    while (at.has_relative_path() && !fs::exists(at, ignored)) at = at.parent_path();
    if (!fs::is_directory(at, ignored)) return std::make_error_code(std::errc::not_a_directory);
    mode = W_OK | X_OK;
  }
  if (::access(at.c_str(), mode) == 0) return {};
  return {errno, std::generic_category()};
}

}  // namespace

void check_target(const fs::path& path, Present present, std::string_view flag) {
  // Where they lead is the shell's affair.
  for (const std::string_view stream : {"/dev/", "/proc/self/fd/"}) {
    if (path.string().starts_with(stream)) return;
  }
  std::error_code ignored;
  const fs::file_status there = fs::status(path, ignored);
  const bool would_go = fs::is_regular_file(there) || fs::is_directory(there);
  if (would_go && present == Present::refuse) {
    throw InputError(
        fmt::format("{} is there already; say --overwrite, or {} FILE", path.string(), flag));
  }
  if (const std::error_code why = obstacle(path, there)) {
    throw MachineError(fmt::format("{}: cannot be written: {}", path.string(), why.message()));
  }
}

}  // namespace lossgate::ci
