// SPDX-License-Identifier: Apache-2.0
#include "ci/campaign_folder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "ci/environment.h"
#include "ci/errors.h"
#include "corpora/case_id.h"
#include "corpora/files.h"
#include "corpora/story.h"
#include "corpora/text_codec.h"
#include "fuzz/choices.h"
#include "report/record_file.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// More is not kept in memory when the disk is full.
constexpr std::size_t kMostWaiting = 10'000;

/// No more of the corpus is asked again when a search goes on: its time is for what is new.
constexpr std::size_t kMostOfCorpus = 128;

/// The text of a case, with what the story of the file that is there says of other findings on it.
std::string beside_what_is_there(const fs::path& file, const std::string& text) {
  std::error_code none;
  if (!fs::exists(file, none)) return text;
  try {
    return corpora::with_story_of(corpora::read_text(file), text);
  } catch (const corpora::FormatError&) {  // it cannot be read
    return text;
  }
}

}  // namespace

CampaignFolder::CampaignFolder(fs::path path, std::optional<std::uint64_t> seed)
    : path_(std::move(path)) {
  try {
    fs::create_directories(path_);
    journal_ = std::make_unique<Journal>(path_ / "journal");  // from here on nobody else writes it
    history_ = read_history(path_ / "journal");
  } catch (const fs::filesystem_error& error) {
    throw MachineError("--out " + path_.string() +
                       ": nothing can be written there: " + error.code().message());
  }
  if (!history_.begun) {
    Json begun = {{"journal", kJournalVersion}, {"version", version()}};
    if (seed) begun["seed"] = *seed;
    journal_->append(Json{{"campaign", std::move(begun)}}.dump());
    if (!journal_->flush()) {
      throw MachineError("--out " + path_.string() +
                         ": nothing can be written there: " + journal_->trouble());
    }
  }
}

std::vector<std::string> CampaignFolder::corpus_of(const std::string& loss,
                                                   std::uint64_t seed) const {
  std::error_code none;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path_ / "corpus" / loss, none)) {
    if (entry.path().extension() == ".case") files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  const std::size_t count = std::min(kMostOfCorpus, files.size());
  fuzz::Choices choices(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const auto other = choices.integer(static_cast<std::int64_t>(i), std::ssize(files) - 1);
    std::swap(files[i], files[static_cast<std::size_t>(other)]);
  }
  files.resize(count);
  return files;
}

void CampaignFolder::keep(const Case& c, const LossSignature& signature, const std::string& arm,
                          const std::vector<fuzz::Feature>& features) {
  const std::string id = corpora::case_id(c);
  const Json line = {{"kept", {{"case", id}, {"arm", arm}, {"features", features}}}};
  write({path_ / "corpus" / signature.id / (id + ".case"), corpora::encode(c, signature),
         line.dump()});
}

void CampaignFolder::found(const report::RunRecord& findings) {
  for (report::RecordedFinding finding : findings.findings) {
    if (finding.case_text.empty()) continue;  // one more like one that is there
    report::RunRecord record;
    const std::string text = std::exchange(finding.case_text, {});
    const fs::path file = path_ / finding.case_file;
    record.findings.push_back(std::move(finding));
    const Json line = {{"found", Json::parse(report::to_json(record, -1))}};
    write({file, text, line.dump()});
  }
}

void CampaignFolder::mended(const report::Mended& mended) {
  const fs::path file = path_ / mended.case_file, corpus = path_ / "corpus" / mended.loss;
  std::error_code none;  // the case stays among the findings, too
  fs::create_directories(corpus, none);
  fs::copy_file(file, corpus / file.filename(), fs::copy_options::skip_existing, none);
  report::RunRecord record;
  record.mended.push_back(mended);
  write({{}, {}, Json{{"mended", Json::parse(report::to_json(record, -1))}}.dump()});
  mend(history_.findings, mended);
}

void CampaignFolder::found_again(const std::string& fingerprint, report::RecordedFinding finding) {
  std::string text = std::exchange(finding.case_text, {});
  fs::path file = path_ / finding.case_file;
  std::error_code none;
  if (fs::exists(file, none)) file.clear();  // it tells of the finding already
  report::RunRecord record;
  record.findings.push_back(std::move(finding));
  const Json line = {{"again", fingerprint}, {"found", Json::parse(report::to_json(record, -1))}};
  write({std::move(file), std::move(text), line.dump()});
  replace(history_.findings, fingerprint, record);
}

void CampaignFolder::spent(const std::string& arm, std::int64_t cases, double seconds) {
  if (cases == 0) return;
  owed_.spent[arm].cases += cases;
  owed_.spent[arm].seconds += seconds;
}

void CampaignFolder::asked_long(const std::string& arm, std::int64_t next) {
  write({{}, {}, Json{{"long", {{"arm", arm}, {"from", next}}}}.dump()});
}

void CampaignFolder::elapsed(double seconds, std::int64_t memory_mib) {
  owed_.seconds += seconds;
  owed_.memory_mib = memory_mib;
  flush();
}

void CampaignFolder::take_over(const fs::path& folder, const History& history,
                               const report::RunRecord& findings) {
  for (const auto& [arm, spent] : history.spent) {
    this->spent(arm, spent.cases, spent.seconds);
    write({{}, {}, Json{{"kept", {{"case", ""}, {"arm", arm}, {"features", spent.seen}}}}.dump()});
    if (spent.long_from != 0) asked_long(arm, spent.long_from);
  }
  elapsed(history.seconds, 0);
  found(findings);
  for (const report::Mended& mended : findings.mended) {
    std::error_code none;
    fs::create_directories(path_ / "findings", none);
    fs::copy_file(folder / mended.case_file, path_ / mended.case_file,
                  fs::copy_options::skip_existing, none);
    this->mended(mended);
  }
  if (!fs::exists(folder / "corpus")) return;
  fs::copy(folder / "corpus", path_ / "corpus",
           fs::copy_options::recursive | fs::copy_options::skip_existing);
}

void CampaignFolder::write(Waiting waiting) {
  if (waiting_.size() >= kMostWaiting) {
    ++lost_;
    return;
  }
  waiting_.push_back(std::move(waiting));
  flush();
}

bool CampaignFolder::flush() {
  while (!waiting_.empty()) {
    Waiting& next = waiting_.front();
    try {
      if (!next.file.empty()) {
        corpora::write_file(next.file, beside_what_is_there(next.file, next.text));
      }
    } catch (const fs::filesystem_error& error) {
      trouble_ = error.code().message();
      return false;
    }
    journal_->append(std::move(next.line));
    waiting_.pop_front();
  }
  const bool done = journal_->flush();
  if (done) settle();
  trouble_ = journal_->trouble();
  return journal_->waiting() == 0;
}

/// Once for all the time in which nothing could be written.
void CampaignFolder::settle() {
  const Owed owed = std::exchange(owed_, {});
  for (const auto& [arm, own] : owed.spent) {
    journal_->append(
        Json{{"spent", {{"arm", arm}, {"cases", own.cases}, {"seconds", own.seconds}}}}.dump());
  }
  if (owed.seconds == 0.0) return;
  journal_->append(Json{{"elapsed", owed.seconds}, {"memory_mib", owed.memory_mib}}.dump());
}

}  // namespace lossgate::ci
