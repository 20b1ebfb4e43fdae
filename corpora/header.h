// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "corpora/format_error.h"
#include "reference/spec/case.h"

namespace lossgate::corpora {

/// Finds a loss by its id; null where there is none. Corpora know no loss by name.
using Lookup = std::function<const LossSignature*(std::string_view id)>;

/// One `key: value` of a file. `line` is 0 where the file has no lines.
struct Entry {
  std::string key;
  std::string value;
  int line = 0;
};

/// The keys and values of one file, each key once.
class Header {
 public:
  Header(std::string_view file, std::vector<Entry> entries);

  const std::string& file() const { return file_; }
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view key) const;
  const std::string& require(std::string_view key) const;  ///< throws FormatError

  /// Throws the FormatError that names this key and its line.
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;

 private:
  std::string file_;
  std::vector<Entry> entries_;
};

/// What a key that is left out means.
enum class Missing {
  error,     ///< it must be there
  standard,  ///< options: the signature's default; split: whole; layout: contiguous; upstream: 1
};

/// An option's value as a file has it.
std::string option_text(const OptionValue& value);

/// Everything of a case but its tensors, in the one order in which it is written.
std::vector<std::pair<std::string, std::string>> describe(const Case& c);

/// The signature of the loss that the header names.
const LossSignature& read_loss(const Header& header, const Lookup& lookup);

/// The inverse of describe: reads and checks spec, shape, split, layout, upstream and provenance.
/// The extents of axes that are in `known` must agree with it; with Missing::standard the key
/// `shape` may be left out, and `known` is then the shape. Unknown keys are errors.
void read_description(const Header& header, const LossSignature& signature, Missing missing,
                      const Shape& known, Case& c);

/// No axis is longer than this.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 27;

/// And none without a single element along it longer than this: a file's size vouches for the
/// others, but this is a claim that costs nothing to make.
inline constexpr std::int64_t kMaxEmptyExtent = std::int64_t{1} << 16;

}  // namespace lossgate::corpora
