// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lossgate::report {

/// What stands in the file. Throws RecordError where it cannot be read; `expected` is what it
/// should have been.
std::string read_text(const std::filesystem::path& file, const std::string& expected);

/// The text as JSON, keys in their order. Throws RecordError with the file, the line and the column
/// of what is wrong, or of where the text was cut. `writer` is who writes such files.
nlohmann::ordered_json parsed_json(std::string_view text, std::string_view file_name,
                                   std::string_view writer);

}  // namespace lossgate::report
