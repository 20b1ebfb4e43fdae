// SPDX-License-Identifier: Apache-2.0
#include "impl/external/c/conversation.h"

#include <gtest/gtest.h>

#include <cfenv>

#include "impl/external/greeting.h"

namespace lossgate::impl {
namespace {

using corpora::TensorFile;

/// The loss that given_losses.c computes, or does not.
LossSignature signature() {
  const auto field = [](std::string name, Role role, Quantity quantity) {
    return Field{std::move(name), role, quantity, {Axis::sequences, Axis::tokens}};
  };
  LossSignature loss;
  loss.id = "value_clip";
  loss.reductions = {Reduction::token_mean, Reduction::sum};
  loss.options = {{.name = "clip_form", .kind = Option::Kind::choice, .standard = "around_old"}};
  loss.fields = {field("value", Role::differentiable, Quantity::value),
                 field("old_value", Role::constant, Quantity::value),
                 field("return", Role::constant, Quantity::value),
                 field("mask", Role::mask, Quantity::mask)};
  loss.outputs = {{"per_token", {Axis::sequences, Axis::tokens}}};
  return loss;
}

Tensor tensor(Dtype dtype, std::initializer_list<double> values) {
  Tensor filled = Tensor::zeros(dtype, {1, static_cast<std::int64_t>(values.size())});
  std::int64_t at = 0;
  for (const double value : values) filled.set(at++, value);
  return filled;
}

class Asked {
 public:
  explicit Asked(const std::string& function, const std::string& file = LOSSGATE_GIVEN_LOSSES) {
    Subject subject;
    subject.entry = "so:" + file + ":" + function;
    greeting = ask(hello(subject, signature()));
  }

  TensorFile ask(const TensorFile& request) {
    const auto answer = conversation_.answer(corpora::write_tensors(request));
    return corpora::read_tensors(answer, "answer");
  }

  /// A step of three tokens, the last one masked (or not, where all are to count).
  TensorFile step(bool all = false, const std::string& layout = "contiguous") {
    return ask({.tensors = {{"value", tensor(Dtype::f32, {1, 2, 3})},
                            {"old_value", tensor(Dtype::f32, {0, 0, 0})},
                            {"return", tensor(Dtype::f32, {0, 0, 1})},
                            {"mask", tensor(Dtype::u8, {1, 1, all ? 1.0 : 0.0})}},
                .metadata = {{"op", "step"},
                             {"id", "7"},
                             {"reduction", "token_mean"},
                             {"option.clip_form", "around_old"},
                             {"total_tokens", "4"},
                             {"upstream", "0.5"},
                             {"layout", layout}}});
  }

  TensorFile greeting;

 private:
  LibraryConversation conversation_;
};

std::string text(const TensorFile& answer) {
  std::string all;
  for (const auto& [key, value] : answer.metadata) all += key + "=" + value + " ";
  return all;
}

void expect_says(const TensorFile& answer, const char* op, const std::string& part) {
  EXPECT_EQ(text_of(answer, "op"), op) << text(answer);
  EXPECT_NE(text_of(answer, "message").find(part), std::string::npos) << text(answer);
}

TEST(LibraryConversation, SaysWhatTheFunctionTakesAndWhereItStands) {
  Asked asked("sound");
  const Greeting greeting = greeting_of(asked.greeting);
  EXPECT_NE(greeting.source.file.find("given_losses.c"), std::string::npos);
  EXPECT_GT(greeting.source.line, 50);
  EXPECT_TRUE(greeting.code.starts_with("LOSSGATE_LOSS(sound, TAKES)")) << greeting.code;
  EXPECT_EQ(greeting.facts, std::vector<std::string>{"total_tokens"});
  EXPECT_EQ(greeting.options, std::vector<std::string>{});
  EXPECT_FALSE(greeting.reduction);
  EXPECT_EQ(greeting.arguments.size(), 4u);
}

TEST(LibraryConversation, HandsOverWhatIsAskedAndTakesWhatIsFilled) {
  for (const std::string layout : {"contiguous", "offset", "transposed"}) {
    const TensorFile answer = Asked("sound").step(false, layout);
    ASSERT_EQ(text_of(answer, "op"), "result") << text(answer);
    EXPECT_EQ(text_of(answer, "id"), "7");
    EXPECT_EQ(text_of(answer, "mutated"), "[]");
    EXPECT_EQ(answer.find_tensor("loss")->at(0), (0.5 + 2.0) / 4);
    EXPECT_EQ(*answer.find_tensor("per_token"), tensor(Dtype::f32, {0.5, 2, 0}));
    EXPECT_EQ(*answer.find_tensor("gradient.value"), tensor(Dtype::f32, {0.125, 0.25, 0}));
  }
}

TEST(LibraryConversation, SaysWhatToWriteWhereNothingCanBeCalled) {
  expect_says(Asked("sound", "no.so").greeting, "trouble", "there is no file no.so in ");
  expect_says(Asked("sound", LOSSGATE_SOURCE_DIR "/README.md").greeting, "trouble",
              "it cannot be opened: ");
  expect_says(Asked("sond").greeting, "trouble",
              "has no function 'sond'; define it with LOSSGATE_LOSS(sond, ");
  expect_says(Asked("undeclared").greeting, "trouble",
              "is no loss that lossgate can call; include lossgate.h and define it with");
  expect_says(Asked("newer").greeting, "trouble",
              "was compiled with version 2 of lossgate.h; this command has 1");
  expect_says(Asked("misspells").greeting, "trouble",
              "misspells takes 'retrun', which value_clip does not have; it has value, old_value, "
              "return, mask, clip_form, reduction, total_tokens, total_sequences, total_rows, "
              "rank_tokens, rank_sequences, rank_rows");
  Asked never("sond");
  expect_says(never.step(), "trouble", "a step came before a successful hello");
}

TEST(LibraryConversation, RefusesNamesThatTheFunctionDoesNotTake) {
  testing::internal::CaptureStderr();
  expect_says(Asked("asks_for_more").step(), "trouble",
              "asks for the array 'old_value'; it takes \"value return mask total_tokens\" and "
              "fills loss per_token gradient.value");
  expect_says(Asked("asks_for_a_number").step(), "trouble",
              "reads 'clip_form' as a number, but it is the word 'around_old'");
  // Heard as well where the next line is a crash.
  EXPECT_NE(testing::internal::GetCapturedStderr().find("asks for the array 'old_value'"),
            std::string::npos);
}

TEST(LibraryConversation, SeesWhatIsWrittenWhereNothingBelongs) {
  for (const auto& [function, complaint] :
       {std::pair("overruns", "wrote behind the end of 'gradient.value'"),
        std::pair("underruns", "wrote before the beginning of 'gradient.value'")}) {
    Asked asked(function);
    EXPECT_EQ(text_of(asked.step(), "op"), "result");
    expect_says(asked.step(true), "damaged", complaint);
  }
  EXPECT_EQ(text_of(Asked("writes_inputs").step(true), "mutated"), R"(["return"])");
}

TEST(LibraryConversation, SeesAndRestoresWhatTheProcessorComputesBy) {
  for (const auto& [function, change] :
       {std::pair("rounds_upward", R"(["the rounding mode is upward"])"),
        std::pair("flushes", R"(["flush to zero is on"])")}) {
    Asked asked(function);
    EXPECT_EQ(asked.step().find_metadata("changed_settings"), nullptr);
    for (int i = 0; i < 2; ++i) {
      const TensorFile answer = asked.step(true);
      EXPECT_EQ(text_of(answer, "op"), "result") << text(answer);
      EXPECT_EQ(text_of(answer, "changed_settings"), change);
      EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    }
  }
  EXPECT_EQ(text_of(Asked("flushes_once").step(), "changed_settings"),
            R"(["flush to zero is on"])");
  // What is loaded in a call may do so.
  EXPECT_EQ(Asked("loads_once").step().find_metadata("changed_settings"), nullptr);
}

TEST(LibraryConversation, SeesWhatIsNotWritten) {
  const TensorFile answer = Asked("leaves_gradient").step();
  expect_says(answer, "raised", "'gradient.value' is not written at [0, 1]; every element");
  EXPECT_EQ(text_of(answer, "type"), "BadResult");
  EXPECT_EQ(text_of(answer, "output"), "gradient.value");
  expect_says(Asked("leaves_loss").step(true), "raised", "'loss' is not written at all");
}

TEST(LibraryConversation, TellsRefusedFromNotComputed) {
  const std::tuple<const char*, const char*, const char*> kinds[] = {
      {"refuses", "Refused", "3 is odd"},
      {"does_not_compute", "NotComputed", "even counts alone"},
      {"returns_garbage", "BadResult", "returns_garbage returned 700; return LOSSGATE_DONE"},
      {"says_no_utf_8", "Refused", "\xef\xbf\xbd"}};
  for (const auto& [function, type, message] : kinds) {
    const TensorFile answer = Asked(function).step(true);
    expect_says(answer, "raised", message);
    EXPECT_EQ(text_of(answer, "type"), type);
  }
}

TEST(LibraryConversation, AnswersWhatItDoesNotUnderstand) {
  Asked asked("sound");
  expect_says(asked.ask({.tensors = {}, .metadata = {{"op", "dance"}}}), "trouble", "op 'dance'");
  LibraryConversation conversation;
  const std::vector<std::byte> garbage(40, std::byte{7});
  EXPECT_EQ(text_of(corpora::read_tensors(conversation.answer(garbage), "answer"), "op"),
            "trouble");
}

}  // namespace
}  // namespace lossgate::impl
