// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace lossgate::fuzz {

/// Which of several searches gets the next stretch of time: the one of which a case is likeliest to
/// show something new, as far as its last ones tell; by cases rather than seconds, or what is cheap
/// to ask would take all the time. One that has had nothing comes first, and the longer one waits
/// the sooner it comes again.
class Schedule {
 public:
  explicit Schedule(std::size_t searches) : searches_(searches) {}

  /// How many of so many cases, asked in these seconds, showed something new.
  void credit(std::size_t search, double seconds, double cases, double found);

  /// Of those that are not taken or, where all are, of all.
  std::size_t next(const std::vector<bool>& taken) const;

 private:
  struct Search {
    double cases = 0.0, found = 0.0;  ///< of late
    double last = -1.0;               ///< when it was last credited; never where negative
  };
  double promise(const Search& search) const;

  std::vector<Search> searches_;
  double clock_ = 0.0;  ///< seconds spent on all searches
};

}  // namespace lossgate::fuzz
