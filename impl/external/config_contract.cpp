// SPDX-License-Identifier: Apache-2.0
#include "impl/external/config_contract.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "impl/external/config_axes.h"

namespace lossgate::impl {
namespace {

Masked masked(const Reader& reader, std::string_view key, const toml::node& node) {
  if (node.value_exact<std::int64_t>() == 0) return Masked::zero;
  return reader.word<Masked>(key, node,
                             {{"any", Masked::anything},
                              {"-inf", Masked::minus_infinity},
                              {"finite", Masked::finite},
                              {"ordinary", Masked::ordinary},
                              {"0", Masked::zero}});
}

/// Log-probs of a whole row: were each as large as a few nats below 0, they would be no
/// probabilities together.
bool sums_to_one(const Field& field) {
  return field.quantity == Quantity::log_prob && !field.axes.empty() &&
         (field.axes.back() == Axis::support || field.axes.back() == Axis::vocab);
}

double largest(const Reader& reader, const toml::node& node, bool of_rows) {
  constexpr double kImpossible = 1000.0;  // exp of its negative is 0 in every format
  const auto number = node.is_number() ? node.value<double>() : std::nullopt;
  if (!number || !(*number > 0.0) || std::isinf(*number)) {
    reader.fail(node.source(), "'largest' must be numbers above 0");
  }
  if (of_rows && *number < kImpossible) {
    reader.fail(node.source(),
                "'largest' of log-probs over a vocabulary or a list must be at least 1000: with no "
                "smaller ones they add up to more than 1");
  }
  return *number;
}

/// The key `largest`: one number for all fields, or a table.
std::map<std::string, double> read_largest(const Reader& reader, const LossSignature& loss) {
  std::map<std::string, double> found;
  const toml::node* node = reader.find("largest");
  if (!node) return found;
  const toml::table* table = node->as_table();
  if (const toml::node* all = table ? table->get("default") : node) {
    for (const Field& field : loss.fields) {
      const bool own = table && table->contains(field.name);
      if (holds_numbers(field) && !own) {
        found[field.name] = largest(reader, *all, sums_to_one(field));
      }
    }
  }
  for (const auto& [key, value] : table ? *table : toml::table()) {
    if (key.str() == "default") continue;
    const Field* field = loss.find_field(key.str());
    if (!field || !holds_numbers(*field)) {
      reader.fail(key.source(),
                  loss.id + " has no field " + in_quotes(key.str()) + " that holds numbers");
    }
    found[field->name] = largest(reader, value, sums_to_one(*field));
  }
  return found;
}

}  // namespace

void read_contract(const toml::table& table, const std::string& file, const LossSignature& loss,
                   Subject& subject) {
  const Reader reader(table, file, "[subject.contract]");
  reader.allow({"masked", "refuses_invalid", "infinite_valid", "deterministic", "grad_modes",
                "int32_labels", "repeated_tokens", "scattered_mask", "masked_outputs",
                "non_contiguous", "uneven_groups", "uneven_parts", "uneven_ranks", "empty",
                "empty_rows", "longest", "largest", "autocast", "omitted_fields"});
  Contract& contract = subject.contract;
  contract.refuses_invalid = reader.flag("refuses_invalid", contract.refuses_invalid);
  contract.infinite_valid = reader.flag("infinite_valid", contract.infinite_valid);
  contract.deterministic = reader.flag("deterministic", contract.deterministic);
  contract.int32_labels = reader.flag("int32_labels", contract.int32_labels);
  contract.repeated_tokens = reader.flag("repeated_tokens", contract.repeated_tokens);
  contract.scattered_mask = reader.flag("scattered_mask", contract.scattered_mask);
  contract.masked_outputs = reader.flag("masked_outputs", contract.masked_outputs);
  contract.non_contiguous = reader.flag("non_contiguous", contract.non_contiguous);
  contract.uneven_groups = reader.flag("uneven_groups", contract.uneven_groups);
  contract.uneven_parts = reader.flag("uneven_parts", contract.uneven_parts);
  contract.uneven_ranks = reader.flag("uneven_ranks", contract.uneven_ranks);
  contract.grad_modes = reader.flag("grad_modes", contract.grad_modes);
  contract.autocast = reader.flag("autocast", contract.autocast);
  subject.omitted_fields = reader.flag("omitted_fields", subject.omitted_fields);
  if (const auto why = beyond_autocast(subject, loss); contract.autocast && !why.empty()) {
    reader.fail(reader.find("autocast")->source(),
                "'autocast' would never be asked: " + std::string(why));
  }
  contract.empty =
      reader.one_of<Empty>("empty", contract.empty,
                           {{"zero", Empty::zero}, {"error", Empty::error}, {"nan", Empty::nan}});
  contract.empty_rows =
      reader.one_of<EmptyRows>("empty_rows", contract.empty_rows,
                               {{"skipped", EmptyRows::skipped}, {"counted", EmptyRows::counted}});
  subject.longest = read_longest(reader, loss);
  for (const auto& [axis, extent] : subject.longest) {
    if (std::ranges::find(subject.axes, axis, &std::pair<Axis, std::int64_t>::first) ==
        subject.axes.end()) {
      continue;
    }
    reader.fail(reader.find("longest")->source(),
                in_quotes(name(axis)) + " has one extent already, in 'axes'");
  }
  subject.largest = read_largest(reader, loss);
  const toml::node* node = reader.find("masked");
  if (!node) return;
  if (!node->is_table()) {
    subject.masked = masked(reader, "masked", *node);
    return;
  }
  for (const auto& [key, value] : *node->as_table()) {
    if (key.str() == "default") {
      subject.masked = masked(reader, "default", value);
    } else if (loss.find_field(key.str())) {
      subject.masked_of_field[std::string(key.str())] = masked(reader, key.str(), value);
    } else {
      reader.fail(key.source(), loss.id + " has no field " + in_quotes(key.str()));
    }
  }
}

}  // namespace lossgate::impl
