// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <toml++/toml.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "corpora/format_error.h"
#include "corpora/nearest_name.h"
#include "impl/external/config.h"

namespace lossgate::impl {

using corpora::in_quotes;
using corpora::listed;

/// The whole text. Throws ConfigError where it is no TOML.
toml::table parse_toml(std::string_view text, const std::string& file);

/// One table of a lossgate.toml: reads keys by type, and says file, line and column of what is
/// wrong in a ConfigError.
class Reader {
 public:
  Reader(const toml::table& table, std::string file, std::string what)
      : table_(table), file_(std::move(file)), what_(std::move(what)) {}

  [[noreturn]] void fail(const toml::source_region& at, const std::string& message) const {
    throw ConfigError(file_ + ":" + std::to_string(at.begin.line) + ":" +
                      std::to_string(at.begin.column) + ": " + message);
  }
  [[noreturn]] void fail(const std::string& message) const { fail(table_.source(), message); }

  void allow(std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : table_) {
      if (std::ranges::find(known, key.str()) == known.end()) {
        fail(key.source(), what_ + " has no key " + in_quotes(key.str()) + "; it may have " +
                               listed(known) +
                               corpora::meant_text(key.str(), {known.begin(), known.end()}));
      }
    }
  }

  const toml::node* find(std::string_view key) const { return table_.get(key); }

  template <class T>
  T value(std::string_view key, T standard, const char* expected) const {
    const toml::node* node = find(key);
    if (!node) return standard;
    const auto value = node->value<T>();
    if (!value) fail(node->source(), in_quotes(key) + " must be " + expected);
    return *value;
  }
  std::string text(std::string_view key, std::string standard = "") const {
    const toml::node* node = find(key);
    if (node && !node->is_string()) fail(node->source(), in_quotes(key) + " must be a string");
    return value<std::string>(key, std::move(standard), "a string");
  }
  /// Flags list names with commas between them, records and workers have one on a line.
  std::string name(std::string_view key, std::string standard) const {
    std::string own = text(key, std::move(standard));
    if (own.find_first_of(",\n\r") == std::string::npos) return own;
    const std::string reason = in_quotes(key) + " must have no comma and no line break";
    if (const toml::node* node = find(key)) fail(node->source(), reason);
    fail(reason);
  }
  std::string required(std::string_view key, const char* example) const {
    if (!find(key)) fail(what_ + " needs " + std::string(key) + " = " + example);
    return text(key);
  }
  bool flag(std::string_view key, bool standard) const {
    return value<bool>(key, standard, "true or false");
  }

  std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> list;
    const toml::node* node = find(key);
    if (!node) return list;
    if (!node->is_array()) fail(node->source(), in_quotes(key) + " must be a list of strings");
    for (const toml::node& item : *node->as_array()) {
      const auto text = item.value_exact<std::string>();
      if (!text) fail(item.source(), in_quotes(key) + " must be a list of strings");
      list.push_back(*text);
    }
    return list;
  }

  /// The table under a key, or null.
  const toml::table* table(std::string_view key) const {
    const toml::node* node = find(key);
    if (node && !node->is_table()) fail(node->source(), in_quotes(key) + " must be a table");
    return node ? node->as_table() : nullptr;
  }

  template <class T>
  T one_of(std::string_view key, T standard,
           std::initializer_list<std::pair<std::string_view, T>> words) const {
    const toml::node* node = find(key);
    return node ? word(key, *node, words) : standard;
  }

  template <class T>
  T word(std::string_view key, const toml::node& node,
         std::initializer_list<std::pair<std::string_view, T>> words) const {
    const auto text = node.value_exact<std::string>();
    std::vector<std::string> known;
    for (const auto& [name, value] : words) {
      if (text && *text == name) return value;
      known.emplace_back(name);
    }
    fail(node.source(), in_quotes(key) + " must be one of " + listed(known) +
                            corpora::meant_text(text.value_or(""), known));
  }

 private:
  const toml::table& table_;
  std::string file_, what_;
};

}  // namespace lossgate::impl
