// SPDX-License-Identifier: Apache-2.0
#include "fuzz/smaller.h"

#include <rapidcheck.h>
#include <rapidcheck/shrink/Shrink.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "fuzz/transplant.h"
#include "reference/spec/even_parts.h"

namespace lossgate::fuzz {
namespace {

using Index = std::int64_t;
using Kept = std::vector<Index>;  ///< indices on an axis, ascending

double plain(const Field& field) { return field.role == Role::mask ? 1.0 : 0.0; }

bool is_plain(const Field& field, const Tensor& tensor, Index i) {
  const double value = tensor.at(i);
  return value == plain(field) && !std::signbit(value);
}

/// The steps that need no list: each where it changes something.
rc::Seq<Case> plainer_settings(const Case& c) {
  std::vector<Case> cases;
  const auto add = [&](bool differs, auto&& change) {
    if (!differs) return;
    cases.push_back(c);
    change(cases.back());
  };
  add(!c.split.whole(), [](Case& simpler) { simpler.split = {}; });
  add(c.layout != Layout::contiguous, [](Case& simpler) { simpler.layout = Layout::contiguous; });
  add(c.upstream != 1.0, [](Case& simpler) { simpler.upstream = 1.0; });
  return rc::seq::fromContainer(std::move(cases));
}

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
  if (axis == Axis::sequences) {
    keep_sequences(smaller.split, kept);
    make_parts_even(signature, smaller);
  }
  return smaller;
}

rc::Seq<Case> shorter_axis(const LossSignature& signature, const Case& c, Axis axis) {
  if (c.shape[axis] <= 1) return {};
  Kept all(static_cast<std::size_t>(c.shape[axis]));
  std::iota(all.begin(), all.end(), 0);
  return rc::seq::map(
      rc::seq::filter(rc::shrink::removeChunks(std::move(all)),
                      [](const Kept& kept) { return !kept.empty(); }),
      [&signature, c, axis](const Kept& kept) { return with_axis(signature, c, axis, kept); });
}

/// The reduction stays: what fails under another is another finding (rule E7).
rc::Seq<Case> plainer_options(const LossSignature& signature, const Case& c) {
  std::vector<Case> cases;
  for (const Option& option : signature.options) {
    const OptionValue* value = c.spec.find(option.name);
    if (!value || *value == option.standard || !option.follows.empty()) continue;
    cases.push_back(c);
    cases.back().spec.set(option.name, option.standard);
    follow(signature, cases.back().spec);
  }
  return rc::seq::fromContainer(std::move(cases));
}

Kept unusual_entries(const Field& field, const Tensor& tensor) {
  Kept unusual;
  for (Index i = 0; i < tensor.size(); ++i) {
    if (!is_plain(field, tensor, i)) unusual.push_back(i);
  }
  return unusual;
}

/// All entries of a field plain but some of those that were not.
rc::Seq<Case> plainer_entries(const Field& field, const Case& c) {
  return rc::seq::map(rc::shrink::removeChunks(unusual_entries(field, c.batch.at(field.name))),
                      [&field, c](const Kept& kept) {
                        Case simpler = c;
                        Tensor& tensor = simpler.batch.at(field.name);
                        std::size_t next = 0;
                        for (Index i = 0; i < tensor.size(); ++i) {
                          if (next < kept.size() && kept[next] == i) {
                            ++next;
                          } else if (!is_plain(field, tensor, i)) {
                            tensor.set(i, plain(field));
                          }
                        }
                        return simpler;
                      });
}

/// The value with so many digits.
double with_digits(double value, int digits) {
  const double exponent = std::floor(std::log10(std::fabs(value))) + 1.0 - digits;
  const double unit = std::pow(10.0, std::fabs(exponent));
  return exponent < 0.0 ? std::round(value * unit) / unit : std::round(value / unit) * unit;
}

/// Numbers that are nearer to 1 or shorter to write, the boldest first.
std::vector<double> rounder(double value) {
  if (!std::isfinite(value) || value == 0.0 || std::fabs(value) == 1.0) return {};
  std::vector<double> numbers = {std::copysign(1.0, value)};
  for (const double smaller : {value / 1000.0, value / 10.0, value / 2.0}) {
    if (std::fabs(smaller) > 1.0) numbers.push_back(with_digits(smaller, 1));
  }
  for (const int digits : {1, 2, 3}) {
    const double shorter = with_digits(value, digits);
    if (shorter == value) break;
    if (std::isfinite(shorter)) numbers.push_back(shorter);
  }
  return numbers;
}

rc::Seq<Case> rounder_entries(const Field& field, const Case& c) {
  const Tensor& tensor = c.batch.at(field.name);
  if (!is_float(tensor.dtype)) return {};
  return rc::seq::mapcat(rc::seq::fromContainer(unusual_entries(field, tensor)),
                         [&field, c](Index i) {
                           const double value = c.batch.at(field.name).at(i);
                           std::vector<Case> cases;
                           for (const double number : rounder(value)) {
                             Case simpler = c;
                             Tensor& changed = simpler.batch.at(field.name);
                             changed.set(i, number);
                             // What is round already stays: a case is never its own smaller one.
                             if (changed.at(i) == value) break;
                             // 65,504 is no 7e4 in f16: infinity is another matter.
                             if (!std::isfinite(changed.at(i))) continue;
                             cases.push_back(std::move(simpler));
                           }
                           return rc::seq::fromContainer(std::move(cases));
                         });
}

}  // namespace

rc::Seq<Case> smaller_cases(const LossSignature& signature, const Case& c) {
  std::vector<rc::Seq<Case>> steps = {plainer_settings(c)};
  if (!shape_follows_data(signature)) {
    for (Axis axis : kAllAxes) steps.push_back(shorter_axis(signature, c, axis));
  }
  steps.push_back(plainer_options(signature, c));
  for (const Field& field : signature.fields) steps.push_back(plainer_entries(field, c));
  for (const Field& field : signature.fields) steps.push_back(rounder_entries(field, c));
  return rc::seq::join(rc::seq::fromContainer(std::move(steps)));
}

std::int64_t unusual_numbers(const LossSignature& signature, const Case& c) {
  Index count = 0;
  for (const Option& option : signature.options) {
    const OptionValue* value = c.spec.find(option.name);
    count += value && *value != option.standard && option.follows.empty();
  }
  for (const Field& field : signature.fields) {
    count += static_cast<Index>(unusual_entries(field, c.batch.at(field.name)).size());
  }
  return count;
}

}  // namespace lossgate::fuzz
