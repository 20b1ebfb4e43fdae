// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/teacher_message.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace lossgate::impl {
namespace {

using nlohmann::json;
using Index = std::int64_t;
using Lengths = std::vector<Index>;

constexpr float kMinusInfinity = -HUGE_VALF;

/// Where a complaint is about: a sequence of the response, a token of its completion.
struct Spot {
  Index sequence = -1, token = -1;
};

class Decoder {
 public:
  Decoder(std::string_view message, const Expected& expected, PayloadFault fault)
      : expected_(expected), fault_(fault), bytes_(message.size()) {
    // A byte of 0 would end the text for the parser.
    if (message.find('\0') == std::string_view::npos) {
      root_ = json::parse(message.begin(), message.end(), nullptr, /*allow_exceptions=*/false);
    }
    if (root_.type() != json::value_t::object) complain("cannot be read as a JSON object");
    binary_ = root_.count("shape") > 0;
  }

  TeacherAnswer decode() {
    expect_known_keys();
    read_lengths();
    if (binary_) read_shape();
    TeacherAnswer answer;
    answer.log_probs = array<float>(binary_ ? "logprobs_b64" : "logprobs", width_);
    answer.token_ids = array<std::int32_t>(binary_ ? "token_ids_b64" : "logprob_token_ids", width_);
    if (fault_ != PayloadFault::lengths_unchecked) expect_parallel(answer);
    if (fault_ == PayloadFault::json_lacks_actual && !binary_) return answer;
    const std::string suffix = binary_ ? "_b64" : "";
    if (root_.count("actual_logprobs" + suffix) > 0) {
      answer.actual_log_probs = array<float>("actual_logprobs" + suffix, 1);
      expect_singles(*answer.actual_log_probs);
    }
    if (root_.count("actual_token_ids" + suffix) > 0) {
      answer.actual_token_ids = array<std::int32_t>("actual_token_ids" + suffix, 1);
      expect_singles(*answer.actual_token_ids);
    }
    return answer;
  }

 private:
  [[noreturn]] void complain(const std::string& text, Spot spot = {}) const {
    throw Refusal{"payload", spot.sequence < 0 ? -1 : expected_.first + spot.sequence, spot.token,
                  "response " + std::to_string(expected_.response) + ": " + text};
  }

  void expect_known_keys() const {
    std::set<std::string> known = {"prompt_lengths", "sequence_lengths"};
    if (binary_) {
      known.insert({"shape", "completion_lengths", "logprobs_b64", "token_ids_b64",
                    "actual_logprobs_b64", "actual_token_ids_b64"});
    } else {
      known.insert({"logprobs", "logprob_token_ids", "actual_logprobs", "actual_token_ids"});
    }
    for (auto entry = root_.begin(); entry != root_.end(); ++entry) {
      if (!known.contains(entry.key())) complain("nothing reads the key " + entry.key());
    }
  }

  const json& member(const std::string& key) const {
    if (root_.count(key) == 0) complain(key + " is missing");
    return root_[key];
  }

  /// Counts, lengths and ids: JSON integers that fit into 31 bits.
  Index whole_number(const json& value, const std::string& key, Spot spot = {}) const {
    if (!value.is_number_integer() || value < 0 || value > INT32_MAX) {
      complain(key + " holds what is no count", spot);
    }
    return value.get<Index>();
  }

  Lengths whole_numbers(const std::string& key) const {
    const json& values = member(key);
    if (!values.is_array()) complain(key + " is not a list");
    Lengths numbers;
    for (const json& value : values) numbers.push_back(whole_number(value, key));
    return numbers;
  }

  /// Completion lengths, from what the request had.
  void read_lengths() {
    const Lengths prompts = whole_numbers("prompt_lengths");
    const Lengths wholes = whole_numbers("sequence_lengths");
    if (prompts.size() != wholes.size()) complain("prompt_lengths and sequence_lengths differ");
    if (static_cast<Index>(prompts.size()) > expected_.sequences) complain("too many sequences");
    std::size_t claimed = 0;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const Spot spot{static_cast<Index>(i), -1};
      Index completion = wholes[i] - prompts[i];
      if (fault_ == PayloadFault::prompt_unchecked) {
        completion = std::max<Index>(completion, 0);
      } else if (prompts[i] < 1 || completion < 1) {
        complain("a prompt of " + std::to_string(prompts[i]) + " in a sequence of " +
                     std::to_string(wholes[i]) + " tokens",
                 spot);
      }
      if (completion > expected_.tokens) complain("a completion is too long", spot);
      claimed += static_cast<std::size_t>(completion);
      if (claimed > bytes_) complain("more tokens than the message has bytes", spot);
      completions_.push_back(completion);
    }
    width_ = expected_.support;
  }

  Index longest() const {
    return completions_.empty() ? 0 : *std::ranges::max_element(completions_);
  }

  void read_shape() {
    const Lengths shape = whole_numbers("shape");
    if (shape.size() != 3 || shape[0] != static_cast<Index>(completions_.size()) ||
        shape[1] != longest()) {
      complain("shape does not fit the lengths");
    }
    width_ = shape[2];
    if (width_ < 1 || width_ > expected_.support) complain("shape does not fit the support");
    if (whole_numbers("completion_lengths") != completions_) {
      complain("completion_lengths does not fit the other lengths");
    }
  }

  template <class T>
  Ragged<T> array(const std::string& key, Index width) const {
    return binary_ ? unpacked<T>(key, width) : nested<T>(key, width);
  }

  template <class T>
  Ragged<T> unpacked(const std::string& key, Index width) const {
    const json& text = member(key);
    if (!text.is_string()) complain(key + " is not text");
    const Index rows = static_cast<Index>(completions_.size()), columns = longest();
    const auto bytes = static_cast<std::size_t>(rows * columns * width) * sizeof(T);
    const auto data = decode_base64(text.get_ref<const std::string&>(), bytes,
                                    fault_ == PayloadFault::truncated_base64_accepted);
    if (!data) complain(key + " is not the base64 text of that shape");
    Ragged<T> ragged;
    for (Index row = 0; row < rows; ++row) {
      const Index length = fault_ == PayloadFault::message_padding_read
                               ? columns
                               : completions_[static_cast<std::size_t>(row)];
      auto& tokens = ragged.emplace_back();
      for (Index t = 0; t < length; ++t) {
        auto& entries = tokens.emplace_back();
        for (Index k = 0; k < width; ++k) {
          const auto from = static_cast<std::size_t>((row * columns + t) * width + k) * sizeof(T);
          if (from + sizeof(T) > data->size()) break;
          // Little-endian, as is every machine that this runs on.
          T value;
          std::memcpy(&value, data->data() + from, sizeof value);
          entries.push_back(accepted(value, {row, t}));
        }
      }
    }
    return ragged;
  }

  template <class T>
  Ragged<T> nested(const std::string& key, Index width) const {
    const json& rows = member(key);
    if (!rows.is_array() || rows.size() != completions_.size()) {
      complain(key + " is not one list per sequence");
    }
    Ragged<T> ragged;
    for (std::size_t s = 0; s < rows.size(); ++s) {
      Spot spot{static_cast<Index>(s), -1};
      if (!rows[s].is_array() || static_cast<Index>(rows[s].size()) != completions_[s]) {
        complain(key + " is not one list per token of the completion", spot);
      }
      auto& tokens = ragged.emplace_back();
      for (const json& entries : rows[s]) {
        ++spot.token;
        if (!entries.is_array() || static_cast<Index>(entries.size()) > width) {
          complain(key + " has a token that is no list, or too long a one", spot);
        }
        auto& list = tokens.emplace_back();
        for (const json& entry : entries) list.push_back(accepted(read<T>(entry, key, spot), spot));
      }
    }
    return ragged;
  }

  template <class T>
  T read(const json& entry, const std::string& key, Spot spot) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(whole_number(entry, key, spot));
    } else {
      if (entry == "-inf") return kMinusInfinity;
      if (entry.is_null()) return NAN;  // how a NaN is written in JSON
      if (!entry.is_number()) complain(key + " holds what is no number", spot);
      const auto value = static_cast<T>(entry.get<double>());
      if (std::isinf(value)) complain(key + " holds a number that f32 does not", spot);
      return value;
    }
  }

  std::int32_t accepted(std::int32_t id, Spot spot) const {
    if (id < 0) complain("a token id is negative", spot);
    return id;
  }

  float accepted(float log_prob, Spot spot) const {
    if (std::isnan(log_prob) && fault_ == PayloadFault::nan_becomes_minus_inf) {
      return kMinusInfinity;
    }
    if (std::isnan(log_prob) || log_prob == HUGE_VALF) complain("a log-prob is none", spot);
    return log_prob;
  }

  void expect_parallel(const TeacherAnswer& answer) const {
    for (std::size_t s = 0; s < answer.log_probs.size(); ++s) {
      for (std::size_t t = 0; t < answer.log_probs[s].size(); ++t) {
        if (answer.log_probs[s][t].size() == answer.token_ids[s][t].size()) continue;
        if (fault_ == PayloadFault::truncated_base64_accepted) continue;
        complain("log-probs and token ids differ in number",
                 {static_cast<Index>(s), static_cast<Index>(t)});
      }
    }
  }

  template <class T>
  void expect_singles(const Ragged<T>& ragged) const {
    if (fault_ == PayloadFault::truncated_base64_accepted && binary_) return;
    for (std::size_t s = 0; s < ragged.size(); ++s) {
      for (std::size_t t = 0; t < ragged[s].size(); ++t) {
        if (ragged[s][t].size() == 1) continue;
        complain("the sampled token has no entry", {static_cast<Index>(s), static_cast<Index>(t)});
      }
    }
  }

  const Expected& expected_;
  PayloadFault fault_;
  std::size_t bytes_;
  json root_;
  bool binary_ = false;
  Lengths completions_;
  Index width_ = 0;
};

int six_bits(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::vector<unsigned char>> decode_base64(std::string_view text, std::size_t bytes,
                                                        bool partial) {
  if (!partial && text.size() != (bytes + 2) / 3 * 4) return std::nullopt;
  const std::size_t stray = partial ? text.size() : text.size() - (3 - bytes % 3) % 3;
  std::vector<unsigned char> data;
  unsigned pending = 0;
  int bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i >= stray && text[i] != '=') return std::nullopt;
    if (text[i] == '=' && (partial || i >= stray)) continue;
    const int six = six_bits(text[i]);
    if (six < 0) return std::nullopt;
    pending = (pending << 6 | static_cast<unsigned>(six)) & 0xffffu;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    data.push_back(static_cast<unsigned char>(pending >> bits));
    pending &= (1u << bits) - 1;
  }
  const bool whole = data.size() == bytes && pending == 0;
  if (!partial && !whole) return std::nullopt;
  return data;
}

TeacherAnswer decode_answer(std::string_view message, const Expected& expected,
                            PayloadFault fault) {
  return Decoder(message, expected, fault).decode();
}

}  // namespace lossgate::impl
