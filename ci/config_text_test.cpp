// SPDX-License-Identifier: Apache-2.0
#include "ci/config_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ci/given_critic.h"
#include "impl/external/config.h"

namespace lossgate::ci {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

/// What a gate reads of it.
impl::Subject read(const std::string& text) {
  return impl::parse_config(text, "lossgate.toml", "", reference::find_signature).at(0);
}

TEST(ConfigText, IsReadBackWhateverIsInIt) {
  Recognition match = critic();
  match.subject.name = "\"critic\" \\ two";
  match.subject.entry = "py:our \"own\"\\losses\n\t\x7f.py:critic";
  match.subject.options = {{"clip_form", "interval"}, {"value_clip", None{}}};
  match.subject.arguments = {{"\u03bb", "json:\"return\"\\n"}, {"keep", "field:mask as float"}};
  match.faults = {"it says\none = 1"};
  IdentifyOptions options;
  options.entry = "our \"own\"\nlosses.py:critic";
  options.interpreter = "/opt/\"py\"\\python";
  const impl::Subject subject = read(config_text(options, match, {}, {}));
  EXPECT_EQ(subject.name, match.subject.name);
  EXPECT_EQ(subject.entry, match.subject.entry);
  EXPECT_EQ(subject.interpreter, options.interpreter);
  EXPECT_EQ(subject.options, match.subject.options);
  EXPECT_THAT(subject.arguments, UnorderedElementsAre(Pair("\u03bb", "json:\"return\"\\n"),
                                                      Pair("keep", "field:mask as float")));
}

TEST(ConfigText, LeavesInCommentsWhatIsForOthersToSay) {
  const Promise broken{.table = std::string(kSubjectTable),
                       .line = "dtypes = [\"f32\", \"bf16\"]",
                       .asked = "fields in bf16",
                       .cases = 1,
                       .failing = {"killed by signal 11; it said last: one\ntwo = \x1b[1m2"}};
  const Proposal even{
      .line = "[subject.contract] uneven_parts = false\n[subject.contract] uneven_ranks = false",
      .right = "parts are as large as each other",
      .seen = "",
      .relaxes = {}};
  const std::string text = config_text({}, critic(), {broken}, {even});
  EXPECT_THAT(text, HasSubstr("\n# dtypes = [\"f32\", \"bf16\"]  # not kept: killed by signal 11"));
  for (const char* line : {"uneven_parts", "uneven_ranks"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n# ") + line +
                                " = false  # right only if parts are as large as each other\n"));
  }
  const impl::Subject subject = read(text);
  EXPECT_EQ(subject.dtypes, std::vector{Dtype::f32});
  EXPECT_TRUE(subject.contract.uneven_parts && subject.contract.uneven_ranks);
}

TEST(ConfigText, HasTheOtherOfTwoOptionsOfWhichOneStaysAsAComment) {
  Recognition match = critic();
  match.subject.options = {{"clip_form", "interval"}, {"value_clip", None{}}};
  match.choices = {{"value_clip", "half", 1.0}};
  const std::string text = config_text({}, match, {}, {});
  EXPECT_THAT(text, HasSubstr("\n# options = { clip_form = \"interval\", half = 1 }  # in place of "
                              "the options below: asks value_clip everywhere\noptions = { "));
  EXPECT_EQ(read(text).options, match.subject.options);
}

TEST(ConfigText, CallsNoWordWrongOfAReductionThatMayNeedAnother) {
  std::vector<Promise> words;
  for (const char* word : {"sum", "mean"}) {
    words.push_back({.table = std::string(kSubjectTable),
                     .line = std::string("micro_batches = \"") + word + '"',
                     .asked = "a batch in parts",
                     .of_trainer = true,
                     .cases = 72,
                     .failing = {"split_invariance (12 cases: mean of means)"}});
  }
  Recognition match = critic();
  EXPECT_THAT(config_text({}, match, words, {}),
              HasSubstr("; it is wrong under \"sum\", \"mean\"\n"));
  match.subject.reductions.push_back(Reduction::sum);
  EXPECT_THAT(
      config_text({}, match, words, {}),
      HasSubstr("; it is wrong under \"sum\", \"mean\" with all of its reductions, of which "
                "one alone may be right\n"));
  words.front().failing.clear();
  EXPECT_THAT(config_text({}, match, words, {}),
              HasSubstr("; it is right under \"sum\", not under \"mean\"\n"));
}

}  // namespace
}  // namespace lossgate::ci
