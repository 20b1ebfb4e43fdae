// SPDX-License-Identifier: Apache-2.0
#include "impl/external/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "corpora/safetensors.h"
#include "impl/untidy_refusal.h"

namespace lossgate::impl {
namespace {

using corpora::TensorFile;

using Metadata = std::vector<std::pair<std::string, std::string>>;

const Metadata kHello = {
    {"op", "hello"},
    {"versions", R"({"python": "3.9.1"})"},
    {"file", "mine.py"},
    {"line", "7"},
    {"code", "def loss(lp, eps):"},
    {"options", R"(["clip_low"])"},
    {"reduction", "0"},
    {"facts", R"(["world"])"},
    {"arguments", R"({"lp": "field:log_prob", "eps": "option:clip_low"})"},
};

/// A subject behind two pipes, whose answers have been written before it is asked.
class Answered {
 public:
  explicit Answered(const std::vector<Metadata>& answers) {
    EXPECT_EQ(::pipe(requests_.data()), 0);
    EXPECT_EQ(::pipe(replies_.data()), 0);
    for (const Metadata& answer : answers) {
      const auto frame = corpora::write_tensors({.tensors = {}, .metadata = answer});
      const std::uint64_t size = frame.size();
      EXPECT_EQ(::write(replies_[1], &size, sizeof size), 8);
      EXPECT_EQ(::write(replies_[1], frame.data(), size), static_cast<ssize_t>(size));
    }
  }
  ~Answered() {
    for (const int descriptor : {requests_[0], requests_[1], replies_[0], replies_[1]}) {
      ::close(descriptor);
    }
  }
  Answered(const Answered&) = delete;
  Answered& operator=(const Answered&) = delete;

  Subject subject() const {
    Subject subject;
    subject.name = "mine";
    subject.entry = "fd:" + std::to_string(requests_[1]) + ":" + std::to_string(replies_[0]);
    return subject;
  }

  /// What it was asked.
  TensorFile request() const {
    std::uint64_t size = 0;
    EXPECT_EQ(::read(requests_[0], &size, sizeof size), 8);
    std::vector<std::byte> frame(size);
    EXPECT_EQ(::read(requests_[0], frame.data(), size), static_cast<ssize_t>(size));
    return corpora::read_tensors(frame, "request");
  }

 private:
  std::array<int, 2> requests_{}, replies_{};
};

LossSignature signature() {
  LossSignature loss;
  loss.id = "toy";
  loss.reductions = {Reduction::token_mean, Reduction::sum};
  return loss;
}

TEST(Session, SaysWhichReductionsTheLossHas) {
  const Answered other({kHello});
  Session session(other.subject(), signature());
  session.greeting();
  const TensorFile request = other.request();
  ASSERT_TRUE(request.find_metadata("reductions"));
  EXPECT_EQ(*request.find_metadata("reductions"), R"(["token_mean","sum"])");
}

TEST(Session, ReadsWhatTheSubjectSaysOfItself) {
  const Answered other({kHello});
  Session session(other.subject(), signature());
  const Greeting& greeting = session.greeting();
  EXPECT_EQ(greeting.source.file, "mine.py");
  EXPECT_EQ(greeting.source.line, 7);
  EXPECT_EQ(greeting.options, std::vector<std::string>{"clip_low"});
  EXPECT_EQ(greeting.facts, std::vector<std::string>{"world"});
  EXPECT_FALSE(greeting.reduction);
  EXPECT_EQ(greeting.tied, Metadata{});
}

TEST(Session, ReadsWhichOptionsOneParameterStandsFor) {
  Metadata answer = kHello;
  answer.emplace_back("tied", R"({"clip_high": "clip_low"})");
  const Answered other({answer});
  Session session(other.subject(), signature());
  EXPECT_EQ(session.greeting().tied, (Metadata{{"clip_high", "clip_low"}}));
  Subject subject;
  EXPECT_EQ(tied_options(session.greeting(), subject), session.greeting().tied);
  subject.options = {{"clip_low", 0.1}};
  EXPECT_EQ(tied_options(session.greeting(), subject), session.greeting().tied);
  subject.options = {{"clip_high", 0.3}};
  EXPECT_EQ(tied_options(session.greeting(), subject), Metadata{}) << "it is declared by itself";
}

TEST(Session, ReadsWhatItsParametersStandAt) {
  Metadata answer = kHello;
  answer.emplace_back("defaults", R"({"a": 2, "b": true, "c": "k3", "d": null, "e": [1]})");
  answer.emplace_back("left", R"({"mode": "'mean'"})");
  answer.emplace_back("omissible", R"(["mask"])");
  const Answered other({answer});
  Session session(other.subject(), signature());
  const std::vector<std::pair<std::string, std::string>> left = {{"mode", "'mean'"}};
  EXPECT_EQ(session.greeting().left, left);
  EXPECT_EQ(session.greeting().omissible, std::vector<std::string>{"mask"});
  const std::vector<std::pair<std::string, OptionValue>> defaults = {
      {"a", 2.0}, {"b", 1.0}, {"c", "k3"}, {"d", None{}}};
  EXPECT_EQ(session.greeting().defaults, defaults);
}

TEST(Session, SaysAtItsGreetingWhatWentWrongAtItsBeginning) {
  Subject subject;
  subject.name = "mine";
  subject.entry = "py:mine.py:loss";
  subject.interpreter = "/no/such/interpreter";
  Session session(subject, signature());
  session.begin();
  try {
    session.greeting();
    FAIL() << "it was loaded";
  } catch (const SubjectError& error) {
    EXPECT_TRUE(std::string(error.what()).find("/no/such/interpreter") != std::string::npos)
        << error.what();
  }
}

TEST(Session, RefusesASubjectThatCannotBeLoaded) {
  const Answered other({{{"op", "trouble"}, {"message", "there is no file mine.py"}}});
  Session session(other.subject(), signature());
  try {
    session.greeting();
    FAIL() << "it was loaded";
  } catch (const SubjectError& error) {
    EXPECT_STREQ(error.what(), "mine: there is no file mine.py");
  }
}

TEST(Session, TellsWhichParametersStandForNothing) {
  const Answered other({{{"op", "trouble"},
                         {"message", "wants 'topk'"},
                         {"taken", R"(["mask"])"},
                         {"lacking", R"(["topk", "rho"])"}}});
  Session session(other.subject(), signature());
  try {
    session.greeting();
    FAIL() << "it was loaded";
  } catch (const ParametersUnmatched& error) {
    EXPECT_STREQ(error.what(), "mine: wants 'topk'");
    EXPECT_EQ(error.taken, std::vector<std::string>{"mask"});
    EXPECT_EQ(error.lacking, (std::vector<std::string>{"topk", "rho"}));
  }
}

/// Asks for an empty batch.
void ask(Session& session) {
  const LossSignature loss = signature();
  Case part;
  const Positions positions;
  MicroBatch batch{loss, part, positions, {}, {}};
  session.step(batch, 1.0);
}

/// What is raised then.
Refusal raised(Session& session) {
  try {
    ask(session);
  } catch (const Refusal& refusal) {
    return refusal;
  }
  return {.argument = "", .message = "nothing"};
}

TEST(Session, TellsWhatACallThatRaisedLeftChanged) {
  for (const char* type : {"ValueError", "NotComputed", "BadResult"}) {
    const Answered other({kHello,
                          {{"op", "raised"},
                           {"type", type},
                           {"message", "no"},
                           {"changed_settings", R"(["torch.is_grad_enabled() is False"])"}}});
    Session session(other.subject(), signature());
    try {
      ask(session);
      FAIL() << "it was answered";
    } catch (const UntidyRefusal& refusal) {
      EXPECT_EQ(refusal.changed_settings,
                std::vector<std::string>{"torch.is_grad_enabled() is False"});
      EXPECT_NE(refusal.message.find("no"), std::string::npos);
    }
  }
}

TEST(Session, NamesTheLimitOfACallThatIsNotAnswered) {
  const Answered other({kHello});
  Subject subject = other.subject();
  subject.seconds = 0.125;
  Session session(subject, signature());
  try {
    ask(session);
    FAIL() << "it was answered";
  } catch (const ProcessHung& error) {
    EXPECT_STREQ(error.what(), "no answer in the time that a call has; a call has seconds = 0.125");
  }
}

TEST(Session, AsksALostDeviceNoMore) {
  const Metadata raises = {{"op", "raised"}, {"type", "RuntimeError"}, {"message", "an assert"}};
  Metadata lost = raises;
  lost.emplace_back("device_lost", "1");
  for (const Metadata& answer : {raises, lost}) {
    const Answered other({kHello, answer});
    const auto host = std::make_shared<Host>(other.subject());
    Session session(other.subject(), signature(), host);
    EXPECT_TRUE(raised(session).message.find("an assert") != std::string::npos);
    EXPECT_EQ(host->running(), answer == lost ? 0 : 1);
  }
}

TEST(Session, SaysWhichOutputIsNoResult) {
  const Answered other({kHello,
                        {{"op", "raised"},
                         {"type", "BadResult"},
                         {"message", "'per_token' is not written at all"},
                         {"output", "per_token"}}});
  Session session(other.subject(), signature());
  const Refusal refusal = raised(session);
  EXPECT_EQ(refusal.argument, kNoResult);
  EXPECT_EQ(refusal.beside, std::vector<std::string>{"per_token"});
  const Answered stray({kHello,
                        {{"op", "raised"},
                         {"type", "StrayGradient"},
                         {"message", "the gradient of 'logits' is 3"},
                         {"output", "gradient.logits"}}});
  Session shifting(stray.subject(), signature());
  const Refusal beyond = raised(shifting);
  EXPECT_EQ(beyond.argument, kNoResult);
  EXPECT_EQ(beyond.beside, (std::vector<std::string>{"gradient.logits", "shifted"}));
}

}  // namespace
}  // namespace lossgate::impl
