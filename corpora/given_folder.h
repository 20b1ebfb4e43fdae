// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace lossgate {

/// An empty folder of a test's own, which goes when the test ends. Tests run side by side, and so
/// do the suites of several trees: a name that is not drawn would be met twice.
class GivenFolder {
 public:
  GivenFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "lossgate-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::system_error(errno, std::generic_category(), name);
    path_ = name;
  }
  ~GivenFolder() { std::filesystem::remove_all(path_); }
  GivenFolder(const GivenFolder&) = delete;
  GivenFolder& operator=(const GivenFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace lossgate
