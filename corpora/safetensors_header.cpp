// SPDX-License-Identifier: Apache-2.0
#include "corpora/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "corpora/format_error.h"

namespace lossgate::corpora {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMetadata = "__metadata__";

std::string_view stored_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return "F64";
    case Dtype::f32:
      return "F32";
    case Dtype::f16:
      return "F16";
    case Dtype::bf16:
      return "BF16";
    case Dtype::i64:
      return "I64";
    case Dtype::i32:
      return "I32";
    case Dtype::u8:
      return "U8";
    case Dtype::boolean:
      return "BOOL";
  }
  return "?";
}

/// Receives the events of nlohmann's JSON reader and knows at each which one the format expects. No
/// document is built, so neither depth nor a repeated key can do anything.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view file) : file_(file) {}

  TensorHeader take() {
    if (!complete_) fail("expected the header to be a JSON object");
    return std::move(header_);
  }

  // NOLINTBEGIN(readability-identifier-naming): the names are the library's.
  bool start_object(std::size_t) {
    if (at_ == At::start) return go(At::names);
    if (at_ == At::tensor) return go(At::tensor_keys);
    if (at_ == At::metadata) return go(At::metadata_keys);
    unexpected("an object");
  }
  bool end_object() {
    if (at_ == At::names) {
      complete_ = true;
      return go(At::end);
    }
    if (at_ == At::tensor_keys) close_tensor();
    return go(At::names);
  }
  bool key(std::string& text) {
    switch (at_) {
      case At::names:
        return open(text);
      case At::metadata_keys:
        if (!metadata_keys_.insert(text).second) fail(text, "expected each metadata key only once");
        header_.metadata.emplace_back(text, "");
        return go(At::metadata_value);
      default:
        return tensor_key(text);
    }
  }
  bool string(std::string& text) {
    if (at_ == At::metadata_value) {
      header_.metadata.back().second = text;
      return go(At::metadata_keys);
    }
    if (at_ != At::dtype) unexpected("a string");
    const auto stored = [&](Dtype dtype) { return stored_name(dtype) == text; };
    const auto dtype = std::ranges::find_if(kAllDtypes, stored);
    if (dtype == std::end(kAllDtypes)) {
      std::vector<std::string_view> names;
      for (Dtype known : kAllDtypes) names.push_back(stored_name(known));
      fail("expected a dtype of " + listed(names) + ", found " + in_quotes(text));
    }
    tensor().dtype = *dtype;
    return go(At::tensor_keys);
  }
  bool start_array(std::size_t) {
    if (at_ == At::shape) return go(At::extents);
    if (at_ == At::offsets) return go(At::offset);
    unexpected("an array");
  }
  bool end_array() {
    if (at_ == At::offset && offsets_ != 2) fail("expected two data_offsets");
    return go(At::tensor_keys);
  }
  bool number_unsigned(std::uint64_t number) {
    if (at_ == At::extents) {
      if (number > INT64_MAX) fail("expected a smaller extent, found " + std::to_string(number));
      tensor().extents.push_back(static_cast<std::int64_t>(number));
      return true;
    }
    if (at_ != At::offset) unexpected("a number");
    if (offsets_ == 2) fail("expected two data_offsets");
    (offsets_++ == 0 ? tensor().begin : tensor().end) = number;
    return true;
  }
  bool number_integer(std::int64_t number) { unexpected("the number " + std::to_string(number)); }
  bool number_float(double, const std::string& text) {
    unexpected("the number " + in_quotes(text));
  }
  bool boolean(bool) { unexpected("a boolean"); }
  bool null() { unexpected("null"); }
  bool binary(std::vector<std::uint8_t>&) { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) {
    fail("expected JSON, found something else at byte " + std::to_string(position) +
         " of the header");
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  enum class At {
    start,
    names,
    tensor,
    tensor_keys,
    dtype,
    shape,
    extents,
    offsets,
    offset,
    metadata,
    metadata_keys,
    metadata_value,
    end
  };

  bool go(At next) {
    at_ = next;
    return true;
  }

  [[noreturn]] void fail(std::string_view key, const std::string& expected) const {
    throw FormatError(file_, 0, in_quotes(key), expected);
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw FormatError(file_, 0, name_.empty() ? "header" : "tensor " + in_quotes(name_), expected);
  }
  [[noreturn]] void unexpected(const std::string& found) const {
    switch (at_) {
      case At::start:
        fail("expected the header to be a JSON object, found " + found);
      case At::dtype:
        fail("expected a string as dtype, found " + found);
      case At::shape:
      case At::extents:
        fail("expected counts as shape, found " + found);
      case At::offsets:
      case At::offset:
        fail("expected two counts as data_offsets, found " + found);
      case At::metadata:
      case At::metadata_keys:
      case At::metadata_value:
        fail("expected an object of strings as __metadata__, found " + found);
      default:
        fail("expected an object with dtype, shape and data_offsets, found " + found);
    }
  }

  bool open(const std::string& name) {
    name_ = name;
    if (!names_.insert(name).second) fail("expected each name only once");
    if (name == kMetadata) return go(At::metadata);
    header_.tensors.push_back({});
    tensor().name = name;
    seen_ = {};
    offsets_ = 0;
    return go(At::tensor);
  }

  bool tensor_key(const std::string& text) {
    constexpr std::pair<std::string_view, At> kKeys[] = {
        {"dtype", At::dtype}, {"shape", At::shape}, {"data_offsets", At::offsets}};
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (kKeys[i].first != text) continue;
      if (seen_[i]) fail("expected " + text + " only once");
      seen_[i] = true;
      return go(kKeys[i].second);
    }
    fail("expected dtype, shape and data_offsets only, found the key " + in_quotes(text));
  }

  void close_tensor() {
    const bool all = std::ranges::all_of(seen_, [](bool seen) { return seen; });
    if (!all) fail("expected dtype, shape and data_offsets, found not all of them");
  }

  TensorEntry& tensor() { return header_.tensors.back(); }

  std::string file_;
  TensorHeader header_;
  At at_ = At::start;
  std::string name_;
  std::set<std::string> names_;
  std::set<std::string> metadata_keys_;
  std::array<bool, 3> seen_{};
  int offsets_ = 0;
  bool complete_ = false;
};

}  // namespace

TensorHeader read_tensor_header(std::string_view json, std::string_view file) {
  HeaderReader reader(file);
  Json::sax_parse(json.begin(), json.end(), &reader);
  return reader.take();
}

std::string write_tensor_header(const TensorHeader& header) {
  Json json = Json::object();
  if (!header.metadata.empty()) {
    Json metadata = Json::object();
    for (const auto& [key, value] : header.metadata) metadata[key] = value;
    json[std::string(kMetadata)] = std::move(metadata);
  }
  for (const TensorEntry& tensor : header.tensors) {
    Json entry = Json::object();
    entry["dtype"] = stored_name(tensor.dtype);
    entry["shape"] = tensor.extents;
    entry["data_offsets"] = {tensor.begin, tensor.end};
    json[tensor.name] = std::move(entry);
  }
  return json.dump();
}

}  // namespace lossgate::corpora
