// SPDX-License-Identifier: Apache-2.0
#include "impl/external/guilty_line.h"

#include <nlohmann/json.hpp>

#include "impl/external/greeting.h"

namespace lossgate::impl {

std::optional<GuiltyLine> guilty_of(const corpora::TensorFile& answer) {
  const std::string text = text_of(answer, "guilty");
  if (text.empty()) return std::nullopt;
  const auto json = nlohmann::json::parse(text);
  GuiltyLine line;
  line.source.file = json.at("file").get<std::string>();
  line.source.line = json.at("line").get<int>();
  line.text = json.at("text").get<std::string>();
  // Workers of somebody else's may not say these.
  line.code = json.value("code", "");
  line.operation = json.value("operation", "");
  line.backward = json.value("pass", "") == "backward";
  line.element = json.value("element", std::vector<std::int64_t>());
  return line;
}

}  // namespace lossgate::impl
