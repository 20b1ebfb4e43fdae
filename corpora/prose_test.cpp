// SPDX-License-Identifier: Apache-2.0
#include "corpora/prose.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "corpora/utf8.h"

namespace lossgate::corpora {
namespace {

using Lines = std::vector<std::string>;

TEST(Prose, IsTidied) {
  EXPECT_EQ(tidy("  a story \r\n\n of\ttwo\x01lines  \n\n"), "a story\n\n of two lines");
  EXPECT_EQ(tidy(" \n\n "), "");
  EXPECT_EQ(tidy("\xe2\x88\x9e and \xff"), "\xe2\x88\x9e and ?");
}

TEST(Prose, FoldsAtSingleSpacesOnly) {
  EXPECT_EQ(fold("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(fold("one two three", 6), (Lines{"one", "two", "three"}));
  EXPECT_EQ(fold("one  two three", 6), (Lines{"one  two", "three"}));
  EXPECT_EQ(fold("incomprehensibly long", 6), (Lines{"incomprehensibly", "long"}));
  EXPECT_EQ(fold("a\n\n  b", 6), (Lines{"a", "", "", "  b"}));
  EXPECT_EQ(fold("", 6), Lines());
}

RC_GTEST_PROP(Prose, UnfoldsToWhatWasFolded, (std::vector<std::uint8_t> choices)) {
  std::string text;
  for (std::uint8_t choice : choices) text += "ab  \n\xc3\xff#"[choice % 8];
  text = tidy(text);
  RC_ASSERT(is_utf8(text));
  RC_ASSERT(tidy(text) == text);
  RC_ASSERT(unfold(fold(text, 10)) == text);
}

TEST(Utf8, TellsWellFormedFromOther) {
  for (const char* good :
       {"", "plain", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(good));
  }
  for (const char* bad : {"\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xc2", "\xe2\x82", "\xf0\x9f\x98", "\xe2\x28\xa1"}) {
    EXPECT_EQ(valid_utf8_prefix(std::string("ok") + bad), 2u);
  }
}

}  // namespace
}  // namespace lossgate::corpora
