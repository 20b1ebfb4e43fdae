// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
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

/// A loss of as many classes as fill blocks of that size, and of the label's.
impl::Implementation in_blocks(const std::string& loss, std::int64_t block) {
  return answering(loss, [=](Case& c) {
    const std::int64_t vocab = c.shape[Axis::vocab], kept = vocab / block * block;
    Tensor& logits = c.batch.at("logits");
    for (std::int64_t i = 0; i < logits.size(); ++i) {
      const bool is_label =
          loss == "cross_entropy" && c.batch.at("label").integer_at(i / vocab) == i % vocab;
      if (i % vocab >= kept && !is_label) logits.set(i, -HUGE_VAL);
    }
  });
}

TEST(ProbeLostClasses, NameHowManyAreLeftOutOfAnOddVocabulary) {
  for (const char* loss : {"cross_entropy", "entropy_bonus"}) {
    expect_shown(in_blocks(loss, 4), ordinary_case(loss), "remainder dropped",
                 "the answer is that without the last 3 of 7 classes");
    expect_shown(in_blocks(loss, 3), ordinary_case(loss), "remainder dropped",
                 "the answer is that without the last of 7 classes");
  }
}

TEST(ProbeLostClasses, NameThemWhereALayerMakesTheLogits) {
  expect_shown(through_layer(in_blocks("cross_entropy", 4)), ordinary_case("linear_cross_entropy"),
               "remainder dropped", "the answer is that without the last 3 of 7 classes");
  const auto halved =
      through_layer(answering("cross_entropy", nullptr, [](const Case&, LossResult& result) {
        for (Output& each : result.outputs) {
          change_each(each.tensor, [](double x) { return 0.5 * x; });
        }
      }));
  EXPECT_FALSE(speaks(probe_lost_classes, halved, ordinary_case("linear_cross_entropy")));
}

TEST(ProbeLostClasses, FindABlockThatIsLargerThanFewClasses) {
  const Case c = ordinary_case("cross_entropy");
  EXPECT_TRUE(speaks(probe_lost_classes, in_blocks("cross_entropy", 64), c));
}

TEST(ProbeLostClasses, SayNothingWhereOtherClassesAreLostOrNone) {
  const auto first = answering("cross_entropy", [](Case& c) {
    Tensor& logits = c.batch.at("logits");
    for (std::int64_t i = 1; i < logits.size(); i += c.shape[Axis::vocab]) logits.set(i, -30.0);
  });
  EXPECT_FALSE(speaks(probe_lost_classes, first, ordinary_case("cross_entropy")));
  const auto halved = answering("entropy_bonus", nullptr, [](const Case&, LossResult& result) {
    for (Output& each : result.outputs) change_each(each.tensor, [](double x) { return 0.5 * x; });
  });
  EXPECT_FALSE(speaks(probe_lost_classes, halved, ordinary_case("entropy_bonus")));
}

}  // namespace
}  // namespace lossgate::properties
