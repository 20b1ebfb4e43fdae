// SPDX-License-Identifier: Apache-2.0
#include "impl/external/guilty_line.h"

#include <nlohmann/json.hpp>

#include "impl/external/greeting.h"

namespace lossgate::impl {
namespace {

/// A line's number; anything else is none, which converting it would not find.
int line_of(const nlohmann::json& number) {
  constexpr int kMost = 1 << 30;
  return number.is_number_integer() && number >= 0 && number <= kMost ? number.get<int>() : 0;
}

/// The indices of an element, if they are some.
std::vector<std::int64_t> indices_of(const nlohmann::json& list) {
  std::vector<std::int64_t> indices;
  for (const auto& index : list) {
    if (!index.is_number_integer()) return {};
    indices.push_back(index.get<std::int64_t>());
  }
  return indices;
}

}  // namespace

std::optional<GuiltyLine> guilty_of(const corpora::TensorFile& answer) {
  const std::string text = text_of(answer, "guilty");
  if (text.empty()) return std::nullopt;
  const auto json = nlohmann::json::parse(text);
  GuiltyLine line;
  line.source.file = json.at("file").get<std::string>();
  line.source.line = line_of(json.at("line"));
  line.text = json.at("text").get<std::string>();
  // Workers of somebody else's may not say these.
  line.code = json.value("code", "");
  line.operation = json.value("operation", "");
  line.backward = json.value("pass", "") == "backward";
  line.element = indices_of(json.value("element", nlohmann::json::array()));
  return line;
}

}  // namespace lossgate::impl
