// SPDX-License-Identifier: Apache-2.0
#include "impl/external/config_arithmetic.h"

#include "impl/external/config_reader.h"

namespace lossgate::impl {
namespace {

constexpr double kMostTile = 1 << 20, kMostSlope = 100.0;

Format format(const Reader& reader, std::string_view key, const toml::node& node) {
  return reader.word<Format>(key, node,
                             {{"stored", Format()},
                              {"f64", Dtype::f64},
                              {"f32", Dtype::f32},
                              {"f16", Dtype::f16},
                              {"bf16", Dtype::bf16}});
}

template <class T>
T named(const Reader& reader, const toml::source_region& at, std::string_view what,
        std::string_view text, const std::vector<std::pair<std::string_view, T>>& words) {
  std::vector<std::string_view> known;
  for (const auto& [name, value] : words) {
    if (name == text) return value;
    known.push_back(name);
  }
  reader.fail(at, std::string(what) + " must be one of " + listed(known));
}

SumOrder order(const Reader& reader, const toml::node& node) {
  return named(reader, node.source(), "the order of a sum", node.value_or(std::string_view()),
               order_words());
}

double number(const Reader& reader, const char* key, double standard, double low, double high) {
  const double value = reader.value<double>(key, standard, "a number");
  if (value >= low && value <= high) return value;
  reader.fail(reader.find(key)->source(), in_quotes(key) + " must be a number from " +
                                              std::to_string(static_cast<int>(low)) + " to " +
                                              std::to_string(static_cast<int>(high)));
}

/// A sum by the name of its order, or a table that says more.
std::optional<DeclaredSum> sum(const Reader& reader, const std::string& file, const char* key) {
  const toml::node* found = reader.find(key);
  if (!found) return std::nullopt;
  if (!found->is_table()) return DeclaredSum{order(reader, *found), 1.0, {}};
  const Reader inner(*found->as_table(), file, in_quotes(key));
  inner.allow({"order", "width", "in"});
  DeclaredSum declared;
  if (const toml::node* node = inner.find("order")) declared.order = order(inner, *node);
  declared.width = number(inner, "width", 1.0, 1.0, kMostTile);
  if (const toml::node* node = inner.find("in")) declared.in = format(inner, "in", *node);
  return declared;
}

}  // namespace

DeclaredArithmetic read_arithmetic(const toml::table& table, const std::string& file,
                                   const LossSignature& loss) {
  const Reader reader(table, file, "[subject.arithmetic]");
  reader.allow({"compute", "form", "stages", "sum", "matmul", "exp_slope", "subnormals"});
  DeclaredArithmetic declared;
  if (const toml::node* node = reader.find("compute")) {
    declared.compute = format(reader, "compute", *node);
  }
  declared.form = reader.text("form");
  if (!declared.form.empty() && std::ranges::find(loss.forms, declared.form) == loss.forms.end()) {
    reader.fail(reader.find("form")->source(),
                "the forms of " + loss.id + " are " + listed(loss.forms));
  }
  if (const toml::table* stages = reader.table("stages")) {
    for (const auto& [key, value] : *stages) {
      const Stage stage = named(reader, key.source(), "a stage", key.str(), stage_words());
      declared.stages.emplace_back(stage, format(reader, key.str(), value));
    }
  }
  declared.sum = sum(reader, file, "sum");
  declared.matmul = sum(reader, file, "matmul");
  declared.exp_slope = number(reader, "exp_slope", 0.0, 0.0, kMostSlope);
  if (const toml::node* node = reader.find("subnormals")) {
    declared.subnormals_flushed =
        reader.word<bool>("subnormals", *node, {{"kept", false}, {"flushed", true}});
  }
  return declared;
}

}  // namespace lossgate::impl
