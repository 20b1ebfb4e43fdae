// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "reference/spec/case.h"
#include "reference/spec/result.h"

namespace lossgate::impl {

/// What can go wrong between a teacher's server and the tensors of a trainer.
enum class PayloadFault {
  none,
  merged_where_present,       ///< an optional array is appended where a response has it
  prompt_unchecked,           ///< a prompt as long as its sequence gives a row of padding
  json_lacks_actual,          ///< the JSON form knows the required arrays alone
  nan_becomes_minus_inf,      ///< NaN is taken for "no value"
  truncated_base64_accepted,  ///< what is cut off is padding
  message_padding_read,       ///< the binary form's own padding is taken for completion
  lengths_unchecked,          ///< of two lists the shorter one counts
  padding_is_zero,            ///< probability 1 where the teacher said nothing
  twenty_entries,             ///< what a list has beyond a server's default is not read
};

/// A ragged array, as nested lists: [sequence][token][entry].
template <class T>
using Ragged = std::vector<std::vector<std::vector<T>>>;

/// One response, decoded, whichever form it came in.
struct TeacherAnswer {
  Ragged<float> log_probs;
  Ragged<std::int32_t> token_ids;
  std::optional<Ragged<float>> actual_log_probs;
  std::optional<Ragged<std::int32_t>> actual_token_ids;
};

/// What the case leaves to one response.
struct Expected {
  std::int64_t response = 0;   ///< its number
  std::int64_t first = 0;      ///< number of its first sequence
  std::int64_t sequences = 0;  ///< that it may have
  std::int64_t tokens = 0;     ///< that a completion may have
  std::int64_t support = 0;    ///< that a list may have
};

/// Decodes one message. Throws Refusal for one that is not what it claims to be.
TeacherAnswer decode_answer(std::string_view message, const Expected& expected, PayloadFault fault);

/// The bytes of a padded base64 text, which must be `bytes` long; nothing where it is not. With
/// `partial`, as many as there are.
std::optional<std::vector<unsigned char>> decode_base64(std::string_view text, std::size_t bytes,
                                                        bool partial = false);

}  // namespace lossgate::impl
