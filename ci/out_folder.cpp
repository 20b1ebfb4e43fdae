// SPDX-License-Identifier: Apache-2.0
#include "ci/out_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "ci/errors.h"
#include "corpora/files.h"
#include "report/junit.h"
#include "report/record_file.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

/// What a large record with its findings needs.
constexpr std::uintmax_t kRoom = std::uintmax_t{16} << 20;

[[noreturn]] void fail(const fs::path& folder, const std::string& reason) {
  throw MachineError("--out " + folder.string() + ": nothing can be written there: " + reason);
}

// Only what write_out names: 16 hexadecimal digits and .case.
bool is_finding(const fs::path& file) {
  const std::string stem = file.stem().string();
  return file.extension() == ".case" && stem.size() == 16 &&
         std::ranges::all_of(stem, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

void remove_earlier(const fs::path& folder) {
  for (const char* name : {"run.json", "junit.xml"}) fs::remove(folder / name);
  if (!fs::is_directory(folder / "findings")) return;
  std::vector<fs::path> findings;
  for (const auto& entry : fs::directory_iterator(folder / "findings")) {
    if (is_finding(entry.path())) findings.push_back(entry.path());
  }
  for (const fs::path& file : findings) fs::remove(file);
}

}  // namespace

void prepare_out(const fs::path& folder) {
  try {
    fs::create_directories(folder);
    if (!fs::is_directory(folder)) fail(folder, "it is no folder");
    const std::uintmax_t room = fs::space(folder).available;
    if (room < kRoom) {
      fail(folder, "the disk has " + std::to_string(room >> 20) + " MiB left, expected " +
                       std::to_string(kRoom >> 20));
    }
    const fs::path probe = folder / ".lossgate-probe";
    corpora::write_file(probe, std::string(1 << 20, ' '));
    fs::remove(probe);
    remove_earlier(folder);
  } catch (const fs::filesystem_error& error) {
    fail(folder, error.code().message());
  }
}

void write_out(const fs::path& folder, report::RunRecord& record) {
  try {
    for (report::RecordedFinding& finding : record.findings) {
      if (!finding.case_text.empty()) {
        corpora::write_file(folder / finding.case_file, finding.case_text);
      }
      finding.case_text.clear();
    }
    corpora::write_file(folder / "junit.xml", report::junit(record));
    corpora::write_file(folder / "run.json", report::to_json(record));
  } catch (const fs::filesystem_error& error) {
    fail(folder, error.code().message());
  }
}

}  // namespace lossgate::ci
