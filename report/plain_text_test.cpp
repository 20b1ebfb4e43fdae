// SPDX-License-Identifier: Apache-2.0
#include "report/plain_text.h"

#include <gtest/gtest.h>

#include "report/given_record.h"

namespace lossgate::report {
namespace {

TEST(PlainText, ShowsWhatCannotBeSeenByNumber) {
  EXPECT_EQ(plain("a\xE2\x80\xAE"
                  "b"),
            "a{202e}b");
  EXPECT_EQ(plain(std::string_view("a\0b\x1b", 4)), "a{0000}b{001b}");
  EXPECT_EQ(plain("two\nlines\tand\xE2\x80\xA8more"), "two lines and more");
}

TEST(PlainText, LeavesLettersOfAllWritings) {
  EXPECT_EQ(plain("π ≤ 3.15, 损失 🔥"), "π ≤ 3.15, 损失 🔥");
}

TEST(PlainText, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(plain("a\xFF"
                  "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(plain("\xC0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "longer than it need be";
  EXPECT_EQ(plain("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "half a pair";
  EXPECT_EQ(plain("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "cut";
}

TEST(PlainText, CutsWhatIsTooLongBetweenCharacters) {
  EXPECT_EQ(plain("ππππ", 3), "ππ ... (8 bytes)");
  EXPECT_LT(plain(std::string(std::size_t{1} << 20, 'x')).size(), kLongestText + 40);
}

TEST(PlainText, IsNoMarkup) {
  for (const std::string& text : hostile_texts()) {
    EXPECT_EQ(html(text).find_first_of("<>\"'"), std::string::npos);
    EXPECT_EQ(markdown_text(text).find_first_of("<>`*[]|@\n"), std::string::npos);
  }
  EXPECT_EQ(html("a & <b>"), "a &amp; &lt;b&gt;");
  EXPECT_EQ(markdown_text("a_b|c"), "a_b&#124;c");
  EXPECT_EQ(markdown_text("_a_ b_ __c a__b"), "&#95;a&#95; b&#95; &#95;&#95;c a&#95;&#95;b");
  EXPECT_EQ(markdown_text("+ the step's 2.11.0+cu130 (\"x = 1\")"),
            "&#43; the step's 2.11.0+cu130 (\"x = 1\")");
}

TEST(PlainText, LeavesInMarkdownWhatMeansNothingThere) {
  EXPECT_EQ(markdown_text("Red: 20 red findings! {x} at losses.py:11: y"),
            "Red: 20 red findings! {x} at losses.py:11: y");
  EXPECT_EQ(markdown_text("a:tada: b :+1: c.py:100: d"), "a:tada&#58; b :+1&#58; c.py:100&#58; d");
  EXPECT_EQ(markdown_text("https://x.y"), "https&#58;//x.y");
}

TEST(PlainText, GroupsDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(1627), "1,627");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(counted(1, "case"), "1 case");
  EXPECT_EQ(counted(2000, "case"), "2,000 cases");
}

}  // namespace
}  // namespace lossgate::report
