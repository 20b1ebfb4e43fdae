// SPDX-License-Identifier: Apache-2.0
#include "report/parsed_json.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "report/record_file.h"

namespace lossgate::report {
namespace {

// "line 3, column 14", for a byte counted from 1.
std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(text.size(), byte - (byte > 0)));
  const auto lines = std::ranges::count(before, '\n');
  const std::size_t line_end = before.rfind('\n');
  const std::size_t begin = line_end == std::string_view::npos ? 0 : line_end + 1;
  return "line " + std::to_string(lines + 1) + ", column " +
         std::to_string(before.size() - begin + 1);
}

}  // namespace

std::string read_text(const std::filesystem::path& file, const std::string& expected) {
  if (std::filesystem::is_directory(file)) {
    throw RecordError(file.string() + ": is a directory; expected " + expected);
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) throw RecordError(file.string() + ": cannot be opened; expected " + expected);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

nlohmann::ordered_json parsed_json(std::string_view text, std::string_view file_name,
                                   std::string_view writer) {
  try {
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::ordered_json::parse_error& error) {
    const bool ends = error.byte > text.size();
    throw RecordError(std::string(file_name) + ": " + place_of(text, error.byte) + ": expected " +
                      (ends ? "more: the file ends here, it was cut"
                            : "JSON, as " + std::string(writer) + " writes it"));
  } catch (const nlohmann::ordered_json::out_of_range& error) {
    throw RecordError(std::string(file_name) + ": a number that fits a double is expected; " +
                      error.what());
  }
}

}  // namespace lossgate::report
