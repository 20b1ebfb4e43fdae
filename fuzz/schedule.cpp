// SPDX-License-Identifier: Apache-2.0
#include "fuzz/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lossgate::fuzz {
namespace {

/// Seconds of its own after which half of what a search showed is forgotten.
constexpr double kHalfLife = 20.0;

/// How many seconds, for each search that there is, weigh as much as something new in every case.
constexpr double kPatience = 60.0;

}  // namespace

void Schedule::credit(std::size_t search, double seconds, double cases, double found) {
  Search& one = searches_[search];
  const double kept = std::exp2(-seconds / kHalfLife);
  one.cases = one.cases * kept + cases;
  one.found = one.found * kept + found;
  clock_ += seconds;
  one.last = clock_;
}

double Schedule::promise(const Search& search) const {
  if (search.last < 0.0) return std::numeric_limits<double>::infinity();
  const double waited = (clock_ - search.last) / static_cast<double>(searches_.size());
  return (search.found + 1.0) / (search.cases + 1.0) + waited / kPatience;
}

std::size_t Schedule::next(const std::vector<bool>& taken) const {
  const bool any = std::ranges::find(taken, false) == taken.end();
  std::size_t best = searches_.size();
  for (std::size_t i = 0; i < searches_.size(); ++i) {
    if (taken[i] && !any) continue;
    if (best == searches_.size() || promise(searches_[i]) > promise(searches_[best])) best = i;
  }
  return best;
}

}  // namespace lossgate::fuzz
