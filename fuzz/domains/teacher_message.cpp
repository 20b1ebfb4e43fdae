// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/teacher_message.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace lossgate::fuzz {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// The shortest decimal of the number as f64, which is the form that reads back to every bit.
std::string number_text(float value) {
  if (std::isnan(value)) return "null";
  if (std::isinf(value)) return value < 0.0F ? "\"-inf\"" : "\"inf\"";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, static_cast<double>(value)).ptr;
  std::string written(text, end);
  if (written == "-0") written = "-0.0";  // an integer has no sign of zero
  return written;
}

std::string number_text(std::int64_t value) { return std::to_string(value); }

/// [a,b,c] of what `text` makes of the items.
template <class Items, class Text>
std::string list_text(const Items& items, Text&& text) {
  std::string list = "[";
  for (const auto& item : items) {
    if (list.size() > 1) list += ',';
    list += text(item);
  }
  return list + "]";
}

/// A list over sequences of lists over tokens.
template <class Text>
std::string nested_text(const Message& message, Text&& text) {
  return list_text(message.sequences, [&](const MessageSequence& sequence) {
    return list_text(sequence.tokens, text);
  });
}

std::int64_t longest(const Message& message) {
  std::size_t most = 0;
  for (const MessageSequence& s : message.sequences) most = std::max(most, s.tokens.size());
  return static_cast<std::int64_t>(most);
}

/// At least 1: a rectangle without entries is no message.
std::int64_t widest(const Message& message) {
  std::size_t most = 1;
  for (const MessageSequence& s : message.sequences) {
    for (const MessageToken& token : s.tokens) most = std::max(most, token.log_probs.size());
  }
  return static_cast<std::int64_t>(most);
}

void append_word(std::vector<std::uint8_t>& bytes, std::uint32_t word) {
  for (int shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<std::uint8_t>(word >> shift));
  }
}

/// The rectangle [sequences, longest, width]: value(token, k) up to the ends, `behind` after them.
template <class Value>
std::string rectangle_text(const Message& message, std::int64_t width, std::uint32_t behind,
                           std::size_t dropped, Value&& value) {
  std::vector<std::uint8_t> bytes;
  for (const MessageSequence& sequence : message.sequences) {
    for (std::size_t t = 0; t < static_cast<std::size_t>(longest(message)); ++t) {
      for (std::size_t k = 0; k < static_cast<std::size_t>(width); ++k) {
        const bool inside = t < sequence.tokens.size();
        append_word(bytes, inside ? value(sequence.tokens[t], k) : behind);
      }
    }
  }
  bytes.resize(bytes.size() - std::min(bytes.size(), 4 * dropped));
  return '"' + write_base64(bytes) + '"';
}

Members lengths_of(const Message& message) {
  return {{"prompt_lengths",
           list_text(message.sequences, [](const auto& s) { return number_text(s.prompt); })},
          {"sequence_lengths",
           list_text(message.sequences, [](const auto& s) { return number_text(s.length); })}};
}

}  // namespace

Members json_form(const Message& message) {
  const auto log_prob = [](float x) { return number_text(x); };
  const auto id = [](std::int32_t x) { return number_text(std::int64_t{x}); };
  Members members = lengths_of(message);
  members.emplace_back("logprobs", nested_text(message, [&](const MessageToken& token) {
                         return list_text(token.log_probs, log_prob);
                       }));
  members.emplace_back("logprob_token_ids", nested_text(message, [&](const MessageToken& token) {
                         return list_text(token.ids, id);
                       }));
  if (message.with_actual_log_probs) {
    members.emplace_back("actual_logprobs", nested_text(message, [&](const MessageToken& token) {
                           return "[" + log_prob(token.actual_log_prob) + "]";
                         }));
  }
  if (message.with_actual_ids) {
    members.emplace_back("actual_token_ids", nested_text(message, [&](const MessageToken& token) {
                           return "[" + id(token.actual_id) + "]";
                         }));
  }
  return members;
}

Members binary_form(const Message& message, const Packing& packing) {
  const std::int64_t width = widest(message);
  const auto behind = std::bit_cast<std::uint32_t>(packing.behind);
  Members members = lengths_of(message);
  const auto count = static_cast<std::int64_t>(message.sequences.size());
  const std::int64_t shape[] = {count, longest(message), width};
  members.emplace_back("shape", list_text(shape, [](auto n) { return number_text(n); }));
  members.emplace_back("completion_lengths", list_text(message.sequences, [](const auto& s) {
                         return std::to_string(s.tokens.size());
                       }));
  members.emplace_back(
      "logprobs_b64",
      rectangle_text(message, width, behind, 0, [](const MessageToken& token, std::size_t k) {
        const bool given = k < token.log_probs.size();
        return std::bit_cast<std::uint32_t>(given ? token.log_probs[k] : kMinusInfinity);
      }));
  members.emplace_back("token_ids_b64",
                       rectangle_text(message, width, 7, packing.dropped_ids,
                                      [](const MessageToken& token, std::size_t k) {
                                        const bool given = k < token.ids.size();
                                        return static_cast<std::uint32_t>(given ? token.ids[k] : 0);
                                      }));
  if (message.with_actual_log_probs) {
    members.emplace_back("actual_logprobs_b64",
                         rectangle_text(message, 1, behind, 0, [](const auto& token, std::size_t) {
                           return std::bit_cast<std::uint32_t>(token.actual_log_prob);
                         }));
  }
  if (message.with_actual_ids) {
    members.emplace_back("actual_token_ids_b64",
                         rectangle_text(message, 1, 7, 0, [](const auto& token, std::size_t) {
                           return static_cast<std::uint32_t>(token.actual_id);
                         }));
  }
  return members;
}

std::string text_of(const Members& members) {
  std::string text = "{";
  for (const auto& [key, value] : members) {
    if (text.size() > 1) text += ',';
    text += '"' + key + "\":" + value;
  }
  return text + "}";
}

std::string spaced(std::string_view json) {
  std::string text;
  bool quoted = false;
  for (const char c : json) {
    text += c;
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == ',' || c == ':')) text += ' ';
  }
  return text;
}

std::string write_base64(std::span<const std::uint8_t> bytes) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(bytes.size() - i, 3);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (k < count ? bytes[i + k] : 0u);
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= count ? kAlphabet[word >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

}  // namespace lossgate::fuzz
