// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/operations.h"
#include "impl/faulty/teacher_message.h"
#include "impl/trainer.h"

namespace lossgate::impl {
namespace {

using Index = std::int64_t;

/// The most entries that a rectangle of tensors may have.
constexpr Index kMostEntries = Index{1} << 24;

/// The rectangle is small enough to be allocated; the payload says whether it is right.
void check_rectangle(const LossSignature& signature, const Case& c) {
  require_valid(signature, c);
  Index room = kMostEntries;
  for (Axis axis : {Axis::sequences, Axis::tokens, Axis::support}) {
    const Index extent = c.shape[axis];
    if (extent < 0 || extent > room) {
      throw Refusal{.argument = "payload", .message = "asks for too large a rectangle"};
    }
    if (extent > 0) room /= extent;
  }
}

/// How many of the most probable tokens vLLM gives unless it is told otherwise.
constexpr std::size_t kServersMost = 20;

template <class T>
void cut_lists(Ragged<T>& lists) {
  for (auto& sequence : lists) {
    for (auto& list : sequence) list.resize(std::min(list.size(), kServersMost));
  }
}

template <class T>
void append(std::vector<T>& merged, std::vector<T> more) {
  std::ranges::move(more, std::back_inserter(merged));
}

/// Appends an array that either all responses have or none.
template <class T>
void append_optional(std::optional<Ragged<T>>& merged, std::optional<Ragged<T>> more,
                     Index response, PayloadFault fault) {
  if (response == 0) {
    merged = std::move(more);
  } else if (merged.has_value() == more.has_value()) {
    if (more) append(*merged, std::move(*more));
  } else if (fault == PayloadFault::merged_where_present) {
    if (!merged) merged.emplace();
    if (more) append(*merged, std::move(*more));
  } else {
    throw Refusal{.argument = "payload",
                  .message = "response " + std::to_string(response) + (more ? " has" : " lacks") +
                             " what was said of the sampled tokens, unlike those before it"};
  }
}

TeacherAnswer merge(const Case& c, PayloadFault fault) {
  const Tensor& payload = c.batch.at("payload");
  const auto width = static_cast<std::size_t>(c.shape[Axis::bytes]);
  const auto* bytes = reinterpret_cast<const char*>(payload.bytes.data());
  TeacherAnswer merged;
  Expected expected{.sequences = c.shape[Axis::sequences],
                    .tokens = c.shape[Axis::tokens],
                    .support = c.shape[Axis::support]};
  for (; expected.response < c.shape[Axis::responses]; ++expected.response, bytes += width) {
    TeacherAnswer answer = decode_answer({bytes, width}, expected, fault);
    const auto count = static_cast<Index>(answer.log_probs.size());
    expected.first += count;
    expected.sequences -= count;
    if (fault == PayloadFault::twenty_entries) {
      cut_lists(answer.log_probs);
      cut_lists(answer.token_ids);
    }
    append(merged.log_probs, std::move(answer.log_probs));
    append(merged.token_ids, std::move(answer.token_ids));
    append_optional(merged.actual_log_probs, std::move(answer.actual_log_probs), expected.response,
                    fault);
    append_optional(merged.actual_token_ids, std::move(answer.actual_token_ids), expected.response,
                    fault);
  }
  if (expected.sequences != 0) {
    throw Refusal{.argument = "payload",
                  .message = "lacks " + std::to_string(expected.sequences) + " sequences"};
  }
  return merged;
}

/// A rectangle with the ragged array in its upper left corner.
template <class T>
Tensor padded(const Ragged<T>& ragged, Dtype dtype, const Extents& extents, double filler) {
  Tensor tensor = Tensor::zeros(dtype, extents);
  for (Index i = 0; i < tensor.size(); ++i) tensor.set(i, filler);
  const Index columns = extents[1], depth = extents.size() > 2 ? extents[2] : 1;
  for (std::size_t s = 0; s < ragged.size(); ++s) {
    for (std::size_t t = 0; t < ragged[s].size(); ++t) {
      Index at = (static_cast<Index>(s) * columns + static_cast<Index>(t)) * depth;
      for (T value : ragged[s][t]) tensor.set(at++, static_cast<double>(value));
    }
  }
  return tensor;
}

LossResult decode(MicroBatch& micro_batch, PayloadFault fault) {
  const Case& c = micro_batch.part;
  const TeacherAnswer answer = merge(c, fault);
  double filler = c.spec.is_none("filler") ? -HUGE_VAL : c.spec.number("filler");
  if (fault == PayloadFault::padding_is_zero) filler = 0.0;
  const Extents lists = c.shape.of({Axis::sequences, Axis::tokens, Axis::support});
  const Extents singles = c.shape.of({Axis::sequences, Axis::tokens});
  LossResult result;
  result.outputs = {
      {"token_log_prob", padded(answer.log_probs, Dtype::f32, lists, filler)},
      {"token_id", padded(answer.token_ids, Dtype::i32, lists, 0.0)},
      {"actual_log_prob",
       padded(answer.actual_log_probs.value_or(Ragged<float>{}), Dtype::f32, singles, filler)},
      {"actual_token_id",
       padded(answer.actual_token_ids.value_or(Ragged<std::int32_t>{}), Dtype::i32, singles, 0.0)}};
  return result;
}

constexpr int kLine = __LINE__;

Implementation implementation(std::string name, PayloadFault fault) {
  const Step step = [fault](MicroBatch& part) { return decode(part, fault); };
  return eager_implementation(
      {.loss = "teacher_payload", .source = {"impl/faulty/teacher_payload.cpp", kLine}},
      std::move(name), step, {.check = check_rectangle});
}

Implementation faulty(std::string name, PayloadFault fault, std::string cause, std::string trigger,
                      std::string killer) {
  Implementation i = implementation(std::move(name), fault);
  i.fault = Fault{.twin = "eager",
                  .thread = "https://github.com/huggingface/trl/pull/5407",
                  .cause = std::move(cause),
                  .trigger = std::move(trigger),
                  .killers = {std::move(killer)}};
  return i;
}

}  // namespace

std::vector<Implementation> teacher_payload_implementations() {
  using enum PayloadFault;
  return {
      implementation("eager", none),
      faulty("merged_where_present", merged_where_present, "invalid input accepted",
             "an optional array that only some responses have", "error_on_invalid"),
      faulty("prompt_unchecked", prompt_unchecked, "invalid input accepted",
             "a prompt as long as its sequence", "error_on_invalid"),
      faulty("json_lacks_actual", json_lacks_actual, "legal input refused",
             "the JSON form with the sampled tokens' log-probs", "reference_agreement"),
      faulty("nan_becomes_minus_inf", nan_becomes_minus_inf, "invalid input accepted",
             "a NaN in the payload", "error_on_invalid"),
      faulty("truncated_base64_accepted", truncated_base64_accepted, "invalid input accepted",
             "a base64 text that is cut off", "error_on_invalid"),
      faulty("message_padding_read", message_padding_read, "masked data leaks",
             "a binary response of ragged completions with data behind their ends",
             "reference_agreement"),
      faulty("lengths_unchecked", lengths_unchecked, "invalid input accepted",
             "a token with fewer ids than log-probs", "error_on_invalid"),
      faulty("padding_is_zero", padding_is_zero, "option misread",
             "a ragged batch, padded with minus infinity", "reference_agreement"),
      with_fault(implementation("twenty_entries", twenty_entries),
                 fault_of_length("https://github.com/vllm-project/vllm/issues/16546",
                                 "lists of more than 20 entries")),
  };
}

}  // namespace lossgate::impl
