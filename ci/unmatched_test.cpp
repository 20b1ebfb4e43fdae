// SPDX-License-Identifier: Apache-2.0
#include "ci/unmatched.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/reference.h"

namespace lossgate::ci {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

void add(Unmatched& unmatched, const char* loss, std::vector<std::string> taken,
         std::vector<std::string> lacking) {
  unmatched.add(*reference::find_signature(loss),
                {std::string("as ") + loss, std::move(taken), std::move(lacking)});
}

TEST(Unmatched, NamesTheLossThatKnowsMostParametersAndWhatIsLeft) {
  Unmatched unmatched;
  add(unmatched, "grpo", {"mask"}, {"student_logits", "topk_ids", "topk_logps"});
  add(unmatched, "sparse_jsd", {"student_logits", "mask"}, {"topk_ids", "topk_logps"});
  add(unmatched, "linear_jsd", {"student_logits", "mask"}, {"topk_ids", "topk_logps"});
  EXPECT_THAT(unmatched.text(),
              StartsWith("of 3 losses none can be called with these names; the nearest, "
                         "sparse_jsd, takes 2 of 4, not topk_ids, topk_logps: lossgate init "
                         "sparse_jsd begins a file that says the rest, as arguments = { topk_ids "
                         "= \"field:...\" }, its fields being "));
  EXPECT_THAT(unmatched.text(), Not(HasSubstr("advantage"))) << "grpo's own";
}

TEST(Unmatched, NamesNoLossWhereNoneKnowsAParameter) {
  Unmatched unmatched;
  add(unmatched, "grpo", {}, {"a", "b"});
  add(unmatched, "jsd", {}, {"a", "b"});
  EXPECT_THAT(unmatched.text(), StartsWith("of 2 losses none can be called with these names, and "
                                           "none has a field with one of the names a, b; "));
}

TEST(Unmatched, SaysOfOneLossAllThatCanBeWritten) {
  Unmatched unmatched;
  EXPECT_EQ(unmatched.text(), "");
  add(unmatched, "grpo", {"mask"}, {"a"});
  EXPECT_EQ(unmatched.text(), "as grpo");
}

}  // namespace
}  // namespace lossgate::ci
