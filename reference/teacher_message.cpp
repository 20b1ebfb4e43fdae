// SPDX-License-Identifier: Apache-2.0
#include "reference/teacher_message.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "reference/base64.h"

namespace lossgate::reference {
namespace {

using Json = nlohmann::json;
using Index = std::int64_t;

constexpr Index kLargestInteger = std::numeric_limits<std::int32_t>::max();

/// The names of one form's arrays.
struct Names {
  const char *log_probs, *token_ids, *actual_log_probs, *actual_token_ids;
};
constexpr Names kNested = {"logprobs", "logprob_token_ids", "actual_logprobs", "actual_token_ids"};
constexpr Names kPacked = {"logprobs_b64", "token_ids_b64", "actual_logprobs_b64",
                           "actual_token_ids_b64"};

/// One response while it is read; every complaint names it. A byte of 0 ends the parser's text.
class Response {
 public:
  Response(const Shape& shape, Index number, Index first_sequence)
      : shape_(shape), number_(number), first_(first_sequence) {}

  TeacherRows read(std::string_view text) {
    if (text.find('\0') == std::string_view::npos) message_ = Json::parse(text, nullptr, false);
    if (!message_.is_object()) refuse("is no JSON object");
    packed_ = message_.contains("shape");
    names_ = packed_ ? &kPacked : &kNested;
    check_keys();
    measure();
    if (packed_) check_shape();
    read_array(names_->log_probs, false, [this](Index s, Index t, const Json& v, Index at) {
      token(s, t).log_probs.push_back(log_prob(v, s, t, at));
    });
    read_array(names_->token_ids, false, [this](Index s, Index t, const Json& v, Index at) {
      token(s, t).token_ids.push_back(token_id(v, s, t, at));
    });
    if (has_actual_log_probs()) {
      read_array(names_->actual_log_probs, true, [this](Index s, Index t, const Json& v, Index at) {
        token(s, t).actual_log_prob = log_prob(v, s, t, at);
      });
    }
    if (has_actual_token_ids()) {
      read_array(names_->actual_token_ids, true, [this](Index s, Index t, const Json& v, Index at) {
        token(s, t).actual_token_id = token_id(v, s, t, at);
      });
    }
    check_tokens();
    return std::move(rows_);
  }

  bool has_actual_log_probs() const { return message_.contains(names_->actual_log_probs); }
  bool has_actual_token_ids() const { return message_.contains(names_->actual_token_ids); }

  [[noreturn]] void refuse(const std::string& what, Index sequence = -1, Index at = -1) const {
    throw Refusal{.argument = "payload",
                  .sequence = sequence < 0 ? -1 : first_ + sequence,
                  .token = at,
                  .message = "response " + std::to_string(number_) + " " + what};
  }

 private:
  TeacherToken& token(Index s, Index t) {
    return rows_[static_cast<std::size_t>(s)][static_cast<std::size_t>(t)];
  }
  Index sequences() const { return static_cast<Index>(rows_.size()); }
  Index completion(Index s) const {
    return static_cast<Index>(rows_[static_cast<std::size_t>(s)].size());
  }

  /// A key that nothing reads would drop its array in silence.
  void check_keys() const {
    const auto named = [this](const std::string& key) {
      for (const char* name : {names_->log_probs, names_->token_ids, names_->actual_log_probs,
                               names_->actual_token_ids, "prompt_lengths", "sequence_lengths"}) {
        if (key == name) return true;
      }
      return packed_ && (key == "shape" || key == "completion_lengths");
    };
    for (const auto& [key, value] : message_.items()) {
      if (!named(key)) refuse("has the unknown key '" + key + "'");
    }
  }

  const Json& at(const char* key) const {
    const auto found = message_.find(key);
    if (found == message_.end()) refuse("lacks " + std::string(key));
    return *found;
  }

  const Json& list(const Json& value, Index length, const std::string& what) const {
    if (!value.is_array()) refuse(what + " is no array");
    if (static_cast<Index>(value.size()) != length) {
      refuse(what + " has " + std::to_string(value.size()) + " entries, not " +
             std::to_string(length));
    }
    return value;
  }

  Index integer(const Json& value, const std::string& what) const {
    const bool fits = value.is_number_unsigned() &&
                      value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kLargestInteger);
    if (!fits) refuse(what + " is no integer from 0 to " + std::to_string(kLargestInteger));
    return value.get<Index>();
  }

  /// Makes one row for each sequence, as long as its completion.
  void measure() {
    const Json& prompts = at("prompt_lengths");
    const auto count = static_cast<Index>(prompts.size());
    list(prompts, count, "prompt_lengths");
    const Json& lengths = list(at("sequence_lengths"), count, "sequence_lengths");
    if (count > shape_[Axis::sequences] - first_) refuse("has more sequences than were asked for");
    Index room = shape_[Axis::bytes];
    for (Index s = 0; s < count; ++s) {
      const auto i = static_cast<std::size_t>(s);
      const Index prompt = integer(prompts[i], "prompt_lengths");
      const Index length = integer(lengths[i], "sequence_lengths");
      if (prompt == 0) refuse("has a sequence without a prompt", s);
      if (prompt >= length) {
        refuse("has a prompt of " + std::to_string(prompt) + " tokens in a sequence of " +
                   std::to_string(length),
               s);
      }
      if (length - prompt > shape_[Axis::tokens]) {
        refuse("has a completion of " + std::to_string(length - prompt) + " tokens, beyond " +
                   std::to_string(shape_[Axis::tokens]),
               s);
      }
      // Every token takes a byte and more: no claim gets more room than the message itself.
      room -= length - prompt;
      if (room < 0) refuse("has lengths that its bytes cannot hold", s);
      rows_.emplace_back(static_cast<std::size_t>(length - prompt));
      longest_ = std::max(longest_, length - prompt);
    }
  }

  void check_shape() {
    const Json& shape = list(at("shape"), 3, "shape");
    if (integer(shape[0], "shape") != sequences() || integer(shape[1], "shape") != longest_) {
      refuse("has a shape that is not [sequences, longest completion, entries]");
    }
    entries_ = integer(shape[2], "shape");
    if (entries_ == 0 || entries_ > shape_[Axis::support]) {
      refuse("has no entries, or more than were asked for");
    }
    const Json& lengths = list(at("completion_lengths"), sequences(), "completion_lengths");
    for (Index s = 0; s < sequences(); ++s) {
      const Index given = integer(lengths[static_cast<std::size_t>(s)], "completion_lengths");
      if (given != completion(s)) refuse("has completion_lengths that are not the lengths", s);
    }
  }

  /// Calls visit(sequence, token, value) for every entry of the array before the completion's end;
  /// in the binary form `value` is null and the element lies at `at` in packed_bytes_.
  template <class Visit>
  void read_array(const char* key, bool single, Visit&& visit) {
    if (packed_) {
      const Index width = single ? 1 : entries_;
      if (!at(key).is_string()) refuse(std::string(key) + " is no text");
      auto bytes =
          read_base64(at(key).get_ref<const std::string&>(), 4 * sequences() * longest_ * width);
      if (!bytes) refuse(std::string(key) + " is not base64 of the shape's size");
      bytes_ = std::move(*bytes);
      for (Index s = 0; s < sequences(); ++s) {
        for (Index i = 0; i < completion(s) * width; ++i) {
          visit(s, i / width, Json(), 4 * (s * longest_ * width + i));
        }
      }
      return;
    }
    const Json& nest = list(at(key), sequences(), key);
    for (Index s = 0; s < sequences(); ++s) {
      const Json& row = list(nest[static_cast<std::size_t>(s)], completion(s), key);
      for (Index t = 0; t < completion(s); ++t) {
        const Json& entries = row[static_cast<std::size_t>(t)];
        const Index most = single ? 1 : shape_[Axis::support];
        if (!entries.is_array() || static_cast<Index>(entries.size()) > most ||
            (single && entries.empty())) {
          refuse(std::string(key) + " has a token with another number of entries", s, t);
        }
        for (const Json& entry : entries) visit(s, t, entry, -1);
      }
    }
  }

  std::uint32_t word(Index offset) const {
    std::uint32_t bits = 0;
    for (std::size_t i = 4; i-- > 0;) {
      bits = bits << 8 | bytes_[static_cast<std::size_t>(offset) + i];
    }
    return bits;
  }

  /// A number of the format f32, or -inf. A server that writes NaN as JSON writes null.
  double log_prob(const Json& value, Index s, Index t, Index offset) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (packed_) {
      const double stored = std::bit_cast<float>(word(offset));
      if (std::isnan(stored)) refuse("has a log-prob that is NaN", s, t);
      if (stored == kInfinity) refuse("has a log-prob that is infinity", s, t);
      return stored;
    }
    if (value.is_string() && value.get_ref<const std::string&>() == "-inf") return -kInfinity;
    if (!value.is_number()) refuse("has a log-prob that is no number", s, t);
    const double rounded = round_to(Dtype::f32, value.get<double>());
    if (std::isinf(rounded)) refuse("has a log-prob beyond the range of f32", s, t);
    return rounded;
  }

  Index token_id(const Json& value, Index s, Index t, Index offset) const {
    if (!packed_) return integer(value, "a token id");
    const auto id = static_cast<std::int32_t>(word(offset));
    if (id < 0) refuse("has a negative token id", s, t);
    return id;
  }

  /// Log-probs and their ids are one list.
  void check_tokens() {
    for (Index s = 0; s < sequences(); ++s) {
      for (Index t = 0; t < completion(s); ++t) {
        if (token(s, t).log_probs.size() != token(s, t).token_ids.size()) {
          refuse("has a token with more log-probs than ids, or fewer", s, t);
        }
      }
    }
  }

  const Shape& shape_;
  Index number_, first_;
  Json message_;
  bool packed_ = false;
  const Names* names_ = &kNested;
  TeacherRows rows_;
  Index longest_ = 0, entries_ = 0;
  std::vector<std::uint8_t> bytes_;
};

void check_rectangle(const Shape& shape) {
  Index entries = 1;
  for (Axis axis : {Axis::sequences, Axis::tokens, Axis::support}) {
    if (shape[axis] < 0 || shape[axis] > kMostTeacherEntries / entries) {
      throw Refusal{.argument = "payload", .message = "is for a rectangle of an absurd size"};
    }
    entries *= std::max<Index>(shape[axis], 1);
  }
}

TeacherRows read_rows(const Case& c) {
  check_rectangle(c.shape);
  const Tensor& payload = c.batch.at("payload");
  const Index bytes = c.shape[Axis::bytes];
  TeacherRows rows;
  bool with_log_probs = false, with_token_ids = false;
  for (Index r = 0; r < c.shape[Axis::responses]; ++r) {
    const std::string_view text(reinterpret_cast<const char*>(payload.bytes.data()) + r * bytes,
                                static_cast<std::size_t>(bytes));
    Response response(c.shape, r, static_cast<Index>(rows.size()));
    TeacherRows own = response.read(text);
    if (r == 0) {
      with_log_probs = response.has_actual_log_probs();
      with_token_ids = response.has_actual_token_ids();
    }
    if (with_log_probs != response.has_actual_log_probs()) {
      response.refuse("and response 0 do not both have actual_logprobs");
    }
    if (with_token_ids != response.has_actual_token_ids()) {
      response.refuse("and response 0 do not both have actual_token_ids");
    }
    std::ranges::move(own, std::back_inserter(rows));
  }
  if (static_cast<Index>(rows.size()) != c.shape[Axis::sequences]) {
    throw Refusal{.argument = "payload",
                  .message = "has " + std::to_string(rows.size()) + " sequences, asked for were " +
                             std::to_string(c.shape[Axis::sequences])};
  }
  return rows;
}

}  // namespace

std::variant<TeacherRows, Refusal> read_teacher_payload(const Case& c) {
  try {
    return read_rows(c);
  } catch (Refusal& refusal) {
    return std::move(refusal);
  }
}

}  // namespace lossgate::reference
