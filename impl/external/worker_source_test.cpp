// SPDX-License-Identifier: Apache-2.0
#include "impl/external/worker_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace lossgate::impl {
namespace {

namespace fs = std::filesystem;

const fs::path kPython = fs::path(LOSSGATE_SOURCE_DIR) / "impl/external/python";

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// lossgate/worker/__init__.py is the module lossgate.worker.
std::string module_name(const fs::path& path) {
  const fs::path relative = path.lexically_relative(kPython).replace_extension();
  std::string name = (relative.stem() == "__init__" ? relative.parent_path() : relative).string();
  std::ranges::replace(name, '/', '.');
  return name;
}

TEST(WorkerSource, IsThatOfTheFiles) {
  std::map<std::string, std::string> files, built;
  files["lossgate"] = content(kPython / "lossgate/__init__.py");
  for (const auto& entry : fs::directory_iterator(kPython / "lossgate/worker")) {
    if (entry.path().extension() == ".py") files[module_name(entry.path())] = content(entry.path());
  }
  for (const auto& [name, text] : worker_modules()) built[std::string(name)] = text;
  EXPECT_EQ(built, files);
  EXPECT_TRUE(built.contains("lossgate.worker") && built.contains("lossgate.worker.__main__"));
  EXPECT_EQ(worker_boot(), content(kPython / "boot.py"));
}

TEST(WorkerSource, IsStartedByWhatAnArgumentHolds) {
  EXPECT_LT(worker_boot().size(), 128u << 10);  // Linux: 32 pages for one argument
}

}  // namespace
}  // namespace lossgate::impl
