// SPDX-License-Identifier: Apache-2.0
#include "corpora/header.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "corpora/element_text.h"
#include "corpora/prose.h"
#include "corpora/split_text.h"

namespace lossgate::corpora {
namespace {

constexpr std::string_view kOptionPrefix = "option.";

bool is_key(std::string_view key, const LossSignature& signature) {
  if (key.starts_with(kOptionPrefix)) {
    return signature.find_option(key.substr(kOptionPrefix.size())) != nullptr;
  }
  constexpr std::string_view kKeys[] = {"lossgate-case", "loss",     "reduction", "shape",
                                        "split",         "layout",   "upstream",  "title",
                                        "story",         "found_by", "expect"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

template <class Items>
std::string names_of(const Items& items) {
  std::vector<std::string> names;
  for (const auto& item : items) names.emplace_back(item.name);
  return names.empty() ? "none" : listed(names);
}

Reduction read_reduction(const Header& header, const LossSignature& signature) {
  std::vector<std::string_view> allowed;
  for (Reduction reduction : signature.reductions) allowed.push_back(name(reduction));
  if (allowed.empty()) allowed.push_back(name(Reduction::none));
  const std::string& text = header.require("reduction");
  if (std::ranges::find(allowed, text) == allowed.end()) {
    header.fail("reduction", "expected one of " + listed(allowed) + " (loss " + signature.id +
                                 "), found " + in_quotes(text));
  }
  return *parse_reduction(text);
}

std::string expected_option(const Option& option) {
  std::string expected;
  if (option.kind == Option::Kind::choice) {
    expected = "one of " + listed(option.choices);
  } else if (option.kind == Option::Kind::flag) {
    expected = "0 or 1";
  } else {
    expected = option.kind == Option::Kind::integer ? "an integer" : "a number";
    expected += " from " + number_text(option.low) + " to " + number_text(option.high);
  }
  return "expected " + expected + (option.nullable ? " or none" : "");
}

std::optional<OptionValue> parse_option(const Option& option, std::string_view text) {
  if (option.nullable && text == "none") return None{};
  if (option.kind == Option::Kind::choice) {
    if (std::ranges::find(option.choices, text) == option.choices.end()) return std::nullopt;
    return std::string(text);
  }
  const std::optional<double> value = parse_number(text);
  if (!value) return std::nullopt;
  if (option.kind == Option::Kind::flag) {
    return *value == 0.0 || *value == 1.0 ? std::optional<OptionValue>(*value) : std::nullopt;
  }
  const bool in_range = *value >= option.low && *value <= option.high;
  const bool integral = option.kind != Option::Kind::integer || *value == std::floor(*value);
  return in_range && integral ? std::optional<OptionValue>(*value) : std::nullopt;
}

void read_options(const Header& header, const LossSignature& signature, Missing missing,
                  LossSpec& spec) {
  spec.options.clear();
  for (const Option& option : signature.options) {
    const std::string key = std::string(kOptionPrefix) + option.name;
    const Entry* entry = header.find(key);
    if (!entry && missing == Missing::error) {
      header.fail(key, expected_option(option) + " (" + option_text(option.standard) +
                           " is the default), found no such key");
    }
    const std::optional<OptionValue> value =
        entry ? parse_option(option, entry->value) : option.standard;
    if (!value) header.fail(key, expected_option(option) + ", found " + in_quotes(entry->value));
    spec.options.emplace_back(option.name, *value);
  }
}

std::string provenance_text(const Header& header, std::string_view key) {
  const Entry* entry = header.find(key);
  return entry ? entry->value : std::string();
}

Layout read_layout(const Header& header, std::string_view text) {
  for (Layout layout : kAllLayouts) {
    if (name(layout) == text) return layout;
  }
  std::vector<std::string_view> names;
  for (Layout layout : kAllLayouts) names.push_back(name(layout));
  header.fail("layout", "expected one of " + listed(names) + ", found " + in_quotes(text));
}

/// The value of a key that has a standard value where it may be left out.
std::string_view value_or(const Header& header, std::string_view key, Missing missing,
                          std::string_view standard) {
  if (missing == Missing::standard && !header.find(key)) return standard;
  return header.require(key);
}

}  // namespace

std::string option_text(const OptionValue& value) {
  if (std::holds_alternative<None>(value)) return "none";
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  return std::get<std::string>(value);
}

Header::Header(std::string_view file, std::vector<Entry> entries)
    : file_(file), entries_(std::move(entries)) {
  std::map<std::string_view, int> first_lines;
  for (const Entry& entry : entries_) {
    const auto [first, added] = first_lines.emplace(entry.key, entry.line);
    if (added) continue;
    const int line = first->second;
    const std::string place = line ? " (first on line " + std::to_string(line) + ")" : "";
    throw FormatError(file_, entry.line, in_quotes(entry.key),
                      "expected each key only once" + place);
  }
}

const Entry* Header::find(std::string_view key) const {
  const auto at = std::ranges::find_if(entries_, [&](const Entry& e) { return e.key == key; });
  return at == entries_.end() ? nullptr : &*at;
}

const std::string& Header::require(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry) fail(key, "expected this key, found no such key");
  return entry->value;
}

void Header::fail(std::string_view key, std::string_view expected) const {
  const Entry* entry = find(key);
  throw FormatError(file_, entry ? entry->line : 0, key, expected);
}

std::vector<std::pair<std::string, std::string>> describe(const Case& c) {
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"lossgate-case", "1"},
      {"loss", c.spec.loss},
      {"reduction", std::string(name(c.spec.reduction))}};
  for (const auto& [option, value] : c.spec.options) {
    pairs.emplace_back(std::string(kOptionPrefix) + option, option_text(value));
  }
  pairs.emplace_back("shape", write_shape(c.shape));
  pairs.emplace_back("split", write_split(c.split));
  pairs.emplace_back("layout", name(c.layout));
  pairs.emplace_back("upstream", number_text(c.upstream));
  const std::pair<std::string, const std::string*> prose[] = {{"title", &c.provenance.title},
                                                              {"story", &c.provenance.story},
                                                              {"found_by", &c.provenance.found_by},
                                                              {"expect", &c.provenance.expect}};
  for (const auto& [key, text] : prose) {
    if (std::string tidied = tidy(*text); !tidied.empty()) pairs.emplace_back(key, tidied);
  }
  return pairs;
}

const LossSignature& read_loss(const Header& header, const Lookup& lookup) {
  const std::string& id = header.require("loss");
  const LossSignature* signature = lookup(id);
  if (!signature) header.fail("loss", "expected the id of a known loss, found " + in_quotes(id));
  return *signature;
}

void read_description(const Header& header, const LossSignature& signature, Missing missing,
                      const Shape& known, Case& c) {
  for (const Entry& entry : header.entries()) {
    if (is_key(entry.key, signature)) continue;
    throw FormatError(header.file(), entry.line, in_quotes(entry.key),
                      "expected a known key: loss, reduction, shape, split, layout, upstream, "
                      "title, story, found_by, expect or option.NAME, NAME being one of " +
                          names_of(signature.options) + " (loss " + signature.id + ")");
  }
  c.spec.loss = signature.id;
  c.spec.reduction = read_reduction(header, signature);
  read_options(header, signature, missing, c.spec);
  c.shape = missing == Missing::standard && !header.find("shape")
                ? known
                : read_shape(header, signature, known);
  check_empty_axes(header, signature, c.shape);
  c.split =
      read_split(header, value_or(header, "split", missing, "whole"), c.shape[Axis::sequences]);
  c.layout = read_layout(header, value_or(header, "layout", missing, "contiguous"));
  const std::string_view upstream = value_or(header, "upstream", missing, "1");
  const std::optional<double> number = parse_number(upstream);
  if (!number) {
    header.fail("upstream",
                "expected " + expected_element(Dtype::f64) + ", found " + in_quotes(upstream));
  }
  if (!std::isfinite(*number)) {
    header.fail("upstream", "expected a finite number, found " + in_quotes(upstream));
  }
  c.upstream = *number;
  c.provenance = {.title = provenance_text(header, "title"),
                  .found_by = provenance_text(header, "found_by"),
                  .story = provenance_text(header, "story"),
                  .expect = provenance_text(header, "expect")};
}

}  // namespace lossgate::corpora
