// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "reference/losses/options.h"
#include "reference/problem.h"
#include "reference/teacher_message.h"

namespace lossgate::reference {

/// What a teacher server answered, decoded, merged and padded (an operation: tensors in, tensors
/// out).
///
/// Formula: the sequences of all responses in their order; token t of sequence s is the t-th after
///   its prompt, entry k the k-th of the lists. Whatever a list does not have is padding: `filler`
///   among log-probs, 0 among token ids. Integers and numbers are read as they were written.
/// Shapes: payload [responses, bytes]; token_log_prob, token_id [sequences, tokens, support];
///   actual_log_prob, actual_token_id [sequences, tokens]. Gradient: none.
/// Error: refused are a message that is none (reference/teacher_message.h), 0 < prompt length <
///   sequence length broken, lists of one token that differ in length, an optional array that only
///   some responses have, NaN, and any count or size that does not agree with the case.
/// Source: huggingface/trl#5407, `_decode_binary_logprobs` and `_merge_binary_responses`; there the
///   lengths are in the request, and a NaN arrives as a missing value.
struct TeacherPayload {
  static LossSignature signature() {
    return {
        .id = "teacher_payload",
        .title = "a teacher server's responses, merged and padded",
        .formula = "token_log_prob[s,t,k] = logprobs[s][t][k], or filler where there is none",
        .source = "huggingface/trl#5407",
        .options = {{.name = "filler",
                     .kind = Option::Kind::real,
                     .standard = None{},
                     .low = -1e9,
                     .high = 0.0,
                     .nullable = true,
                     .doc = "log-prob of what is not there; none is minus infinity"}},
        .fields = {{.name = "payload",
                    .role = Role::constant,
                    .quantity = Quantity::payload,
                    .axes = {Axis::responses, Axis::bytes},
                    .dtypes = {Dtype::u8},
                    .doc = "one response a row: JSON text, with spaces behind it"}},
        .outputs = {{.name = "token_log_prob",
                     .axes = {Axis::sequences, Axis::tokens, Axis::support},
                     .doc = "log-probs of the teacher's most probable tokens"},
                    {.name = "token_id",
                     .axes = {Axis::sequences, Axis::tokens, Axis::support},
                     .dtypes = {Dtype::i32},
                     .doc = "these tokens"},
                    {.name = "actual_log_prob",
                     .axes = {Axis::sequences, Axis::tokens},
                     .doc = "log-prob of the sampled token, where the teacher gave it"},
                    {.name = "actual_token_id",
                     .axes = {Axis::sequences, Axis::tokens},
                     .dtypes = {Dtype::i32},
                     .doc = "the sampled token, where the teacher gave it"}},
        .rows_permutable = false,
        .tokens_paddable = false,
        .splittable = false,
    };
  }

  static std::optional<Refusal> refuse(const Case& c) {
    const auto payload = read_teacher_payload(c);
    const auto* refusal = std::get_if<Refusal>(&payload);
    return refusal ? std::optional(*refusal) : std::nullopt;
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto payload = read_teacher_payload(in.problem().c);
    const auto& rows = std::get<TeacherRows>(payload);
    const auto number = [](double value) { return Entry<S>::stored(value, -1); };
    // Nothing is computed from it: what it loses is what the output loses.
    const S filler = number(in.spec().is_none("filler") ? -std::numeric_limits<double>::infinity()
                                                        : in.spec().number("filler"));
    const auto log_prob = out.writer("token_log_prob"), id = out.writer("token_id"),
               actual_log_prob = out.writer("actual_log_prob"),
               actual_id = out.writer("actual_token_id");
    const TeacherToken nothing;
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      const auto& row = rows[static_cast<std::size_t>(s)];
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        const auto at = static_cast<std::size_t>(t);
        const TeacherToken& token = at < row.size() ? row[at] : nothing;
        for (std::int64_t k = 0; k < in.extent(Axis::support); ++k) {
          const auto entry = static_cast<std::size_t>(k);
          const bool given = entry < token.log_probs.size();
          log_prob(given ? number(token.log_probs[entry]) : filler, s, t, k);
          id(number(given ? static_cast<double>(token.token_ids[entry]) : 0.0), s, t, k);
        }
        const auto& sampled = token.actual_log_prob;
        actual_log_prob(sampled ? number(*sampled) : filler, s, t);
        actual_id(number(static_cast<double>(token.actual_token_id.value_or(0))), s, t);
      }
    }
  }
};

}  // namespace lossgate::reference
