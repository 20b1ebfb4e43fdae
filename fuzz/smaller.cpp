// SPDX-License-Identifier: Apache-2.0
#include "fuzz/smaller.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "reference/spec/even_parts.h"

namespace lossgate::fuzz {
namespace {

using Index = std::int64_t;

double plain(const Field& field) { return field.role == Role::mask ? 1.0 : 0.0; }

bool is_same(double a, double b) { return a == b && std::signbit(a) == std::signbit(b); }

/// The entries whose index on the axis is kept, in their order.
Tensor selected(const Tensor& from, const std::vector<Axis>& axes, Axis axis, const Kept& kept) {
  const auto at = static_cast<std::size_t>(std::ranges::find(axes, axis) - axes.begin());
  Extents extents = from.extents;
  extents[at] = static_cast<Index>(kept.size());
  Tensor to = Tensor::zeros(from.dtype, extents);
  const auto product = [](auto first, auto last) {
    return std::accumulate(first, last, Index{1}, std::multiplies<>());
  };
  const auto middle = from.extents.begin() + static_cast<std::ptrdiff_t>(at);
  const Index before = product(from.extents.begin(), middle),
              after = product(middle + 1, from.extents.end());
  const std::size_t bytes = static_cast<std::size_t>(after) * size_of(from.dtype);
  Index next = 0;
  for (Index b = 0; b < before && bytes > 0; ++b) {
    for (Index k : kept) {
      std::memcpy(to.element(next), from.element((b * from.extents[at] + k) * after), bytes);
      next += after;
    }
  }
  return to;
}

/// Labels name entries of the vocabulary: those that are gone become the first that is left.
void rename_labels(Tensor& labels, const Kept& kept, Index vocabulary) {
  for (Index i = 0; i < labels.size(); ++i) {
    const Index label = labels.integer_at(i);
    if (label < 0 || label >= vocabulary) continue;
    const auto found = std::ranges::lower_bound(kept, label);
    const bool is_left = found != kept.end() && *found == label;
    labels.set(i, is_left ? static_cast<double>(found - kept.begin()) : 0.0);
  }
}

void keep_sequences(Split& split, const Kept& kept) {
  for (Split::Part& part : split.parts) {
    std::vector<Index> renumbered;
    for (Index s : part.sequences) {
      const auto found = std::ranges::lower_bound(kept, s);
      if (found != kept.end() && *found == s) renumbered.push_back(found - kept.begin());
    }
    part.sequences = std::move(renumbered);
  }
}

/// Without its empty parts, but for so many of them, and one on a rank that has no other.
Split without_empty_parts(Split split, Index spared) {
  std::set<int> ranks;
  for (const Split::Part& part : split.parts) {
    if (!part.sequences.empty()) ranks.insert(part.rank);
  }
  std::erase_if(split.parts, [&](const Split::Part& part) {
    if (!part.sequences.empty() || spared-- > 0) return false;
    return !ranks.insert(part.rank).second;
  });
  return split;
}

/// The value with so many digits.
double with_digits(double value, int digits) {
  const double exponent = std::floor(std::log10(std::fabs(value))) + 1.0 - digits;
  const double unit = std::pow(10.0, std::fabs(exponent));
  return exponent < 0.0 ? std::round(value * unit) / unit : std::round(value / unit) * unit;
}

/// A number nearer to 1, with one digit. What has no room for that stays.
double nearer(double value, double factor) {
  const double smaller = value / factor;
  return std::isfinite(value) && std::fabs(smaller) > 1.0 ? with_digits(smaller, 1) : value;
}

double shorter(double value, int digits) {
  return std::isfinite(value) && value != 0.0 ? with_digits(value, digits) : value;
}

}  // namespace

std::vector<Change> plainer_settings(const Case& c) {
  std::vector<Change> changes;
  if (!c.split.whole()) changes.emplace_back([](Case& at) { at.split = {}; });
  for (const Index spared : {0, 1}) {  // one is enough to tell that any are there
    if (without_empty_parts(c.split, spared) == c.split) continue;
    changes.emplace_back(
        [spared](Case& at) { at.split = without_empty_parts(std::move(at.split), spared); });
  }
  if (c.layout != Layout::contiguous) {
    changes.emplace_back([](Case& at) { at.layout = Layout::contiguous; });
  }
  if (c.upstream != 1.0) changes.emplace_back([](Case& at) { at.upstream = 1.0; });
  return changes;
}

std::vector<Change> plainer_options(const LossSignature& signature, const Case& c) {
  std::vector<Change> changes;
  for (const Option& option : signature.options) {
    const OptionValue* value = c.spec.find(option.name);
    if (!value || *value == option.standard || !option.follows.empty()) continue;
    changes.emplace_back([&signature, &option](Case& at) {
      at.spec.set(option.name, option.standard);
      follow(signature, at.spec);
    });
  }
  return changes;
}

Case with_axis(const LossSignature& signature, const Case& c, Axis axis, const Kept& kept) {
  Case smaller = c;
  smaller.shape[axis] = static_cast<Index>(kept.size());
  for (const Field& field : signature.fields) {
    Tensor& tensor = smaller.batch.at(field.name);
    if (contains(field.axes, axis)) {
      tensor = selected(tensor, field.axes, axis, kept);
    }
    if (axis == Axis::vocab && field.quantity == Quantity::label) {
      rename_labels(tensor, kept, c.shape[axis]);
    }
  }
  if (axis == Axis::sequences) keep_sequences(smaller.split, kept);
  make_parts_even(signature, smaller);  // which sequences count hangs on their tokens, too
  return smaller;
}

Rewrite plainer(const Field& field) {
  return [number = plain(field)](double) { return number; };
}

const std::vector<Rewrite>& rounder() {
  static const std::vector<Rewrite> ways = {
      [](double value) {
        return std::isfinite(value) && value != 0.0 ? std::copysign(1.0, value) : value;
      },
      [](double value) { return nearer(value, 1000.0); },
      [](double value) { return nearer(value, 10.0); },
      [](double value) { return nearer(value, 2.0); },
      [](double value) { return shorter(value, 1); },
      [](double value) { return shorter(value, 2); },
      [](double value) { return shorter(value, 3); }};
  return ways;
}

Kept changed_by(const Rewrite& rewrite, const Tensor& tensor) {
  Kept changed;
  Tensor stored = Tensor::zeros(tensor.dtype, {1});
  for (Index i = 0; i < tensor.size(); ++i) {
    stored.set(0, rewrite(tensor.at(i)));
    // 65,504 is no 7e4 in f16: infinity is another matter.
    if (!std::isfinite(stored.at(0)) || is_same(stored.at(0), tensor.at(i))) continue;
    changed.push_back(i);
  }
  return changed;
}

Case rewritten(const Case& c, const Field& field, const Rewrite& rewrite, const Kept& entries) {
  Case simpler = c;
  Tensor& tensor = simpler.batch.at(field.name);
  for (const Index i : entries) tensor.set(i, rewrite(tensor.at(i)));
  return simpler;
}

std::int64_t unusual_numbers(const LossSignature& signature, const Case& c) {
  Index count = 0;
  for (const Option& option : signature.options) {
    const OptionValue* value = c.spec.find(option.name);
    count += value && *value != option.standard && option.follows.empty();
  }
  for (const Field& field : signature.fields) {
    count += std::ssize(changed_by(plainer(field), c.batch.at(field.name)));
  }
  return count;
}

}  // namespace lossgate::fuzz
