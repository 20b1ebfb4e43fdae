// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ci/history.h"
#include "ci/journal.h"
#include "fuzz/features.h"
#include "reference/spec/case.h"
#include "report/run_record.h"

namespace lossgate::ci {

/// The state of a campaign on disk: `journal`, `corpus/<loss>/<id>.case` and `findings/<id>.case`.
/// Every file is written whole or not at all, and before the line that speaks of it. Findings on
/// one case have one file, whose story tells of each.
class CampaignFolder {
 public:
  /// Reads what is there, or begins a campaign with this seed. Throws InputError where a newer
  /// version wrote it, MachineError where nothing can be written.
  explicit CampaignFolder(std::filesystem::path path, std::optional<std::uint64_t> seed = {});

  const std::filesystem::path& path() const { return path_; }
  const History& history() const { return history_; }

  /// Some of the cases kept of a loss, other ones for another seed.
  std::vector<std::string> corpus_of(const std::string& loss, std::uint64_t seed) const;

  void keep(const Case& c, const LossSignature& signature, const std::string& arm,
            const std::vector<fuzz::Feature>& features);
  void found(const report::RunRecord& findings);  ///< with the texts of their cases
  /// Of what was asked again: it holds, and its case joins the corpus; or it fails, and `finding`,
  /// with the text of its case, is what is found now.
  void mended(const report::Mended& mended);
  void found_again(const std::string& fingerprint, report::RecordedFinding finding);
  void spent(const std::string& arm, std::int64_t cases, double seconds);
  void asked_long(const std::string& arm, std::int64_t next);  ///< Spent::long_from
  /// The time since the last time, by the clock on the wall, and what memory is taken now.
  void elapsed(double seconds, std::int64_t memory_mib);

  /// Adds what another folder holds; `findings` also say which of its findings are mended.
  void take_over(const std::filesystem::path& folder, const History& history,
                 const report::RunRecord& findings);

  /// Writes what waits; false where the disk takes no more, say.
  bool flush();
  std::size_t waiting() const { return waiting_.size() + journal_->waiting(); }
  std::int64_t lost() const { return lost_; }  ///< findings and kept cases that cannot wait, too
  const std::string& trouble() const { return trouble_; }

 private:
  struct Waiting {
    std::filesystem::path file;  ///< empty: none
    std::string text, line;
  };
  /// Counts since the journal was last told; they add up, so they take no room while they wait.
  struct Owed {
    std::map<std::string, Spent> spent;  ///< by arm
    double seconds = 0.0;
    std::int64_t memory_mib = 0;
  };
  void write(Waiting waiting);
  void settle();

  std::filesystem::path path_;
  History history_;
  std::unique_ptr<Journal> journal_;
  std::deque<Waiting> waiting_;
  Owed owed_;
  std::int64_t lost_ = 0;
  std::string trouble_;
};

}  // namespace lossgate::ci
