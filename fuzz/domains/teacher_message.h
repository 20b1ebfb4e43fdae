// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Writing what a teacher server answers (the format is in reference/teacher_message.h), legal or
/// not: nothing here checks what it is given.
namespace lossgate::fuzz {

struct MessageToken {
  std::vector<float> log_probs;
  std::vector<std::int32_t> ids;
  float actual_log_prob = 0.0F;
  std::int32_t actual_id = 0;
};

struct MessageSequence {
  std::int64_t prompt = 1, length = 2;
  std::vector<MessageToken> tokens;
};

struct Message {
  std::vector<MessageSequence> sequences;
  bool with_actual_log_probs = true, with_actual_ids = true;
};

/// What the binary form can say that the JSON form cannot.
struct Packing {
  float behind = 0.0F;          ///< what stands behind the ends of completions
  std::size_t dropped_ids = 0;  ///< at the end of the array of token ids
};

/// The members of a JSON object: keys, and values as JSON text.
using Members = std::vector<std::pair<std::string, std::string>>;

Members json_form(const Message& message);
Members binary_form(const Message& message, const Packing& packing);

std::string text_of(const Members& members);

/// The same with a space behind each comma and colon, as most writers of JSON have it.
std::string spaced(std::string_view json);

std::string write_base64(std::span<const std::uint8_t> bytes);

}  // namespace lossgate::fuzz
