// SPDX-License-Identifier: Apache-2.0
#include "properties/split_cause.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "properties/agreement.h"
#include "properties/reading.h"
#include "reference/spec/even_parts.h"

namespace lossgate::properties {
namespace {

using Rows = std::vector<std::int64_t>;

/// What explains an entry is nearer to it than the whole batch's is by millions.
constexpr double kNearer = 64.0;
constexpr const char* kScope = "reduction over the wrong scope";
constexpr const char* kMeans = "mean of means";
constexpr const char* kRanks = "rank average";
constexpr const char* kEmptyDivisor = "empty divisor";
constexpr const char* kDisagrees = "disagrees with the formula";

class Experiments {
 public:
  Experiments(Evaluation& evaluation, const Place& place)
      : evaluation_(evaluation), place_(place), split_(evaluation.study().split()) {
    everything_.resize(static_cast<std::size_t>(split_.shape[Axis::sequences]));
    std::iota(everything_.begin(), everything_.end(), 0);
    whole_ = entry_of(evaluation.actual(), everything_);
    given_ = entry_of(evaluation.actual(kSplit), everything_);
  }

  std::string cause() {
    if (is_no_number_of_nothing()) return kEmptyDivisor;
    std::vector<Rows> parts, ranks(static_cast<std::size_t>(split_.split.world));
    for (const Split::Part& part : split_.split.parts) {
      parts.push_back(part.sequences);
      Rows& own = ranks[static_cast<std::size_t>(part.rank)];
      own.insert(own.end(), part.sequences.begin(), part.sequences.end());
    }
    if (const std::optional<double> wrong = wrong_on_one_rank()) {
      return averages() && is_mean_of(parts, *wrong) ? name_of_means(parts) : kScope;
    }
    // Where the whole is a multiple, or one rank has all tokens, its own count is the right one.
    const double world = split_.split.world;
    const bool multiple = explains(whole_ / world, given_) || explains(whole_ * world, given_);
    return !multiple && is_mean_of(ranks, given_) ? name_of_means(ranks) : kRanks;
  }

 private:
  /// The entry at fault as the result for these sequences has it: 0 where they have no part in it,
  /// NaN where there is no such output.
  double entry_of(const LossResult& result, const Rows& rows) const {
    const Tensor* tensor = result.refusal ? nullptr : result.find(place_.output);
    if (!tensor) return std::numeric_limits<double>::quiet_NaN();
    const std::int64_t index = index_of(tensor->size(), rows);
    return index < 0 ? 0.0 : tensor->at(index);
  }

  /// Where the entry stands in an output of that size for these sequences; -1 where it does not.
  std::int64_t index_of(std::int64_t size, const Rows& rows) const {
    if (place_.sequence < 0) return place_.index;
    const auto at = std::ranges::find(rows, place_.sequence);
    if (at == rows.end()) return -1;
    const std::int64_t each = size / static_cast<std::int64_t>(rows.size());
    return place_.index + (at - rows.begin() - place_.sequence) * each;
  }

  /// Of what is the mean of these batches. What is another number in one of them by itself, or in
  /// the whole, no average has made [a batch that has no gradient: 0 is the mean of zeros].
  std::string name_of_means(const std::vector<Rows>& batches) const {
    const auto is_off = [this](const Rows& rows) { return is_off_unsplit(rows); };
    return is_off(everything_) || std::ranges::any_of(batches, is_off) ? kDisagrees : kMeans;
  }

  /// Whether the entry is another number than the formula's, and no rounding, where these sequences
  /// are the batch.
  bool is_off_unsplit(const Rows& rows) const {
    if (rows.empty()) return false;
    const CaseStudy& study = evaluation_.study();
    const auto reading = Reading::of(study.loss(), evaluation_.implementation(),
                                     batch_of(study.signature(), split_, rows));
    return reading && std::ranges::any_of(reading->entries(), [&](const ReadEntry& e) {
             const OutputInfo& output = reading->outputs()[e.output];
             return output.name == place_.output && e.wrong() &&
                    e.index == index_of(element_count(output.extents), rows) &&
                    kNearer * e.distance() > std::fabs(e.expected);
           });
  }

  /// Whether it is no number, as that of a part without a token is by itself.
  bool is_no_number_of_nothing() {
    if (std::isfinite(given_)) return false;
    return std::ranges::any_of(split_.split.parts, [&](const Split::Part& part) {
      if (part.sequences.empty()) return false;
      const Case c = batch_of(evaluation_.signature(), split_, part.sequences);
      const std::vector<bool> valid = valid_positions(evaluation_.signature(), c);
      if (std::ranges::find(valid, true) != valid.end()) return false;
      const LossResult own = evaluation_.call(c);
      const Tensor* loss = own.refusal ? nullptr : own.find("loss");
      return loss && !std::isfinite(loss->at(0));
    });
  }

  /// The entry with the same parts on one rank, where that is no more the whole batch's, and
  /// callers may have them there (rule C9).
  std::optional<double> wrong_on_one_rank() {
    if (split_.split.world == 1) return given_;
    Case c = split_;
    c.split.world = 1;
    for (Split::Part& part : c.split.parts) part.rank = 0;
    if (!has_even_parts(evaluation_.signature(), c)) return std::nullopt;
    CaseStudy study(evaluation_.study().loss(), c);
    const LossResult result = evaluation_.call(c);
    if (malformed(study, result)) return std::nullopt;
    const Outcome outcome = compare(
        {.study = study, .arithmetic = evaluation_.arithmetic(), .actual = result, .split = true});
    if (!outcome.violation) return std::nullopt;
    return entry_of(result, everything_);
  }

  /// Whether there are numbers to average: identifiers are none.
  bool averages() const {
    return std::ranges::any_of(evaluation_.signature().fields,
                               [](const Field& field) { return field.dtypes.empty(); });
  }

  /// Whether the entry is the mean of what the batches give by themselves, those without a token
  /// counted or not, or the sum where nobody divides.
  bool is_mean_of(const std::vector<Rows>& batches, double entry) {
    double sum = 0.0, live = 0.0;
    for (const Rows& rows : batches) {
      const Case c = batch_of(evaluation_.signature(), split_, rows);
      const std::vector<bool> valid = valid_positions(evaluation_.signature(), c);
      if (std::ranges::find(valid, true) == valid.end()) continue;
      sum += entry_of(evaluation_.call(c), rows);
      live += 1.0;
    }
    const auto all = static_cast<double>(batches.size());
    return live > 1.0 &&
           (explains(sum / all, entry) || explains(sum / live, entry) || explains(sum, entry));
  }

  /// Far nearer to what was given than the whole batch's is.
  bool explains(double value, double entry) const {
    return std::fabs(value - entry) <= std::fabs(whole_ - entry) / kNearer;
  }

  Evaluation& evaluation_;
  const Place& place_;
  const Case& split_;
  Rows everything_;
  double whole_ = 0.0, given_ = 0.0;
};

}  // namespace

std::string cause_of_split(Evaluation& evaluation, const Place& place) {
  return Experiments(evaluation, place).cause();
}

}  // namespace lossgate::properties
