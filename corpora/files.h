// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "corpora/format_error.h"
#include "corpora/header.h"
#include "reference/spec/case.h"

namespace lossgate::corpora {

/// No case is larger; what is gets refused before it is read.
inline constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{2} << 30;

/// The whole of a regular file. Throws FormatError where there is none, where it cannot be read or
/// is too large.
std::vector<std::byte> read_file(const std::filesystem::path& path,
                                 std::uintmax_t max_bytes = kMaxFileBytes);

/// The same, as text.
std::string read_text(const std::filesystem::path& path, std::uintmax_t max_bytes = kMaxFileBytes);

/// Reads a case in either form: `.case` and `.safetensors` say which, for other names the content
/// does. Errors name the file as `path` does. Throws FormatError.
Case read_case_file(const std::filesystem::path& path, const Lookup& lookup);

/// Writes the whole file or leaves what was there: the bytes go to a file beside it, which then
/// takes its name. Missing folders are made. Throws std::filesystem::filesystem_error.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file(const std::filesystem::path& path, std::string_view text);

/// The case files in a folder and those below it, in the order of their names; hidden ones do not
/// count. Throws FormatError where `folder` is no folder.
std::vector<std::filesystem::path> list_case_files(const std::filesystem::path& folder);

}  // namespace lossgate::corpora
