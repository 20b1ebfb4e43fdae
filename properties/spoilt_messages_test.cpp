// SPDX-License-Identifier: Apache-2.0
#include "properties/spoilt_messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "properties/transforms.h"
#include "reference/reference.h"

namespace lossgate::properties {
namespace {

const reference::Loss& payload_loss() { return *reference::find_loss("teacher_payload"); }

/// Two messages of a sequence with two tokens each, one in either form.
Case two_messages() {
  const std::string texts[] = {
      R"({"prompt_lengths":[3],"sequence_lengths":[5],"logprobs":[[[-0.5],[-1.5]]],)"
      R"("logprob_token_ids":[[[7],[8]]],"actual_token_ids":[[[7],[9]]]})",
      R"({"prompt_lengths":[1],"sequence_lengths":[3],"shape":[1,2,1],"completion_lengths":[2],)"
      R"("logprobs_b64":"AAAAvwAAwL8=","token_ids_b64":"BwAAAAgAAAA=",)"
      R"("actual_token_ids_b64":"BwAAAAkAAAA="})"};
  Case c;
  c.spec = standard_spec(payload_loss().signature);
  const std::size_t width = std::max(texts[0].size(), texts[1].size());
  c.shape[Axis::sequences] = c.shape[Axis::tokens] = c.shape[Axis::responses] = 2;
  c.shape[Axis::support] = 1;
  c.shape[Axis::bytes] = static_cast<std::int64_t>(width);
  Tensor payload = Tensor::zeros(Dtype::u8, {2, c.shape[Axis::bytes]});
  for (std::size_t i = 0; i < 2 * width; ++i) {
    const std::string& text = texts[i / width];
    payload.bytes[i] = static_cast<std::byte>(i % width < text.size() ? text[i % width] : ' ');
  }
  c.batch.fields.emplace_back("payload", std::move(payload));
  return c;
}

struct Way {
  bool (*spoil)(const LossSignature&, Case&, std::uint64_t);
  const char* complaint;  ///< what the reference says of it
};

constexpr Way kWays[] = {{drop_array, "both have"},
                         {drop_completion, "prompt"},
                         {put_nan, "log-prob"},
                         {shorten_list, "ids"},
                         {cut_text, "base64"}};

TEST(SpoiltMessages, AreRefusedForTheOneThingThatWasSpoilt) {
  ASSERT_FALSE(reference::expected_refusal(payload_loss(), two_messages()));
  for (const Way& way : kWays) {
    for (const std::uint64_t pick : {0u, 1u, 257u, 65793u}) {
      Case c = two_messages();
      ASSERT_TRUE(way.spoil(payload_loss().signature, c, pick)) << way.complaint;
      const auto refusal = reference::expected_refusal(payload_loss(), c);
      ASSERT_TRUE(refusal) << way.complaint;
      EXPECT_EQ(refusal->argument, "payload");
      EXPECT_NE(refusal->message.find(way.complaint), std::string::npos) << refusal->message;
    }
  }
}

TEST(SpoiltMessages, AreNoneWhereThereIsNothingToSpoil) {
  Case c = two_messages();
  c.shape[Axis::responses] = 1;
  EXPECT_FALSE(drop_array(payload_loss().signature, c, 0)) << "one message agrees with itself";
  Case noise = two_messages();
  std::ranges::fill(noise.batch.fields.front().second.bytes, std::byte{'?'});
  for (const Way& way : kWays) {
    EXPECT_FALSE(way.spoil(payload_loss().signature, noise, 0)) << way.complaint;
    LossSignature other = payload_loss().signature;
    other.fields.clear();
    EXPECT_FALSE(way.spoil(other, noise, 0)) << way.complaint;
  }
}

}  // namespace
}  // namespace lossgate::properties
