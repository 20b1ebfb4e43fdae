// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "impl/catalog.h"
#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

const impl::Implementation& variant(const std::string& name) {
  return *std::ranges::find_if(impl::catalog(false), [&](const impl::Implementation& i) {
    return i.loss == "teacher_payload" && i.name == name;
  });
}

std::string base64(const std::vector<unsigned char>& bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i + 2 < bytes.size(); i += 3) {
    const unsigned three = bytes[i] * 65536u + bytes[i + 1] * 256u + bytes[i + 2];
    for (const unsigned shift : {18u, 12u, 6u, 0u}) text += kLetters[three >> shift & 63u];
  }
  return text;
}

template <class T>
std::string base64_of(const std::vector<T>& numbers) {
  std::vector<unsigned char> bytes(numbers.size() * sizeof(T));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return base64(bytes);
}

Case asking(const std::string& message, std::int64_t sequences, std::int64_t tokens) {
  Case c;
  c.spec = standard_spec(*reference::find_signature("teacher_payload"));
  c.shape[Axis::sequences] = sequences;
  c.shape[Axis::tokens] = tokens;
  c.shape[Axis::support] = 1;
  c.shape[Axis::responses] = 1;
  c.shape[Axis::bytes] = std::ssize(message);
  Tensor payload = Tensor::zeros(Dtype::u8, c.shape.of({Axis::responses, Axis::bytes}));
  std::memcpy(payload.bytes.data(), message.data(), message.size());
  c.batch.fields.emplace_back("payload", std::move(payload));
  return c;
}

/// A long completion, and behind it one of a single token, and what the message has behind that.
Case with_short_last(std::int64_t tokens, float behind, std::int32_t id_behind) {
  std::vector<float> log_probs(static_cast<std::size_t>(2 * tokens), -0.5f);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(2 * tokens), 7);
  for (auto i = static_cast<std::size_t>(tokens) + 1; i < ids.size(); ++i) {
    log_probs[i] = behind, ids[i] = id_behind;
  }
  const std::string length = std::to_string(tokens);
  return asking(R"({"prompt_lengths":[2,2],"sequence_lengths":[)" + std::to_string(tokens + 2) +
                    R"(,3],"shape":[2,)" + length + R"(,1],"completion_lengths":[)" + length +
                    R"(,1],"logprobs_b64":")" + base64_of(log_probs) + R"(","token_ids_b64":")" +
                    base64_of(ids) + R"("})",
                2, tokens);
}

TEST(ProbeMessage, FindsWhatIsReadBehindACompletion) {
  expect_shown(variant("message_padding_read"), with_short_last(6, -0.25f, 9), "masked data leaks",
               "the answer changes with what the formula does not read");
}

TEST(ProbeMessage, FindsWhyWhatNobodyShouldReadIsRefusedHoweverLongTheMessage) {
  for (const std::int64_t tokens : {6, 900}) {
    expect_shown(variant("message_padding_read"), with_short_last(tokens, std::nanf(""), -1),
                 "masked data leaks", "the answer changes with what the formula does not read");
  }
}

TEST(ProbeMessage, SaysNothingOfWhatIsToBeRefused) {
  Case c = with_short_last(6, -0.25f, 9);
  c.shape[Axis::tokens] = 5;
  EXPECT_FALSE(speaks(probe_message, variant("message_padding_read"), c));
  EXPECT_FALSE(speaks(probe_message, variant("prompt_unchecked"),
                      asking(R"({"prompt_lengths":[3],"sequence_lengths":[3],"logprobs":[[]],)"
                             R"("logprob_token_ids":[[]]})",
                             1, 2)));
}

}  // namespace
}  // namespace lossgate::properties
