// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/payload.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <string>

#include "fuzz/domains/teacher_message.h"
#include "fuzz/draw_case.h"
#include "impl/catalog.h"
#include "reference/reference.h"
#include "reference/teacher_message.h"

/// Messages as they are drawn, before the two readers that share no line.
namespace lossgate::fuzz {
namespace {

constexpr int kCases = __has_feature(address_sanitizer) ? 500 : 5000;

const reference::Loss& payload_loss() { return *reference::find_loss("teacher_payload"); }

const impl::Implementation& sound() {
  for (const impl::Implementation& i : impl::catalog(false)) {
    if (i.loss == "teacher_payload" && !i.fault) return i;
  }
  throw std::logic_error("no sound implementation");
}

Message random_message(Choices& choices) {
  Message message{.sequences = {}, .with_actual_log_probs = true, .with_actual_ids = true};
  const std::int64_t width = choices.integer(1, 3);
  message.sequences.resize(static_cast<std::size_t>(choices.integer(1, 4)));
  for (MessageSequence& sequence : message.sequences) {
    sequence.tokens.resize(static_cast<std::size_t>(choices.integer(1, 5)));
    sequence.length = sequence.prompt + static_cast<std::int64_t>(sequence.tokens.size());
    const auto log_prob = [&] {
      // Any finite number of the format, most of them subnormal or huge.
      const auto bits = static_cast<std::uint32_t>(choices.integer(0, 0xffffffff));
      const auto value = std::bit_cast<float>(bits);
      return value - value == 0.0F ? value : -std::numeric_limits<float>::infinity();
    };
    for (MessageToken& token : sequence.tokens) {
      for (std::int64_t k = 0; k < width; ++k) {
        token.log_probs.push_back(log_prob());
        token.ids.push_back(static_cast<std::int32_t>(choices.integer(0, 0x7fffffff)));
      }
      token.actual_log_prob = log_prob();
      token.actual_id = static_cast<std::int32_t>(choices.integer(0, 0x7fffffff));
    }
  }
  return message;
}

Case case_of(const Message& message, const std::string& text) {
  Case c;
  c.spec = standard_spec(payload_loss().signature);
  c.shape[Axis::sequences] = static_cast<std::int64_t>(message.sequences.size());
  c.shape[Axis::tokens] = 5;
  c.shape[Axis::support] = 3;
  c.shape[Axis::responses] = 1;
  c.shape[Axis::bytes] = static_cast<std::int64_t>(text.size());
  Tensor payload = Tensor::zeros(Dtype::u8, c.shape.of({Axis::responses, Axis::bytes}));
  for (std::size_t i = 0; i < text.size(); ++i) payload.bytes[i] = std::byte(text[i]);
  c.batch.fields.emplace_back("payload", std::move(payload));
  return c;
}

struct Kept : reference::Sink<reference::Tracked> {
  std::map<std::pair<std::size_t, std::int64_t>, double> values;
  void entry(std::size_t output, std::int64_t index, const reference::Tracked& value) override {
    values[{output, index}] = static_cast<double>(value.v);
  }
};

Kept expected_of(const Case& c) {
  Kept kept;
  const reference::Problem problem(payload_loss().signature, c);
  reference::evaluate(payload_loss(), problem, plain_arithmetic(Dtype::f32, ""), kept);
  return kept;
}

TEST(Payload, OfEitherFormGivesTheSameBits) {
  Choices choices(1);
  for (int i = 0; i < kCases / 10; ++i) {
    const Message message = random_message(choices);
    const Case json = case_of(message, text_of(json_form(message)));
    const Case binary = case_of(message, text_of(binary_form(message, {.behind = -1.0F})));
    ASSERT_FALSE(reference::expected_refusal(payload_loss(), json)) << i;
    ASSERT_FALSE(reference::expected_refusal(payload_loss(), binary)) << i;
    const Kept expected = expected_of(json);
    ASSERT_EQ(expected.values, expected_of(binary).values) << i;
    const LossResult from_json = sound().evaluate(payload_loss().signature, json);
    const LossResult from_binary = sound().evaluate(payload_loss().signature, binary);
    ASSERT_FALSE(from_json.refusal || from_binary.refusal) << i;
    for (std::size_t o = 0; o < from_json.outputs.size(); ++o) {
      const Tensor& tensor = from_json.outputs[o].tensor;
      ASSERT_EQ(tensor, from_binary.outputs[o].tensor) << i << " " << from_json.outputs[o].name;
      for (std::int64_t at = 0; at < tensor.size(); ++at) {
        ASSERT_EQ(tensor.at(at), (expected.values.at({o, at}))) << i;
      }
    }
  }
}

Case drawn(Profile profile, std::uint64_t index) {
  Choices choices(case_seed(7, "teacher_payload", Dtype::f32, index));
  return draw_case(payload_loss().signature, Dtype::f32, profile, choices);
}

TEST(Payload, IsNeverRefusedWhereItDeviatesInNothing) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto refusal = reference::expected_refusal(payload_loss(), drawn(Profile::benign, i));
    ASSERT_FALSE(refusal) << i << ": " << refusal->message;
  }
}

TEST(Payload, HasSpacesNowAndThen) {
  EXPECT_EQ(spaced(R"({"a":[1,2],"b":"x,y:z"})"), R"({"a": [1, 2], "b": "x,y:z"})");
  int with_spaces = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Choices choices(seed);
    const Case c = draw_case(payload_loss().signature, Dtype::f32, Profile::hostile, choices);
    const Tensor& bytes = c.batch.fields.front().second;
    for (std::int64_t i = 0; i + 1 < bytes.size(); ++i) {
      if (bytes.at(i) != ':' || bytes.at(i + 1) != ' ') continue;
      ++with_spaces;
      break;
    }
  }
  EXPECT_GT(with_spaces, 20);
  EXPECT_LT(with_spaces, 150);
}

TEST(Payload, IsJudgedAlikeByTwoReaders) {
  std::map<std::string, int> messages;
  int refused = 0, named = 0;
  for (int i = 0; i < kCases; ++i) {
    const Profile profile = i % 2 == 0 ? Profile::hostile : Profile::soak;
    const Case c = drawn(profile, static_cast<std::uint64_t>(i));
    const auto expected = reference::expected_refusal(payload_loss(), c);
    const auto actual = sound().evaluate(payload_loss().signature, c).refusal;
    ASSERT_EQ(expected.has_value(), actual.has_value())
        << i << ": " << (expected ? expected->message : actual->message);
    if (!expected) continue;
    ASSERT_EQ(expected->argument, actual->argument) << expected->message;
    const bool of_prompt = expected->message.find("prompt of") != std::string::npos ||
                           expected->message.find("without a prompt") != std::string::npos;
    named += of_prompt;
    if (of_prompt) ASSERT_EQ(expected->sequence, actual->sequence) << expected->message;
    ++refused;
    ++messages[expected->message.substr(0, 40)];
  }
  EXPECT_GT(refused, kCases / 5);
  EXPECT_LT(refused, kCases * 3 / 5);
  EXPECT_GT(named, kCases / 50) << "sequences named";
  EXPECT_GT(messages.size(), 30u) << "kinds of complaints";
}

TEST(Payload, FromAnyBytesIsReadOrRefused) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    Choices source(i);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(source.integer(0, 600)));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(source.integer(0, 255));
    Choices choices{std::span<const std::uint8_t>(bytes)};
    const Case c = draw_case(payload_loss().signature, Dtype::f32, Profile::soak, choices);
    EXPECT_EQ(reference::expected_refusal(payload_loss(), c).has_value(),
              sound().evaluate(payload_loss().signature, c).refusal.has_value())
        << i;
  }
}

}  // namespace
}  // namespace lossgate::fuzz
