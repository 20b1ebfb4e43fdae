// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "fuzz/census.h"
#include "reference/spec/even_parts.h"
#include "reference/spec/groups.h"
#include "reference/spec/masked.h"

/// What a signature accepts, written a second time, for the tests of this folder.
namespace lossgate::fuzz {

inline constexpr Dtype kFloats[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16};

inline bool is_same(const Case& a, const Case& b) {
  return a.spec == b.spec && a.shape == b.shape && a.batch == b.batch && a.split == b.split &&
         a.layout == b.layout && a.upstream == b.upstream;
}

/// What is wrong with a number at a valid position, or nothing.
inline std::string fault_of_number(const Field& field, Infinity infinity, double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value) && (infinity != Infinity::legal || value > 0.0)) return "infinity";
  if (field.quantity == Quantity::log_prob && value > 0.0) return "positive log-prob";
  const bool weighs = field.role == Role::weight && field.quantity == Quantity::weight;
  if (weighs && value < 0.0) return "negative weight";
  return "";
}

inline std::string fault_of_field(const LossSignature& signature, const Case& c, const Field& field,
                                  Dtype dtype) {
  const Tensor& tensor = c.batch.at(field.name);
  if (tensor.extents != c.shape.of(field.axes)) return "extents";
  if (tensor.size() != element_count(tensor.extents)) return "size";
  const auto& allowed = field.dtypes;
  if (allowed.empty() ? tensor.dtype != dtype_beside(field, dtype)
                      : std::ranges::find(allowed, tensor.dtype) == allowed.end()) {
    return "dtype";
  }
  std::string fault;
  for_each_valid(signature, c, field, [&](std::int64_t i) {
    if (field.quantity == Quantity::label) {
      const std::int64_t label = tensor.integer_at(i);
      const std::int64_t vocab = c.shape[Axis::vocab];
      if (label < 0 || label >= vocab) fault = "label";
    } else if (field.quantity == Quantity::mask) {
      if (tensor.at(i) != 0.0 && tensor.at(i) != 1.0) fault = "mask";
    } else if (is_float(tensor.dtype)) {
      std::string found = fault_of_number(field, infinity_of(field, c.spec), tensor.at(i));
      const double limit =
          std::min(round_to(tensor.dtype, field.largest), max_finite(tensor.dtype));
      if (std::isfinite(tensor.at(i)) && std::fabs(tensor.at(i)) > limit) found = "too large";
      if (!found.empty()) fault = found;
    }
  });
  return fault;
}

/// What a caller who keeps to the contract would not leave behind the mask, or in one sequence.
inline std::string fault_of_contract(const LossSignature& signature, const Case& c,
                                     const Field& field) {
  const Tensor& tensor = c.batch.at(field.name);
  if (field.even_groups && !are_even_groups(tensor)) return "uneven";
  const std::vector<bool> valid = valid_positions(signature, c);
  std::map<std::pair<std::int64_t, std::int64_t>, int> named;  // at a position, which token
  bool twice = false;
  for_each_valid(signature, c, field, [&](std::int64_t i) {
    if (field.distinct) twice |= ++named[{i / c.shape[Axis::support], tensor.integer_at(i)}] > 1;
  });
  if (twice) return "a token twice";
  if (!is_positional(field) || !is_float(tensor.dtype) || tensor.size() == 0) return "";
  const std::int64_t each = tensor.size() / std::ssize(valid);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const bool masked = !valid[static_cast<std::size_t>(i / each)];
    if (masked && !field.one_per_sequence &&
        !keeps_to(field.masked, field.quantity, tensor.at(i))) {
      return "contract";
    }
    const std::int64_t row = i - i % c.shape[Axis::tokens];
    const bool level =
        load_bits(tensor.dtype, tensor.element(i)) == load_bits(tensor.dtype, tensor.element(row));
    if (field.one_per_sequence && !level && !std::isnan(tensor.at(i))) return "level";
  }
  return "";
}

/// The stored probabilities of a row on the support axis, summed: 1 at most, and what log_softmax
/// in f32 leaves beside a log-prob that it rounds to 0 at the size of a logit.
inline std::string fault_of_support(const Case& c, const LossSignature& signature,
                                    const Field& field) {
  if (field.quantity != Quantity::log_prob || field.axes.back() != Axis::support) return "";
  const Tensor& tensor = c.batch.at(field.name);
  const std::int64_t row = c.shape[Axis::support];
  std::map<std::int64_t, long double> sums;
  for_each_valid(signature, c, field,
                 [&](std::int64_t i) { sums[i / row] += std::exp((long double)tensor.at(i)); });
  for (const auto& [at, sum] : sums) {
    if (sum > 1.0L + 0x1p-17L) return "probabilities above 1";
  }
  return "";
}

inline std::string fault_of(const LossSignature& signature, const Case& c, Dtype dtype) {
  for (const auto& [axis, extent] : signature.longest) {
    if (c.shape[axis] > extent) return "longer than callers say";
  }
  if (c.spec.loss != signature.id) return "loss";
  if (!signature.reductions.empty() &&
      std::ranges::find(signature.reductions, c.spec.reduction) == signature.reductions.end()) {
    return "reduction";
  }
  if (c.batch.fields.size() != signature.fields.size()) return "fields";
  for (std::size_t i = 0; i < signature.fields.size(); ++i) {
    const Field& field = signature.fields[i];
    if (c.batch.fields[i].first != field.name) return "order of fields";
    std::string fault = fault_of_field(signature, c, field, dtype);
    if (fault.empty()) fault = fault_of_contract(signature, c, field);
    if (fault.empty()) fault = fault_of_support(c, signature, field);
    if (!fault.empty()) return field.name + ": " + fault;
  }
  for (std::size_t i = 0; i < signature.options.size(); ++i) {
    const Option& option = signature.options[i];
    const auto& [name, value] = c.spec.options[i];
    if (name != option.name) return "order of options";
    const double* number = std::get_if<double>(&value);
    if (number && (*number < option.low || *number > option.high)) return name + ": range";
    const auto* choice = std::get_if<std::string>(&value);
    if (choice && std::ranges::find(option.choices, *choice) == option.choices.end()) {
      return name + ": choice";
    }
    if (std::holds_alternative<None>(value) && !option.nullable) return name + ": none";
    if (!option.follows.empty() && value != *c.spec.find(option.follows)) return name + ": apart";
  }
  const std::vector<bool> valid = valid_positions(signature, c);
  for (std::size_t i = 1; signature.prefix_mask && i < valid.size(); ++i) {
    const bool begins = static_cast<std::int64_t>(i) % c.shape.positions() == 0;
    if (!begins && valid[i] && !valid[i - 1]) return "what counts lies behind what is masked";
  }
  const bool counts = std::ranges::find(valid, true) != valid.end();
  if (counts && !allows_empty_rows(signature, c.spec) &&
      has_empty_sequence(valid, c.shape[Axis::sequences])) {
    return "an empty sequence";
  }
  std::vector<int> dealt(
      static_cast<std::size_t>(std::max<std::int64_t>(c.shape[Axis::sequences], 0)));
  for (const Split::Part& part : c.split.parts) {
    if (part.rank < 0 || part.rank >= c.split.world) return "rank";
    for (std::int64_t s : part.sequences) ++dealt.at(static_cast<std::size_t>(s));
  }
  if (!c.split.whole() && std::ranges::any_of(dealt, [](int n) { return n != 1; })) return "split";
  if (!has_even_parts(signature, c)) return "uneven parts";
  return std::isfinite(c.upstream) ? "" : "upstream";
}

}  // namespace lossgate::fuzz
