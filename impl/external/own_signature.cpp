// SPDX-License-Identifier: Apache-2.0
#include "impl/external/own_signature.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "impl/external/config_reader.h"

namespace lossgate::impl {
namespace {

bool is_name(std::string_view text) {
  const auto fits = [](char c) { return c == '_' || std::islower(c) || std::isdigit(c); };
  return !text.empty() && !std::isdigit(text.front()) && std::ranges::all_of(text, fits);
}

std::string name_of(const Reader& reader, const char* key, std::set<std::string>& taken) {
  std::string text = reader.required(key, "\"a_name\"");
  if (!is_name(text)) {
    reader.fail(reader.find(key)->source(), in_quotes(text) +
                                                " must be lower-case letters, digits "
                                                "and underscores");
  }
  if (!taken.insert(text).second) {
    reader.fail(reader.find(key)->source(), text == "loss"
                                                ? "'loss' is the loss itself; name this otherwise"
                                                : "two things are called " + in_quotes(text));
  }
  return text;
}

std::vector<Axis> axes_of(const Reader& reader) {
  std::vector<Axis> axes;
  for (const std::string& text : reader.texts("axes")) {
    const auto at = std::ranges::find(kAllAxes, text, [](Axis axis) { return name(axis); });
    if (at == std::end(kAllAxes) || *at == Axis::bytes) {
      reader.fail(reader.find("axes")->source(),
                  "there is no axis " + in_quotes(text) +
                      "; there are sequences, tokens, vocab, hidden, support, responses");
    }
    if (!axes.empty() && axes.back() >= *at) {
      reader.fail(reader.find("axes")->source(),
                  "axes come in this order, each once: sequences, tokens, vocab, hidden, support, "
                  "responses");
    }
    axes.push_back(*at);
  }
  if (contains(axes, Axis::tokens) && !has_rows(axes)) {
    reader.fail(reader.find("axes")->source(), "tokens are those of sequences: name both axes");
  }
  return axes;
}

/// What the values of a role may measure; the first unless said.
std::vector<Quantity> quantities_of(Role role) {
  using enum Quantity;
  if (role == Role::mask) return {mask};
  if (role == Role::label) return {label};
  return {value, log_prob, advantage, reward, logit, hidden_state, weight};
}

Quantity quantity_of(const Reader& reader, Role role) {
  const auto possible = quantities_of(role);
  const std::string text = reader.text("quantity", std::string(name(possible.front())));
  std::vector<std::string_view> known;
  for (const Quantity quantity : possible) {
    if (name(quantity) == text) return quantity;
    known.push_back(name(quantity));
  }
  reader.fail(reader.find("quantity")->source(),
              "a field of role " + std::string(name(role)) + " measures one of " + listed(known));
}

Field read_field(const Reader& reader, std::set<std::string>& taken) {
  reader.allow({"name", "role", "quantity", "axes", "infinity", "doc"});
  Field field;
  field.name = name_of(reader, "name", taken);
  reader.required("role", "\"differentiable\"");
  field.role = reader.word<Role>("role", *reader.find("role"),
                                 {{"differentiable", Role::differentiable},
                                  {"constant", Role::constant},
                                  {"label", Role::label},
                                  {"mask", Role::mask}});
  field.quantity = quantity_of(reader, field.role);
  field.axes = axes_of(reader);
  field.infinity = reader.one_of<Infinity>(
      "infinity", Infinity::legal, {{"legal", Infinity::legal}, {"surfaces", Infinity::surfaces}});
  field.doc = reader.text("doc");
  if (field.role == Role::mask) {
    if (field.axes != std::vector{Axis::sequences, Axis::tokens}) {
      reader.fail("a mask has the axes sequences and tokens");
    }
    field.dtypes = {Dtype::u8, Dtype::boolean};
  }
  if (field.role == Role::label) field.dtypes = {Dtype::i64, Dtype::i32};
  return field;
}

Option read_option(const Reader& reader, std::set<std::string>& taken) {
  reader.allow({"name", "default", "low", "high", "integer", "choices", "doc"});
  Option option;
  option.name = name_of(reader, "name", taken);
  option.choices = reader.texts("choices");
  option.doc = reader.text("doc");
  const toml::node* standard = reader.find("default");
  if (!standard) reader.fail("an option needs default = its usual value");
  if (!option.choices.empty()) {
    option.kind = Option::Kind::choice;
    option.standard = reader.text("default");
    if (std::ranges::find(option.choices, std::get<std::string>(option.standard)) ==
        option.choices.end()) {
      reader.fail(standard->source(), "'default' must be one of " + listed(option.choices));
    }
    return option;
  }
  if (const auto flag = standard->value_exact<bool>()) {
    option.kind = Option::Kind::flag;
    option.standard = *flag ? 1.0 : 0.0;
    option.high = 1.0;
    return option;
  }
  const double number = reader.value<double>("default", 0.0, "a number, true, false or a choice");
  option.low = reader.value<double>("low", number, "a number");
  option.high = reader.value<double>("high", number, "a number");
  if (reader.flag("integer", false)) option.kind = Option::Kind::integer;
  option.standard = number;
  if (!(option.low <= number && number <= option.high)) {
    reader.fail(standard->source(), "'default' must lie between 'low' and 'high'");
  }
  if (option.kind == Option::Kind::integer) {
    for (const double value : {option.low, number, option.high}) {
      if (value != std::trunc(value)) {
        reader.fail(standard->source(), "'default', 'low' and 'high' of an integer are whole");
      }
    }
  }
  return option;
}

/// Each table of a list of tables.
template <class Read>
void for_each_table(const toml::table& root, const std::string& file, const char* key,
                    Read&& read) {
  const toml::node* node = root.get(key);
  if (!node) return;
  const std::string what = "[[" + std::string(key) + "]]";
  if (!node->is_array() || !node->as_array()->is_homogeneous<toml::table>()) {
    Reader(root, file, "the file").fail(node->source(), "write " + what);
  }
  for (const toml::node& item : *node->as_array()) read(Reader(*item.as_table(), file, what));
}

/// The field or option that a key names, if it is there.
template <class Find>
std::string reference_to(const Reader& reader, const char* key, Find&& find, const char* what) {
  const std::string text = reader.text(key);
  if (!text.empty() && !find(text)) {
    reader.fail(reader.find(key)->source(), in_quotes(text) + " is no " + what);
  }
  return text;
}

void read_roles(const Reader& reader, LossSignature& loss) {
  for (const Field& field : loss.fields) {
    if (field.role != Role::mask) continue;
    if (!loss.mask.empty()) reader.fail("one field may be the mask");
    loss.mask = field.name;
  }
  const auto is = [&](Quantity quantity) {
    return [&loss, quantity](const std::string& text) {
      const Field* field = loss.find_field(text);
      return field && field->quantity == quantity;
    };
  };
  loss.ignore_label = reference_to(reader, "ignore_label", is(Quantity::label), "field of labels");
  const Field* label = loss.find_field(loss.ignore_label);
  if (label && (label->axes.size() < 2 || label->axes[1] != Axis::tokens)) {
    reader.fail("'ignore_label' is of labels of tokens; mask what has none outside the function");
  }
  loss.advantage =
      reference_to(reader, "advantage", is(Quantity::advantage), "field of advantages");
  const auto is_option = [&](const std::string& text) { return loss.find_option(text) != nullptr; };
  loss.coefficient = reference_to(reader, "coefficient", is_option, "option");
  if (!loss.mask.empty() && !loss.ignore_label.empty()) {
    reader.fail("positions are masked by a mask or by labels of -100, not by both");
  }
  const auto moves = [](const Field& field) { return field.role == Role::differentiable; };
  if (std::ranges::none_of(loss.fields, moves)) reader.fail("no field is differentiable");
}

}  // namespace

LossSignature parse_signature(std::string_view text, const std::string& file, FindSignature find) {
  const toml::table root = parse_toml(text, file);
  const Reader reader(root, file, "a signature");
  reader.allow({"id", "title", "formula", "source", "reductions", "field", "option", "output",
                "ignore_label", "advantage", "coefficient", "rows_permutable", "tokens_paddable",
                "splittable"});
  std::set<std::string> taken = {"loss"}, none;
  LossSignature loss;
  loss.id = name_of(reader, "id", none);
  if (find(loss.id)) {
    reader.fail(reader.find("id")->source(),
                in_quotes(loss.id) + " is in the catalog: write loss = \"" + loss.id + "\"");
  }
  loss.title = reader.text("title", loss.id);
  loss.formula = reader.text("formula");
  loss.source = reader.text("source");
  for (const std::string& word : reader.texts("reductions")) {
    const auto reduction = parse_reduction(word);
    if (reduction != Reduction::sum && reduction != Reduction::token_mean &&
        reduction != Reduction::sequence_mean) {
      reader.fail(reader.find("reductions")->source(),
                  "reductions are sum, token_mean, sequence_mean");
    }
    loss.reductions.push_back(*reduction);
  }
  if (loss.reductions.empty()) loss.reductions = {Reduction::token_mean};
  for_each_table(root, file, "field",
                 [&](const Reader& table) { loss.fields.push_back(read_field(table, taken)); });
  for_each_table(root, file, "option",
                 [&](const Reader& table) { loss.options.push_back(read_option(table, taken)); });
  for_each_table(root, file, "output", [&](const Reader& table) {
    table.allow({"name", "axes", "doc"});
    loss.outputs.push_back({name_of(table, "name", taken), axes_of(table), {}, table.text("doc")});
  });
  read_roles(reader, loss);
  loss.rows_permutable = reader.flag("rows_permutable", true);
  loss.tokens_paddable = reader.flag("tokens_paddable", true);
  loss.splittable = reader.flag("splittable", true);
  loss.shardable = loss.splittable;
  return loss;
}

}  // namespace lossgate::impl
