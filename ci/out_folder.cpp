// SPDX-License-Identifier: Apache-2.0
#include "ci/out_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "ci/errors.h"
#include "ci/from_here.h"
#include "corpora/files.h"
#include "corpora/story.h"
#include "reference/reference.h"
#include "report/finding_text.h"
#include "report/junit.h"
#include "report/record_file.h"
#include "report/sarif.h"
#include "report/summary.h"

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

struct View {
  const char* file;
  std::string (*text)(const report::PageSource&);
};

constexpr View kViews[] = {
    {"report.html", report::page},
    {"report.sarif", [](const report::PageSource& s) { return report::sarif(s.record()); }},
    {"junit.xml", [](const report::PageSource& s) { return report::junit(s.record()); }},
    {"summary.md", report::summary}};

void remove_earlier(const fs::path& folder) {
  fs::remove(folder / "run.json");
  for (const View& view : kViews) fs::remove(folder / view.file);
  if (!fs::is_directory(folder / "findings")) return;
  std::vector<fs::path> findings;
  for (const auto& entry : fs::directory_iterator(folder / "findings")) {
    if (is_finding(entry.path())) findings.push_back(entry.path());
  }
  for (const fs::path& file : findings) fs::remove(file);
}

/// Writes the cases of the findings; those of one case have one file, whose story tells of each.
void write_cases(const fs::path& folder, report::RunRecord& record) {
  std::map<std::string, std::string> texts;
  for (report::RecordedFinding& finding : record.findings) {
    if (finding.case_text.empty()) continue;
    std::string& text = texts[finding.case_file];
    text = text.empty() ? finding.case_text : corpora::with_story_of(text, finding.case_text);
    finding.case_text.clear();
  }
  for (const auto& [file, text] : texts) corpora::write_file(folder / file, text);
}

}  // namespace

void check_out(const fs::path& folder) {
  std::error_code none;
  for (fs::path part; const fs::path& name : folder) {
    part /= name;
    if (!fs::exists(part, none) || fs::is_directory(part, none)) continue;
    throw InputError("--out " + folder.string() + ": " + part.string() + " is a file, no folder");
  }
}

bool holds_campaign(const fs::path& folder) { return fs::exists(folder / "journal"); }

void refuse_record_of_gate(const fs::path& folder) {
  if (holds_campaign(folder) || !fs::exists(folder / "run.json")) return;
  throw InputError(folder.string() +
                   " holds the record of a gate, no campaign: name another folder with --out");
}

void prepare_out(const fs::path& folder) {
  try {
    fs::create_directories(folder);
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

bool holds_findings_of(const fs::path& folder, const std::vector<std::string>& corpora) {
  std::error_code error;
  const fs::path findings = folder / "findings";
  return std::ranges::any_of(corpora, [&](const std::string& corpus) {
    return std::ranges::any_of(corpora::list_case_files(corpus), [&](const fs::path& file) {
      return is_finding(file) && fs::equivalent(file.parent_path(), findings, error);
    });
  });
}

void say_folder(const fs::path& folder, report::RunRecord& record) {
  const fs::path near = from_here(folder);
  const bool below = !near.is_absolute() && *near.begin() != "..";
  for (report::RecordedFinding& finding : record.findings) {
    // Flags name files from here, so cases are found from here, too.
    const bool with_folder = below || !finding.source_flags.empty();
    finding.repro = report::repro_line(finding, with_folder ? near.string() : "");
  }
}

void write_out(const fs::path& folder, report::RunRecord record) {
  try {
    write_cases(folder, record);
    corpora::write_file(folder / "run.json", report::to_json(record));
  } catch (const fs::filesystem_error& error) {
    fail(folder, error.code().message());
  }
  say_folder(folder, record);
  report::PageSource source;
  source.cases = stored_cases(folder, record);
  source.runs.push_back({run_name(folder), std::move(record)});
  write_views(folder, source);
}

std::string run_name(const fs::path& folder) {
  return fs::absolute(folder / "run.json").lexically_normal().parent_path().filename().string();
}

std::map<std::string, report::StoredCase> stored_cases(const fs::path& folder,
                                                       const report::RunRecord& record) {
  std::map<std::string, report::StoredCase> cases;
  for (const report::RecordedFinding& finding : record.findings) {
    if (finding.case_file.empty() || !is_finding(finding.case_file)) continue;
    const LossSignature* signature = reference::find_signature(finding.loss);
    if (!signature) continue;
    try {
      cases[finding.case_file] = {signature, corpora::read_case_file(folder / finding.case_file,
                                                                     reference::find_signature)};
    } catch (const corpora::FormatError&) {  // the finding is shown without it
    }
  }
  return cases;
}

void write_views(const fs::path& folder, const report::PageSource& source) {
  try {
    for (const View& view : kViews) corpora::write_file(folder / view.file, view.text(source));
  } catch (const fs::filesystem_error& error) {
    fail(folder, error.code().message());
  }
}

std::string views_in(const fs::path& folder) {
  std::string list;
  for (const View& view : kViews) {
    list += (list.empty() ? "" : ", ") + (folder / view.file).string();
  }
  return list;
}

}  // namespace lossgate::ci
