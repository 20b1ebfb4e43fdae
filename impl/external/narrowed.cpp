// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "impl/external/subject.h"
#include "reference/spec/lists.h"

namespace lossgate::impl {
namespace {

/// An option that is never none.
void keep_numbers(Option& option) {
  option.nullable = false;
  if (std::holds_alternative<None>(option.standard)) {
    option.standard = std::clamp(1.0, option.low, option.high);
  }
}

/// An option with one value left, or with numbers alone.
void pin(Option& option, const OptionValue& value) {
  if (option.kind != Option::Kind::choice && is_any_number(value)) {
    return keep_numbers(option);
  }
  option.standard = value;
  if (std::holds_alternative<None>(value)) {
    // A choice among nothing but none: a number would have to lie somewhere.
    option.kind = Option::Kind::choice;
    option.choices.clear();
    option.nullable = true;
    return;
  }
  option.nullable = false;
  if (const double* number = std::get_if<double>(&value)) option.low = option.high = *number;
  if (const std::string* word = std::get_if<std::string>(&value)) option.choices = {*word};
}

/// Of the option whose square multiplies what is returned: numbers whose squares are powers of two,
/// so that to divide by them rounds nothing. Two of them tell every power of it from every other.
void keep_exact_squares(Option& option) {
  if (option.low == option.high) return;  // the config has seen to it
  option.kind = Option::Kind::integer;
  option.low = 1.0;
  option.high = 2.0;
  option.standard = std::get<double>(option.standard) >= 2.0 ? 2.0 : 1.0;
}

/// Both take what each may take.
void tie(Option& option, Option& followed) {
  const double low = std::max(followed.low, option.low);
  const double high = std::min(followed.high, option.high);
  if (low <= high) {
    followed.low = low;
    followed.high = high;
  }
  followed.nullable = followed.nullable && option.nullable;
  if (double* standard = std::get_if<double>(&followed.standard)) {
    *standard = std::clamp(*standard, followed.low, followed.high);
  }
  Option same = followed;
  same.name = option.name;
  same.doc = option.doc;
  same.follows = followed.name;
  option = std::move(same);
}

bool returns(const Subject& subject, const OutputField& output) {
  return std::ranges::find(subject.outputs, output.name) != subject.outputs.end();
}

void restrict_field(Field& field, const Subject& subject) {
  if (field.optional && std::ranges::find(subject.without, field.name) != subject.without.end()) {
    field.absent = true;
    field.role = Role::constant;
  }
  field.wide = std::ranges::find(subject.wide, field.name) != subject.wide.end();
  const auto own = subject.masked_of_field.find(field.name);
  field.masked = own == subject.masked_of_field.end() ? subject.masked : own->second;
  const auto largest = subject.largest.find(field.name);
  if (largest != subject.largest.end()) field.largest = largest->second;
  // Whoever is handed one number for each sequence, as it is or at every position, cannot see that
  // others stood beside it.
  const std::string words = "field:" + field.name + " as ";
  field.one_per_sequence = std::ranges::any_of(subject.arguments, [&](const auto& pair) {
    return pair.second.starts_with(words) &&
           (is_converted(pair.second, "rows") || is_converted(pair.second, kExpanded));
  });
  field.even_groups = field.role == Role::group && !subject.contract.uneven_groups;
  field.distinct = is_list(field) && !subject.contract.repeated_tokens;
  if (!subject.contract.int32_labels && std::ranges::count(field.dtypes, Dtype::i64) > 0) {
    std::erase(field.dtypes, Dtype::i32);
  }
  if (subject.contract.infinite_valid) return;
  if (field.infinity == Infinity::legal) field.infinity = Infinity::surfaces;
  field.infinite_where.reset();
}

}  // namespace

bool is_converted(std::string_view source, std::string_view word) {
  return source.find(" as " + std::string(word)) != std::string_view::npos;
}

bool holds_numbers(const Field& field) {
  return field.role != Role::mask && field.role != Role::label && field.role != Role::group &&
         field.quantity != Quantity::mask && field.quantity != Quantity::payload;
}

std::string in_place_of(const Field& field) {
  if (field.stand_in.empty()) return "0";
  const bool number = field.stand_in.front() >= '0' && field.stand_in.front() <= '9';
  return number ? field.stand_in : field.stand_in + " itself";
}

const OutputField* weighed_output(const LossSignature& loss, const Field& field) {
  if (field.role != Role::weight || field.quantity != Quantity::upstream) return nullptr;
  const auto output = std::ranges::find_if(
      loss.outputs, [&](const OutputField& each) { return each.name + "_weight" == field.name; });
  return output == loss.outputs.end() ? nullptr : &*output;
}

std::string_view beyond_autocast(const Subject& subject, const LossSignature& loss) {
  if (subject.entry.starts_with("so:")) return "it is for a function in Python";
  if (std::ranges::find(subject.dtypes, Dtype::f32) == subject.dtypes.end()) {
    return "it is asked of f32, which 'dtypes' leaves out";
  }
  return loss.has_axis(Axis::hidden) ? "an output layer is meant to multiply in 16 bits there" : "";
}

LossSignature narrowed(const LossSignature& loss, const Subject& subject) {
  LossSignature signature = loss;
  for (const auto& [name, value] : subject.options) {
    const auto option = std::ranges::find(signature.options, name, &Option::name);
    if (option != signature.options.end()) pin(*option, value);
  }
  for (const auto& [name, other] : subject.tied) {
    const auto option = std::ranges::find(signature.options, name, &Option::name);
    const auto followed = std::ranges::find(signature.options, other, &Option::name);
    if (option != signature.options.end() && followed != signature.options.end()) {
      tie(*option, *followed);
    }
  }
  const auto scale = std::ranges::find(signature.options, subject.scaled_by, &Option::name);
  if (scale != signature.options.end()) keep_exact_squares(*scale);
  if (!subject.reductions.empty()) signature.reductions = subject.reductions;
  const bool has_loss = !loss.reductions.empty() && loss.reductions != std::vector{Reduction::none};
  if (has_loss) {
    std::erase_if(signature.outputs,
                  [&](const OutputField& output) { return !returns(subject, output); });
  }
  for (Field& field : signature.fields) {
    restrict_field(field, subject);
    const OutputField* output = weighed_output(loss, field);
    field.absent |= subject.weighed_outputs && output && !returns(subject, *output);
  }
  // What cannot be split may have terms that hear of other sequences.
  signature.returns_terms = subject.per_token && signature.splittable;
  signature.autocast = subject.contract.autocast && beyond_autocast(subject, loss).empty();
  // Whoever knows groups by their place gets no half of one.
  const bool grouped = std::ranges::any_of(signature.fields, &Field::even_groups);
  if (subject.micro_batches == Combination::none || grouped) signature.splittable = false;
  if (subject.ranks == Combination::none) signature.shardable = false;
  signature.even_parts = !subject.contract.uneven_parts;
  signature.even_ranks = !subject.contract.uneven_ranks;
  signature.empty = subject.contract.empty;
  signature.empty_rows = subject.contract.empty_rows;
  signature.prefix_mask = !subject.contract.scattered_mask;
  signature.pinned = subject.axes;
  signature.longest = subject.longest;
  return signature;
}

}  // namespace lossgate::impl
