// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

/// A loss whose labels are no larger than so much less than the vocabulary.
impl::Implementation bounded(const std::string& loss, double less) {
  return answering(loss, [less](Case& c) {
    const double most = static_cast<double>(c.shape[Axis::vocab]) - less;
    change_each(c.batch.at("label"), [&](double x) { return std::min(x, most); });
  });
}

TEST(ProbeLastClass, NamesTheClassThatABoundOfLabelsTakesForAnother) {
  for (const char* loss : {"cross_entropy", "linear_cross_entropy"}) {
    expect_shown(bounded(loss, 2.0), ordinary_case(loss), "class mistaken",
                 "the answer is that with the last class taken for the one before it");
  }
}

TEST(ProbeLastClass, SaysNothingOfLabelsThatAreOthersBesides) {
  const Case c = ordinary_case("cross_entropy");
  EXPECT_FALSE(speaks(probe_last_class, bounded("cross_entropy", 3.0), c));
  const auto lower = answering("cross_entropy", [](Case& x) {
    change_each(x.batch.at("label"),
                [](double label) { return label > 0.0 ? label - 1.0 : label; });
  });
  EXPECT_FALSE(speaks(probe_last_class, lower, c));
}

}  // namespace
}  // namespace lossgate::properties
