// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/groups.h"

#include <algorithm>

namespace lossgate {
namespace {

/// How many have the first one's number.
std::int64_t members_of_first(const Tensor& group) {
  std::int64_t members = 0;
  for (std::int64_t s = 0; s < group.size(); ++s) {
    members += group.integer_at(s) == group.integer_at(0);
  }
  return members;
}

}  // namespace

std::int64_t members_of_even_groups(std::int64_t count, std::int64_t wanted) {
  for (std::int64_t members = std::min(wanted, count); members >= 2; --members) {
    if (count % members == 0) return members;
  }
  for (std::int64_t members = 2; members < count; ++members) {
    if (count % members == 0) return members;
  }
  return count;
}

bool are_even_groups(const Tensor& group) {
  if (group.size() == 0) return true;
  const std::int64_t members = members_of_first(group);
  if (members < 2 || group.size() % members != 0) return false;
  for (std::int64_t s = 0; s < group.size(); ++s) {
    if (group.integer_at(s) != s / members) return false;
  }
  return true;
}

void make_groups_even(Tensor& group) {
  if (group.size() == 0) return;
  const std::int64_t members = members_of_even_groups(group.size(), members_of_first(group));
  for (std::int64_t s = 0; s < group.size(); ++s) group.set(s, static_cast<double>(s / members));
}

}  // namespace lossgate
