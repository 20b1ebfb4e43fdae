// SPDX-License-Identifier: Apache-2.0
#include "corpora/files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <system_error>

#include "corpora/safetensors.h"
#include "corpora/text_codec.h"

namespace lossgate::corpora {
namespace {

namespace fs = std::filesystem;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

bool is_case_file(const fs::path& path) {
  const fs::path extension = path.extension();
  return extension == ".case" || extension == ".safetensors";
}

/// A new file beside `path` that no other process writes to.
fs::path open_beside(const fs::path& path, File& file) {
  std::random_device random;
  for (int attempt = 0;; ++attempt) {
    fs::path beside = path;
    beside.replace_filename("." + path.filename().string() + "." + std::to_string(random()));
    file.reset(std::fopen(beside.c_str(), "wbx"));
    if (file) return beside;
    const std::error_code error(errno, std::generic_category());
    if (error != std::errc::file_exists || attempt == 100) {
      throw fs::filesystem_error("cannot write", path, error);
    }
  }
}

/// Closes it, too.
std::error_code written(std::span<const std::byte> bytes, File file) {
  std::error_code error;
  const bool whole = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  if (!whole) error.assign(errno, std::generic_category());
  if (std::fclose(file.release()) != 0 && !error) error.assign(errno, std::generic_category());
  return error;
}

}  // namespace

std::vector<std::byte> read_file(const fs::path& path, std::uintmax_t max_bytes) {
  const std::string name = path.generic_string();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw FormatError(name, 0, "", "expected a file, found none");
  if (fs::is_directory(status))
    throw FormatError(name, 0, "", "expected a file, found a directory");
  if (!fs::is_regular_file(status)) {
    throw FormatError(name, 0, "", "expected a regular file, found something else");
  }
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) throw FormatError(name, 0, "", "expected a readable file: " + error.message());
  if (size > max_bytes) {
    throw FormatError(
        name, 0, "",
        "expected at most " + std::to_string(max_bytes) + " bytes, found " + std::to_string(size));
  }
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) {
    const std::error_code reason(errno, std::generic_category());
    throw FormatError(name, 0, "", "expected a readable file: " + reason.message());
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
  if (bytes.size() != size)
    throw FormatError(name, 0, "", "expected a file that can be read whole");
  return bytes;
}

std::string read_text(const fs::path& path, std::uintmax_t max_bytes) {
  const std::vector<std::byte> bytes = read_file(path, max_bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Case read_case_file(const fs::path& path, const Lookup& lookup) {
  const std::vector<std::byte> bytes = read_file(path);
  const std::string name = path.generic_string();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool framed = text.size() > 8 && text[8] == '{' && !text.starts_with("lossgate-case");
  const bool is_safetensors =
      path.extension() == ".safetensors" || (path.extension() != ".case" && framed);
  if (text.empty()) throw FormatError(name, 0, "", "expected a case, found an empty file");
  if (text.starts_with("PK\3\4") || text.starts_with("\x80\2")) {
    throw FormatError(name, 0, "",
                      "expected a case, found what torch.save writes; dumps of tensors are read "
                      "as lossgate.watch writes them, in .safetensors");
  }
  return is_safetensors ? decode_safetensors(bytes, name, lookup) : decode(text, name, lookup);
}

void write_file(const fs::path& path, std::span<const std::byte> bytes) {
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  File file;
  if (fs::exists(there) && !fs::is_regular_file(there)) {  // /dev/stdout, a pipe
    file.reset(std::fopen(path.c_str(), "wb"));
    if (!file) error.assign(errno, std::generic_category());
    if (file) error = written(bytes, std::move(file));
    if (error) throw fs::filesystem_error("cannot write", path, error);
    return;
  }
  const fs::path to = fs::is_symlink(path, error) ? fs::weakly_canonical(path) : path;
  const fs::path beside = open_beside(to, file);
  error = written(bytes, std::move(file));
  if (!error) fs::rename(beside, to, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(beside, ignored);
  throw fs::filesystem_error("cannot write", path, error);
}

void write_file(const fs::path& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text)));
}

std::vector<fs::path> list_case_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().starts_with('.')) {
      at.disable_recursion_pending();
    } else if (is_case_file(at->path())) {
      files.push_back(at->path());
    }
  }
  if (error) {
    throw FormatError(folder.generic_string(), 0, "",
                      "expected a folder that can be listed: " + error.message());
  }
  std::ranges::sort(files, {}, [](const fs::path& path) { return path.generic_string(); });
  return files;
}

}  // namespace lossgate::corpora
