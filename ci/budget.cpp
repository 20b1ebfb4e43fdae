// SPDX-License-Identifier: Apache-2.0
#include "ci/budget.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "ci/errors.h"
#include "ci/progress.h"

namespace lossgate::ci {
namespace {

/// The number at the front, which is then gone.
template <class T>
std::optional<T> taken(std::string_view& text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

double seconds_of(std::string_view unit) {
  if (unit == "s") return 1.0;
  if (unit == "m" || unit == "min") return 60.0;
  if (unit == "h") return 3600.0;
  if (unit == "d") return 86400.0;
  return 0.0;
}

}  // namespace

Budget parse_budget(std::string_view text) {
  std::string_view rest = text;
  const bool from_now = rest.starts_with('+');
  if (from_now) rest.remove_prefix(1);
  const auto number = taken<double>(rest);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  if (number && *number > 0.0 && *number <= 1e15) {
    if (rest == "cases" && *number == std::floor(*number)) {
      return {.seconds = 0.0, .cases = static_cast<std::int64_t>(*number), .from_now = from_now};
    }
    if (seconds_of(rest) > 0.0) {
      return {.seconds = *number * seconds_of(rest), .cases = 0, .from_now = from_now};
    }
  }
  throw InputError("--budget " + std::string(text) +
                   ": expected a time such as 8h, 20m or 90s, or a number such as '200000 cases'; "
                   "+8h counts from now");
}

std::string budget_text(const Budget& budget) {
  return budget.cases > 0 ? std::to_string(budget.cases) + " cases" : duration_text(budget.seconds);
}

Shard parse_shard(std::string_view text) {
  std::string_view rest = text;
  const auto index = taken<std::int64_t>(rest);
  const bool slash = rest.starts_with('/');
  if (slash) rest.remove_prefix(1);
  const auto count = slash ? taken<std::int64_t>(rest) : std::nullopt;
  if (index && count && rest.empty() && *index >= 1 && *index <= *count) return {*index, *count};
  throw InputError("--shard " + std::string(text) + ": expected I/N with 1 <= I <= N, such as 2/5");
}

}  // namespace lossgate::ci
