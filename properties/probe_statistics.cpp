// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "properties/agreement.h"
#include "properties/case_facts.h"
#include "properties/probes.h"
#include "properties/transforms.h"

/// Experiments on operations, which take means and deviations of what they are given.
namespace lossgate::properties {
namespace {

using Index = std::int64_t;

/// Each sequence beside its like: no number is alone.
Case doubled(const LossSignature& signature, const Case& c) {
  std::vector<Index> rows;
  for (Index s = 0; s < c.shape[Axis::sequences]; ++s) rows.insert(rows.end(), 2, s);
  return batch_of(signature, c, rows);
}

/// Several groups side by side, as many members of each, in the order of their numbers; nothing
/// where that is the same batch, or there are none.
std::optional<Case> in_equal_blocks(const LossSignature& signature, const Case& c) {
  const Field* field = field_of(signature, Quantity::group);
  if (!field) return std::nullopt;
  std::map<Index, std::vector<Index>> members;
  const Tensor& group = c.batch.at(field->name);
  for (Index s = 0; s < group.size(); ++s) members[group.integer_at(s)].push_back(s);
  std::erase_if(members, [](const auto& one) { return one.second.size() < 2; });
  if (members.size() < 2) return std::nullopt;  // a single one tells nothing
  std::size_t fewest = members.begin()->second.size();
  for (const auto& [number, rows] : members) fewest = std::min(fewest, rows.size());
  std::vector<Index> rows;
  for (const auto& [number, own] : members) {
    rows.insert(rows.end(), own.begin(), own.begin() + static_cast<std::ptrdiff_t>(fewest));
  }
  const bool same = std::ranges::is_sorted(rows) && std::ssize(rows) == group.size();
  return same ? std::nullopt : std::optional(batch_of(signature, c, rows));
}

/// Two groups of two, side by side or one within the other.
std::optional<Case> in_pairs(const Suspect& suspect, bool side_by_side) {
  const Field* field = field_of(suspect.signature(), Quantity::group);
  std::optional<Case> c = suspect.plain_case({.padding = false});
  if (!field || !c) return std::nullopt;
  Tensor& group = c->batch.at(field->name);
  for (Index s = 0; s < group.size(); ++s) {
    group.set(s, static_cast<double>(side_by_side ? s / 2 : s % 2));
  }
  return c;
}

/// The numbers that count of one field, by where they stand.
struct Numbers {
  Tensor& tensor;
  std::vector<Index> at;
};

/// Field by field, what the operation is given.
std::vector<Numbers> numbers_that_count(const LossSignature& signature, Case& c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  std::vector<Index> at;
  for (Index i = 0; i < std::ssize(valid); ++i) {
    if (valid[static_cast<std::size_t>(i)]) at.push_back(i);
  }
  std::vector<Numbers> fields;
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (!is_float(tensor.dtype) || tensor.size() != std::ssize(valid)) continue;
    fields.push_back({tensor, at});
  }
  return fields;
}

double largest_of(const Numbers& numbers) {
  double largest = 0.0;
  for (const Index i : numbers.at) largest = std::max(largest, std::fabs(numbers.tensor.at(i)));
  return largest;
}

/// Where the numbers of a field stand that are compared with each other: those of a group, or all.
std::map<Index, std::vector<Index>> peers_of(const LossSignature& signature, const Case& c,
                                             const Numbers& numbers) {
  const Field* group = field_of(signature, Quantity::group);
  const Index each = numbers.tensor.size() / std::max<Index>(c.shape[Axis::sequences], 1);
  std::map<Index, std::vector<Index>> peers;
  for (const Index i : numbers.at) {
    peers[group ? c.batch.at(group->name).integer_at(i / each) : 0].push_back(i);
  }
  return peers;
}

/// Every number of the operation less the mean of those that it is compared with.
Case centred(const LossSignature& signature, const Case& c) {
  Case result = c;
  for (const Numbers& numbers : numbers_that_count(signature, result)) {
    Tensor& tensor = numbers.tensor;
    for (const auto& [number, own] : peers_of(signature, c, numbers)) {
      double sum = 0.0;
      for (const Index i : own) sum += tensor.at(i);
      const double mean = sum / static_cast<double>(own.size());
      for (const Index i : own) tensor.set(i, tensor.at(i) - mean);
    }
  }
  return result;
}

/// Whether squares of the numbers may lose as much beside those of the distances between them: what
/// is accepted, some times more where numbers are as many times larger than distances. Of 0 and 1
/// that is next to nothing. Where all is lost any number may come of it.
bool may_be_lost_to_squares(const LossSignature& signature, const Reading& wrong) {
  constexpr double kMargin = 16.0;
  Case c = wrong.given();
  double times = 0.0, off = 0.0, size = 0.0, accepted = 0.0;
  for (const Numbers& numbers : numbers_that_count(signature, c)) {
    for (const auto& [number, own] : peers_of(signature, c, numbers)) {
      double low = HUGE_VAL, high = -HUGE_VAL;
      for (const Index i : own) {
        low = std::min(low, numbers.tensor.at(i));
        high = std::max(high, numbers.tensor.at(i));
      }
      const double largest = std::max(std::fabs(low), std::fabs(high));
      if (own.size() < 2 || largest == 0.0) continue;
      times = std::max(times, kMargin * static_cast<double>(own.size()) * largest / (high - low));
    }
  }
  for (const ReadEntry& e : wrong.entries()) {
    off = std::max(off, e.distance());
    accepted = std::max(accepted, e.accepted);
    size = std::max(size, std::fabs(e.expected));
  }
  return std::min(off, size) <= times * accepted;
}

/// Where a number that counts is 0, every number farther from 0 by the largest of them, so that
/// none is; else nothing.
std::optional<Case> beyond_zero(const LossSignature& signature, const Case& c) {
  Case result = c;
  bool any = false;
  for (const Numbers& numbers : numbers_that_count(signature, result)) {
    Tensor& tensor = numbers.tensor;
    const double largest = largest_of(numbers);
    for (const Index i : numbers.at) {
      any |= tensor.at(i) == 0.0;
      tensor.set(i, tensor.at(i) + 2.0 * largest);
    }
  }
  return any ? std::optional(std::move(result)) : std::nullopt;
}

/// Every number so much smaller, by a power of two, that the squares of all distances between them
/// have a sum: what cancels does so there, too. Nothing where they have one as they are.
std::optional<Case> with_room_for_squares(const LossSignature& signature, const Reading& reading) {
  Case result = reading.given();
  const std::vector<Numbers> fields = numbers_that_count(signature, result);
  double largest = 0.0, count = 1.0;
  for (const Numbers& numbers : fields) {
    largest = std::max(largest, largest_of(numbers));
    count = std::max(count, static_cast<double>(numbers.at.size()));
  }
  const double room = std::sqrt(max_finite(reading.arithmetic().compute) / count) / 2.0;
  if (!(largest > room) || !std::isfinite(largest)) return std::nullopt;
  for (const auto& [tensor, at] : fields) {
    for (const Index i : at) tensor.set(i, std::ldexp(tensor.at(i), std::ilogb(room / largest)));
  }
  return result;
}

/// With the first number that counts at every position that does not; nothing where all count.
std::optional<Case> with_nothing_masked(const LossSignature& signature, const Case& c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  if (signature.mask.empty() || std::ranges::find(valid, false) == valid.end()) return std::nullopt;
  Case result = c;
  for (const auto& [tensor, at] : numbers_that_count(signature, result)) {
    for (Index i = 0; i < tensor.size() && !at.empty(); ++i) {
      if (!valid[static_cast<std::size_t>(i)]) tensor.set(i, tensor.at(at.front()));
    }
  }
  Tensor& mask = result.batch.at(signature.mask);
  for (Index i = 0; i < mask.size(); ++i) mask.set(i, 1.0);
  return result;
}

Diagnosis by_position() {
  return {"pairing by position", 0.95,
          "right where groups stand side by side and are as large as each other"};
}

bool is_wrong_where_it_counts(const Reading& reading) {
  return std::ranges::any_of(reading.entries(), [&](const ReadEntry& entry) {
    const OutputInfo& output = reading.outputs()[entry.output];
    return entry.wrong() && place_of(reading.study(), output, entry.index).valid;
  });
}

/// Whether what is wrong is right once every number lies around 0.
bool is_right_around_zero(const LossSignature& signature, const Suspect& suspect,
                          const Reading& wrong) {
  // Zeros show nothing but that they are numbers.
  const auto around_zero = suspect.read(centred(signature, wrong.given()));
  const auto is_nearer = [&] {
    return around_zero->numbers() > 0 && around_zero->is_much_nearer_than(wrong) &&
           may_be_lost_to_squares(signature, wrong);
  };
  if (!is_right(around_zero) || (wrong.finite() && !is_nearer())) return false;
  // What farther numbers mend as well was a 0 that stands for something.
  return !is_right(suspect.read_if_made(beyond_zero(signature, wrong.given())));
}

/// What is right of numbers that are smaller, or nearer to 0.
Opinion of_distant_numbers(const Suspect& suspect, const Reading& wrong) {
  const LossSignature& signature = suspect.signature();
  // Of what is bounded, or exp is taken of, nothing takes a mean off, and no bound is felt there.
  if (!signature.reach.empty()) return std::nullopt;
  if (!wrong.finite() && is_right(suspect.read(with_room_for_squares(signature, wrong)))) {
    if (is_right(suspect.read_if_made(with_nothing_masked(signature, wrong.given())))) {
      return Diagnosis{"zero times infinity", 0.95,
                       "right where nothing is masked, and of numbers whose squares have room"};
    }
    return Diagnosis{"overflow of a square or sum", 0.95,
                     "right of numbers whose squares have room"};
  }
  if (!is_right_around_zero(signature, suspect, wrong)) return std::nullopt;
  return Diagnosis{"cancellation", 0.95, "right where the numbers lie around 0"};
}

/// What is right where nothing is masked: does a mask count, or rows of other lengths?
Opinion of_padding(const Suspect& suspect) {
  const auto ragged = suspect.read(suspect.plain_case());
  if (!is_wrong(ragged) || !is_wrong_where_it_counts(*ragged)) return std::nullopt;
  const auto full = suspect.plain_case({.padding = false});
  if (!is_right(suspect.read(full))) return std::nullopt;
  Case level = *full;
  const Index tokens = level.shape.positions(), rows = level.shape[Axis::sequences];
  for (Index row = 0; row < rows; ++row) {
    mask_position(suspect.signature(), level, (row + 1) * tokens - 1);
  }
  if (tokens > 1 && is_right(suspect.read(level))) {
    return Diagnosis{"mean of means", 0.9, "right where all sequences are as long as each other"};
  }
  return Diagnosis{"padding counted", 0.95, "right where nothing is masked"};
}

}  // namespace

Opinion probe_statistics(Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  if (!signature.reductions.empty()) return std::nullopt;
  const std::optional<Reading>& given = suspect.as_given();
  // A number that is wrong came of no division by 0, whatever one would make of another case.
  const bool is_number = is_wrong(given) && given->finite();
  const auto lonely = suspect.read_if_made(suspect.plain_case({.length = {{Axis::tokens, 1}}}));
  if (!is_number && is_wrong(lonely) && !lonely->finite() &&
      is_right(suspect.read(doubled(signature, lonely->given())))) {
    return Diagnosis{"empty divisor", 0.95,
                     "right where each sequence stands twice: one number has no deviation"};
  }
  if (auto opinion = of_padding(suspect)) return opinion;
  if (is_wrong(suspect.read_if_made(in_pairs(suspect, false))) &&
      is_right(suspect.read_if_made(in_pairs(suspect, true)))) {
    return by_position();
  }
  if (!is_wrong(given) || !is_wrong_where_it_counts(*given)) return std::nullopt;
  if (auto opinion = of_distant_numbers(suspect, *given)) return opinion;
  if (is_right(suspect.read(in_equal_blocks(signature, given->given())))) {
    return by_position();
  }
  return std::nullopt;
}

/// The given case, or what padding or a masked row makes of it where it is right, is wrong until
/// its numbers lie around 0, whatever is behind the mask: no divisor and no masked data, but a
/// difference of squares that rounds to another number in another order, or to less than nothing;
/// or until its squares have room.
Opinion probe_cancelled_deviation(Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  if (!signature.reductions.empty()) return std::nullopt;
  std::vector<std::optional<Reading>> readings = {suspect.as_given()};
  for (const Transform* transform : {&kPadded, &kRowMasked}) {
    if (!is_right(suspect.as_given())) break;
    const auto masked = transform->apply(signature, suspect.given(), suspect.given());
    if (masked) readings.push_back(suspect.read(masked->c));
  }
  for (const std::optional<Reading>& wrong : readings) {
    if (!is_wrong(wrong) || !is_wrong_where_it_counts(*wrong)) continue;
    if (auto opinion = of_distant_numbers(suspect, *wrong)) return opinion;
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
