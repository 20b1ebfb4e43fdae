// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "reference/spec/case.h"
#include "reference/spec/result.h"

/// Reading what a teacher server answered. Each row of the field `payload` is one response, a JSON
/// object that spaces may follow. Every response says
///
///     prompt_lengths, sequence_lengths    one integer for each of its sequences
///
/// so that sequence i has sequence_lengths[i] - prompt_lengths[i] completion tokens. The rest comes
/// in one of two forms. In the JSON form arrays are nested, [sequence][token][entry]:
///
///     logprobs, logprob_token_ids         of the most probable tokens, at most `support` entries
///     actual_logprobs, actual_token_ids   of the sampled token, one entry; optional
///
/// A log-prob is a number or the text "-inf". A response that has the key `shape` is in the binary
/// form, where arrays are rectangles, row-major and little-endian, as base64 (RFC 4648, padded):
///
///     shape                               [sequences, longest completion, entries > 0]
///     completion_lengths                  one integer for each sequence
///     logprobs_b64, token_ids_b64         f32 and i32, of that shape
///     actual_logprobs_b64, actual_token_ids_b64   the same with one entry; optional
///
/// What lies behind the end of a completion is padding and is not looked at.
namespace lossgate::reference {

/// The most entries that the rectangle [sequences, tokens, support] may have.
inline constexpr std::int64_t kMostTeacherEntries = std::int64_t{1} << 24;

/// What the teacher said of one completion token.
struct TeacherToken {
  std::vector<double> log_probs;          ///< of its most probable tokens: f32 numbers or -inf
  std::vector<std::int64_t> token_ids;    ///< of these
  std::optional<double> actual_log_prob;  ///< of the sampled token
  std::optional<std::int64_t> actual_token_id;
};

/// One row for each sequence of all responses, in order.
using TeacherRows = std::vector<std::vector<TeacherToken>>;

/// The merged responses of a case whose fields have their shapes, or what is wrong with them.
std::variant<TeacherRows, Refusal> read_teacher_payload(const Case& c);

}  // namespace lossgate::reference
