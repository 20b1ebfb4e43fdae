// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace lossgate::reference {

/// [text,text,...]
inline std::string repeated(const std::string& text, std::int64_t count) {
  std::string list = "[";
  for (std::int64_t i = 0; i < count; ++i) list += (i > 0 ? "," : "") + text;
  return list + "]";
}

/// A teacher's response (reference/teacher_message.h) that says the same of every token.
inline std::string small_message(std::int64_t sequences, std::int64_t tokens,
                                 std::int64_t support) {
  const auto nested = [&](const std::string& entries) {
    return repeated(repeated(entries, tokens), sequences);
  };
  return R"({"prompt_lengths":)" + repeated("2", sequences) + R"(,"sequence_lengths":)" +
         repeated(std::to_string(2 + tokens), sequences) + R"(,"logprobs":)" +
         nested(repeated("-0.5", support)) + R"(,"logprob_token_ids":)" +
         nested(repeated("7", support)) + R"(,"actual_logprobs":)" + nested("[-1.5]") + "}";
}

}  // namespace lossgate::reference
