// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "properties/probes.h"
#include "properties/weights.h"
#include "reference/spec/even_parts.h"

namespace lossgate::properties {
namespace {

constexpr const char *kScaledTwice = "scaled twice", *kRankAverage = "rank average";

/// Unequal parts, of one rank or of two, where the callers have such.
Split plain_split(int world) {
  if (world == 1) return {.world = 1, .parts = {{0, {0, 1, 2}}, {0, {3}}}};
  return {.world = world, .parts = {{0, {0}}, {1, {1}}, {0, {2, 3}}}};
}

/// What one reading of a split case shows.
class SplitReading {
 public:
  explicit SplitReading(const Reading& reading)
      : reading_(reading), split_(reading.given().split), factors_(row_factors(reading)) {}

  Opinion opinion() const {
    if (factors_.empty()) return std::nullopt;
    if (drops_rows()) {
      return Diagnosis{"remainder dropped", 0.95, "some sequences of the split batch are lost"};
    }
    const double world = split_.world;
    if (is_mean_of_means(false) || (world > 1.0 && is_mean_of_means(true))) {
      return Diagnosis{"mean of means", 0.95, "each part is divided by its own count"};
    }
    if (everywhere([&](std::size_t row) { return 1.0 / parts_of(rank_of(row)); })) {
      return Diagnosis{kScaledTwice, 0.95, "each part is divided by the number of parts as well"};
    }
    if (everywhere([&](std::size_t) { return world; }) ||
        everywhere([&](std::size_t) { return 1.0 / world; })) {
      return Diagnosis{kRankAverage, 0.95, "the result is a multiple by the number of ranks"};
    }
    return std::nullopt;
  }

 private:
  template <class Predicted>
  bool everywhere(Predicted&& predicted) const {
    bool moved = false;
    for (const auto& [row, factor] : factors_) {
      if (!factor.is(predicted(row))) return false;
      moved |= !factor.is(1.0);
    }
    return moved;
  }

  bool drops_rows() const {
    bool lost = false;
    for (const auto& [row, factor] : factors_) {
      if (!factor.is(0.0) && !factor.is(1.0)) return false;
      lost |= factor.is(0.0);
    }
    return lost;
  }

  /// Whether the counts are those of the part, or of the rank, in which a sequence is; means are
  /// summed or averaged.
  bool is_mean_of_means(bool by_rank) const {
    const LossSpec& spec = reading_.given().spec;
    const Reduction reduction = declared_reduction(spec);
    const BatchCounts whole(reading_.study());
    const double world = split_.world;
    for (const bool over_parts : {true, false}) {
      for (const bool over_ranks : {true, false}) {
        const auto predicted = [&](std::size_t row) {
          std::vector<std::int64_t> own;
          double parts = 0.0;
          const int rank = rank_of(row);
          for (const Split::Part& part : split_.parts) {
            if (part.rank != rank) continue;
            parts += 1.0;
            if (by_rank || holds(part, row)) {
              own.insert(own.end(), part.sequences.begin(), part.sequences.end());
            }
          }
          const BatchCounts local(reading_.study(), own);
          return token_weight(spec, reduction, local, row) /
                 token_weight(spec, reduction, whole, row) / (over_parts ? parts : 1.0) /
                 (over_ranks ? world : 1.0);
        };
        // Where ranks alone are averaged it is the ranks, not the means.
        if (!everywhere(predicted)) continue;
        const bool local_counts = reduction != Reduction::sum && reduction != Reduction::none &&
                                  reduction != Reduction::sum_over_items;
        if (local_counts || (over_parts && !by_rank)) return true;
      }
    }
    return false;
  }

  static bool holds(const Split::Part& part, std::size_t row) {
    return std::ranges::find(part.sequences, static_cast<std::int64_t>(row)) !=
           part.sequences.end();
  }

  double parts_of(int rank) const {
    return static_cast<double>(std::ranges::count(split_.parts, rank, &Split::Part::rank));
  }

  /// Every sequence is in a part.
  int rank_of(std::size_t row) const {
    const auto has_it = [row](const Split::Part& part) { return holds(part, row); };
    return std::ranges::find_if(split_.parts, has_it)->rank;
  }

  const Reading& reading_;
  const Split& split_;
  RowFactors factors_;
};

/// The answer to a split case where it is wrong, and the answer to the whole is right: without the
/// other terms where that is wrong, too.
std::optional<Reading> wrong_split(const Suspect& suspect, Case c, int world) {
  std::optional<Reading> wrong;
  for (const bool alone : {false, true}) {
    if (alone && suspect.signature().coefficient.empty()) break;
    if (alone) c.spec.set(suspect.signature().coefficient, 0.0);
    c.split = {};
    if (!is_right(suspect.read(c))) continue;
    c.split = plain_split(world);
    make_parts_even(suspect.signature(), c);
    if (auto reading = suspect.read(c); is_wrong(reading)) wrong = std::move(reading);
  }
  return wrong;
}

/// The same of a plain case; a mean over tokens shows more than a sum.
std::optional<Reading> wrong_split(const Suspect& suspect, int world) {
  const auto c = suspect.plain_case();
  if (!c || c->shape[Axis::sequences] < 4) return std::nullopt;
  const auto& reductions = suspect.signature().reductions;
  if (std::ranges::find(reductions, Reduction::token_mean) != reductions.end()) {
    Case mean = *c;
    mean.spec.reduction = Reduction::token_mean;
    if (auto wrong = wrong_split(suspect, std::move(mean), world)) return wrong;
  }
  return wrong_split(suspect, *c, world);
}

}  // namespace

Opinion probe_split(Suspect& suspect) {
  if (!suspect.signature().splittable) return std::nullopt;
  // The whole batch may have been right by its numbers alone.
  if (auto opinion = probe_weights(suspect)) return opinion;
  Opinion on_one_rank;
  for (const int world : {1, 2}) {
    if (world > 1 && !suspect.signature().shardable) break;
    const auto reading = wrong_split(suspect, world);
    if (!reading) continue;
    if (auto opinion = other_row(*reading)) return opinion;
    auto opinion = SplitReading(*reading).opinion();
    if (world == 1) {
      if (!opinion || opinion->cause != kScaledTwice) return opinion;
      on_one_rank = std::move(opinion);  // its own count is that of all there
      continue;
    }
    // What is wrong of one rank is no average over ranks.
    if (opinion && !(on_one_rank && opinion->cause == kRankAverage)) return opinion;
    if (on_one_rank) return on_one_rank;
    return Diagnosis{kRankAverage, 0.7, "micro-batches of one rank are right"};
  }
  return on_one_rank;
}

}  // namespace lossgate::properties
