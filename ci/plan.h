// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ci/selection.h"
#include "fuzz/long_case.h"
#include "fuzz/profile.h"
#include "properties/property.h"
#include "regressions/expectation.h"
#include "report/run_record.h"

namespace lossgate::ci {

/// From so many drawn cases on long ones are asked, too (rule E10): they take no longer then.
inline constexpr std::int64_t kWithLongCases = 100;

struct PlanOptions {
  Filters filters;
  fuzz::Profile profile = fuzz::Profile::hostile;
  std::uint64_t seed = 1;
  /// Drawn per loss and dtype; from kWithLongCases on, one case besides along each axis that is
  /// long in production (fuzz/domains/shape.h), of the loss's dtypes in turn.
  std::int64_t cases = 200;
  std::vector<std::string> corpora;  ///< folders of .case files
  /// Whether a violation is looked into: why it is, and on which simplest case. Its verdict, its
  /// grade and its fingerprint are the same without.
  bool causes = true;
};

struct PlannedCase {
  const reference::Loss* loss = nullptr;
  Dtype dtype = Dtype::f32;
  Case c;
  std::string file;  ///< of a stored case
  std::vector<regressions::Expectation> expected;
  bool benign = false;
  std::optional<Axis> long_axis;  ///< along which it is as long as production's
  bool outside_contract = false;  ///< of a brought subject, whose callers promise better
  /// The one implementation that is asked, where the signature is that of a brought subject; null
  /// asks all.
  const impl::Implementation* only = nullptr;
};

/// Whether the property is a question for the case: of a long one those that ask about length.
inline bool is_asked(const properties::Property& property, const PlannedCase& planned) {
  return !planned.long_axis || property.of_long;
}

/// All cases of a run, numbered: first the stored ones, then those drawn for each loss and dtype.
/// The same options give the same cases in every process.
class Plan {
 public:
  explicit Plan(
      const PlanOptions& options);  ///< reads the corpora; throws InputError or FormatError

  const PlanOptions& options() const { return options_; }
  const Selection& selection() const { return selection_; }
  std::int64_t size() const;
  std::int64_t long_cases() const;  ///< of them, the last ones
  /// Losses that have long cases, of which fewer are drawn than go with them.
  const std::set<std::string>& without_long_cases() const { return without_long_cases_; }
  /// Stored cases of losses that are asked which fit no brought subject, but for those of the
  /// standard folders, many of which are meant for others.
  const std::vector<report::UnfitCases>& unfit() const { return unfit_; }
  /// Folders that have some, and nothing that is asked.
  const std::vector<std::string>& idle_corpora() const { return idle_corpora_; }
  PlannedCase at(std::int64_t ordinal) const;

  /// Whether a fault of length has long cases to show on.
  bool can_show(const impl::Implementation& variant) const;

  /// The draws on which a faulty implementation is tried, hostile whatever the profile: those of
  /// its loss's dtypes in turn, then the long ones.
  std::int64_t hostile_draws(const impl::Implementation& variant) const;
  PlannedCase hostile_at(const impl::Implementation& variant, std::int64_t draw) const;
  /// The place of the draw among those of its dtype; long ones come after all of them.
  std::int64_t hostile_index(const impl::Implementation& variant, std::int64_t draw) const;

 private:
  struct Stream {
    const reference::Loss* loss;
    Dtype dtype;
    const impl::Implementation* only = nullptr;
    std::int64_t most_cases = 0;              ///< that its subject is drawn; 0: no limit
    std::optional<fuzz::Length> length = {};  ///< of the one case that it has then
  };
  std::int64_t cases_of(const Stream& stream) const;
  void add_corpus(const std::string& folder);
  /// Why no brought subject of its loss can be asked the case, if so. One of ours is asked under
  /// the options that a subject fixes; whoever stored a case of his own meant the ones that it has.
  std::optional<std::string> add_stored(PlannedCase planned, bool is_ours);
  void add_streams();
  void add_long_streams(const std::vector<Stream>& of_one_loss);
  PlannedCase drawn(const Stream& stream, fuzz::Profile profile, std::int64_t index) const;
  std::vector<Stream> streams_of(const impl::Implementation& variant, bool long_ones) const;

  PlanOptions options_;
  Selection selection_;
  std::vector<PlannedCase> stored_;
  std::vector<Stream> streams_;  ///< the long ones last
  std::set<std::string> without_long_cases_;
  std::vector<report::UnfitCases> unfit_;
  std::vector<std::string> idle_corpora_;
};

/// What the case says must be violated, of known properties and implementations; throws FormatError
/// that names the file.
std::vector<regressions::Expectation> expectations_of(const Case& c, const std::string& file);

/// The name by which records call a folder: a path may tell more of the machine than they should.
std::string corpus_name(const std::string& folder);

/// The folders `regressions` and `corpora/seeds` of the source tree in which the command was built
/// or is run, or of the wheel; none of a command that lies by itself.
std::vector<std::string> standard_corpora();

}  // namespace lossgate::ci
