// SPDX-License-Identifier: Apache-2.0
#include "corpora/story.h"

#include <gtest/gtest.h>

#include "corpora/given_case.h"
#include "corpora/text_codec.h"

namespace lossgate::corpora {
namespace {

using Paragraphs = std::vector<std::string>;

std::string text_with(const std::string& story) {
  Case c = example_case();
  c.provenance.story = story;
  return encode(c, example_signature());
}

TEST(Story, OfTwoTextsOfOneCaseTellsBoth) {
  const std::string long_story = "finite_forward violated by " + std::string(30, 'x') +
                                 "; made simple from case 0123456789abcdef, which is wide";
  for (const std::string& one : {std::string("one"), long_story, std::string("a\nb")}) {
    for (const std::string& other : {std::string("other"), long_story + "r", std::string("c\nd")}) {
      const std::string both = with_story_of(text_with(one), text_with(other));
      EXPECT_EQ(both, text_with(one + "\n" + other)) << "as if it had been written so";
      const Case c = decode(both, "both.case", only(example_signature()));
      EXPECT_EQ(c.provenance.story, one + "\n" + other);
    }
  }
}

TEST(Story, TellsNothingTwice) {
  const std::string both = with_story_of(text_with("one\ntwo"), text_with("two\nthree"));
  EXPECT_EQ(both, text_with("one\ntwo\nthree"));
  EXPECT_EQ(with_story_of(both, text_with("three")), both);
  EXPECT_EQ(with_story_of(both, both), both);
}

TEST(Story, IsFoundWhereNothingElseIsSaid) {
  Case c = example_case();
  c.provenance = {};
  const LossSignature signature = example_signature();
  const std::string bare = encode(c, signature);
  c.provenance.story = "one";
  const std::string one = encode(c, signature);
  c.provenance.story = "one\nother";
  EXPECT_EQ(with_story_of(one, text_with("other")), encode(c, signature));
  EXPECT_EQ(with_story_of(bare, one), one);
  EXPECT_EQ(with_story_of(one, bare), one);
}

TEST(Story, OfWhatIsNoCaseIsNone) {
  const std::string one = text_with("one");
  EXPECT_EQ(with_story_of("the text\n", one), one);
  EXPECT_EQ(with_story_of("", one), one);
  EXPECT_EQ(with_story_of(one, "half a li"), one);
  EXPECT_EQ(with_story_of(one, "lossgate-case: 1\nstory:"), one);
}

TEST(Story, HasParagraphs) {
  EXPECT_EQ(paragraphs_of("one\n\ntwo"), (Paragraphs{"one", "two"}));
  EXPECT_EQ(paragraphs_of(""), Paragraphs());
}

}  // namespace
}  // namespace lossgate::corpora
