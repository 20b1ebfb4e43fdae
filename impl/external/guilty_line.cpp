// SPDX-License-Identifier: Apache-2.0
#include "impl/external/guilty_line.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "impl/external/greeting.h"

namespace lossgate::impl {
namespace {

/// Whether a number may become an integer; what that does not hold is undefined.
bool fits(double number, double most) { return number >= 0.0 && number <= most; }

/// A line's number, 0 where it cannot be one. Throws where it is no number.
int line_of(const nlohmann::json& line) {
  const double number = line.get<double>();
  return fits(number, 0x1p30) ? static_cast<int>(number) : 0;
}

/// The indices of an element, none where they cannot be some. Throws where they are no numbers.
std::vector<std::int64_t> indices_of(const nlohmann::json& list) {
  const auto numbers = list.get<std::vector<double>>();
  const auto is_index = [](double number) { return fits(number, 0x1p53); };
  if (!std::ranges::all_of(numbers, is_index)) return {};
  return {numbers.begin(), numbers.end()};
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
