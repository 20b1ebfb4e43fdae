// SPDX-License-Identifier: Apache-2.0
#include "properties/plain_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "impl/given_toy_loss.h"
#include "properties/case_facts.h"
#include "properties/fake_answer.h"
#include "reference/given_case.h"
#include "reference/spec/lists.h"
#include "reference/spec/padding.h"

namespace lossgate::properties {
namespace {

/// A plain case of every loss that has one, like a small case with garbage and a split.
template <class Check>
void for_every_loss(const Plain& plain, Check&& check) {
  int made = 0;
  for (const reference::Loss& loss : reference::catalog()) {
    reference::SmallCases cases(loss.signature, 2);
    Case like = cases.draw(Dtype::f32);
    like.split = {.world = 1, .parts = {{0, {0}}, {0, {}}}};
    const auto c = plain_case(loss.signature, like, plain);
    if (!c) continue;
    ++made;
    SCOPED_TRACE(loss.signature.id);
    check(loss, like, *c);
  }
  EXPECT_GT(made, 12);
}

/// How many positions count in each sequence.
std::vector<std::int64_t> row_counts(const LossSignature& signature, const Case& c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(c.shape[Axis::sequences]));
  for (std::size_t p = 0; p < valid.size(); ++p) {
    counts[p / static_cast<std::size_t>(c.shape.positions())] += valid[p];
  }
  return counts;
}

TEST(PlainCase, IsLegalAndWholeWithTheOptionsOfTheOther) {
  for_every_loss({.dtype = Dtype::f64},
                 [](const reference::Loss& loss, const Case& like, const Case& c) {
                   EXPECT_FALSE(reference::expected_refusal(loss, c));
                   EXPECT_TRUE(c.spec == like.spec);
                   EXPECT_TRUE(c.split.whole());
                   EXPECT_EQ(c.upstream, 1.0);
                   for (const Field& field : loss.signature.fields) {
                     const Tensor& tensor = c.batch.at(field.name);
                     if (field.dtypes.empty()) EXPECT_EQ(tensor.dtype, Dtype::f64) << field.name;
                     for (std::int64_t i = 0; i < tensor.size(); ++i)
                       EXPECT_TRUE(std::isfinite(tensor.at(i)));
                   }
                 });
}

TEST(PlainCase, HasFourSequencesOfLengthsOfTheirOwn) {
  for_every_loss({}, [](const reference::Loss& loss, const Case&, const Case& c) {
    EXPECT_EQ(c.shape[Axis::sequences], 4);
    if (!has_positions(loss.signature)) return;
    const auto counts = row_counts(loss.signature, c);
    EXPECT_EQ(std::set<std::int64_t>(counts.begin(), counts.end()).size(), 4U);
    EXPECT_GT(*std::ranges::min_element(counts), 1);
    EXPECT_EQ(*std::ranges::max_element(counts), c.shape[Axis::tokens]) << "one is full";
  });
}

TEST(PlainCase, HasWhatCountsFirstWhereTheCallerPadsOnTheRight) {
  LossSignature signature = *reference::find_signature("grpo");
  reference::SmallCases cases(signature, 2);
  const Case like = cases.draw(Dtype::f32);
  const auto lengths = row_counts(signature, *plain_case(signature, like, {}));
  signature.prefix_mask = true;
  const Case c = *plain_case(signature, like, {});
  EXPECT_TRUE(valid_come_first(signature, c));
  EXPECT_EQ(row_counts(signature, c), lengths);
}

TEST(PlainCase, NamesNoTokenTwiceWhereTheCallerTookTheKLargest) {
  LossSignature signature = *reference::find_signature("sparse_jsd");
  for (Field& field : signature.fields) field.distinct = field.name == "support_token";
  reference::SmallCases cases(signature, 2);
  Case like = cases.draw(Dtype::f32);
  signature.pinned = {{Axis::support, 20}};
  for (const Plain& plain : {Plain{}, Plain{.length = {{Axis::tokens, 3}}}}) {
    const Case c = *plain_case(signature, like, plain);
    EXPECT_GE(c.shape[Axis::vocab], c.shape[Axis::support]);
    EXPECT_TRUE(lists_are_distinct(signature, c));
  }
}

TEST(PlainCase, LetsAllCountOfWhatIsMaskedBelowPositions) {
  LossSignature signature = *reference::find_signature("kto");
  const Case like = reference::SmallCases(signature, 2).draw(Dtype::f32);
  for (Field& field : signature.fields) {
    if (field.name == "desirable") field.role = Role::mask;
  }
  const Case c = *plain_case(signature, like, {});
  for (std::int64_t s = 0; s < 4; ++s) EXPECT_EQ(c.batch.at("desirable").integer_at(s), 1);
}

TEST(PlainCase, HasBothKindsOfSequencesWhereThereAreKinds) {
  const LossSignature& signature = *reference::find_signature("kto");
  const Case like = reference::SmallCases(signature, 2).draw(Dtype::f32);
  const Case c = *plain_case(signature, like, {}), other = *with_other_numbers(signature, c, {});
  for (std::int64_t s = 0; s < 4; ++s) {
    EXPECT_EQ(c.batch.at("desirable").integer_at(s), s % 2 == 0);
    EXPECT_EQ(other.batch.at("desirable").integer_at(s), s % 2 == 0);
  }
}

TEST(PlainCase, GivesNoPositionANegativeWeight) {
  const LossSignature& signature = *reference::find_signature("reinforce");
  const Case like = reference::SmallCases(signature, 2).draw(Dtype::f32);
  const Case c = *plain_case(signature, like, {.padding = false});
  const Tensor& weight = c.batch.at("importance_weight");
  for (std::int64_t i = 0; i < weight.size(); ++i) EXPECT_GE(weight.at(i), 0.0);
  EXPECT_NE(weight.at(0), weight.at(1));
}

TEST(PlainCase, HasNoPaddingOrAnEmptyRowWhereItIsAsked) {
  for_every_loss({.padding = false}, [](const reference::Loss& loss, const Case&, const Case& c) {
    for (const std::int64_t count : row_counts(loss.signature, c)) {
      EXPECT_EQ(count, c.shape.positions());
    }
  });
  for_every_loss({.empty_row = true}, [](const reference::Loss& loss, const Case&, const Case& c) {
    if (!has_positions(loss.signature)) return;
    const auto counts = row_counts(loss.signature, c);
    EXPECT_EQ(std::ranges::count(counts, 0), 1);
    EXPECT_EQ(counts.back(), 0);
  });
}

TEST(PlainCase, HasZerosWhereMaskedAndNumbersOfTheirOwnElsewhere) {
  for_every_loss({}, [](const reference::Loss& loss, const Case&, const Case& c) {
    if (!has_positions(loss.signature)) return;
    const std::vector<bool> valid = valid_positions(loss.signature, c);
    for (const Field& field : loss.signature.fields) {
      const Tensor& tensor = c.batch.at(field.name);
      if (!is_float(tensor.dtype)) continue;
      const bool masks = field.name == loss.signature.mask;
      const std::int64_t each = is_positional(field) ? entries_per_position(c, tensor) : 0;
      std::set<double> numbers;
      std::size_t counted = 0;
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        const bool counts = each == 0 || valid[static_cast<std::size_t>(i / each)];
        EXPECT_EQ(tensor.at(i) == 0.0, !counts) << field.name << " " << i;
        if (counts && !masks) numbers.insert(tensor.at(i)), ++counted;
      }
      if (!masks && !field.one_per_sequence) EXPECT_EQ(numbers.size(), counted) << field.name;
    }
  });
}

TEST(PlainCase, SpreadsItsNumbersAsFarAsIsAskedAndNoFarther) {
  for (const double spread : {1.0 / 16, 2.0, 24.0}) {
    double log_probs = 0.0, values = 0.0, logits = 0.0, least = 1.0, most = -1.0;
    const Plain plain{.spread = spread, .logit_spread = 2.0 * spread};
    for_every_loss(plain, [&](const reference::Loss& loss, const Case&, const Case& c) {
      for (const Field& field : loss.signature.fields) {
        const Tensor& tensor = c.batch.at(field.name);
        for (std::int64_t i = 0; i < tensor.size(); ++i) {
          const double size = std::fabs(tensor.at(i));
          if (field.quantity == Quantity::log_prob) EXPECT_LE(tensor.at(i), 0.0);
          if (field.quantity == Quantity::log_prob && field.axes.size() == 2) {
            EXPECT_LE(size, 1.25 * spread);
            log_probs = std::max(log_probs, size);
          }
          if (field.quantity == Quantity::value) values = std::max(values, size);
          if (field.quantity == Quantity::logit) logits = std::max(logits, size);
          if (field.quantity != Quantity::hidden_state) continue;
          least = std::min(least, tensor.at(i)), most = std::max(most, tensor.at(i));
        }
      }
    });
    EXPECT_GT(log_probs, spread);
    EXPECT_LE(values, 0.75 * spread);
    EXPECT_GT(values, 0.5 * spread);
    EXPECT_LE(logits, 2.0 * spread);
    EXPECT_GT(logits, 1.9 * spread);
    EXPECT_TRUE(-1.0 <= least && least < -0.9 && 0.9 < most && most <= 1.0) << "of any sign";
  }
}

TEST(PlainCase, HasLogProbsOfFewDigitsFarBelowZeroWhereItIsAsked) {
  for (const double spread : {1.0, 8.0}) {
    const Plain plain{.spread = spread, .few_digits = true};
    const auto check = [&](const LossSignature& signature, const Case& c) {
      for (const Field& field : signature.fields) {
        if (field.quantity != Quantity::log_prob) continue;
        const Tensor& tensor = c.batch.at(field.name);
        for (std::int64_t i = 0; i < tensor.size(); ++i) {
          const double digits = 16.0 * tensor.at(i) / spread;
          EXPECT_EQ(digits, std::round(digits)) << field.name;
          if (tensor.at(i) != 0.0) EXPECT_LT(tensor.at(i), -4.0 * spread) << field.name;
        }
      }
    };
    for_every_loss(plain, [&](const reference::Loss& loss, const Case&, const Case& c) {
      check(loss.signature, c);
      check(loss.signature, *with_other_numbers(loss.signature, c, plain));
    });
  }
}

TEST(PlainCase, ListsTokensOfTheVocabularyAndLogProbsOfADistribution) {
  for_every_loss({}, [](const reference::Loss& loss, const Case& like, const Case& c) {
    const std::int64_t vocab = c.shape[Axis::vocab];
    if (like.shape[Axis::vocab] >= 0) {
      EXPECT_GE(vocab, 5);
      EXPECT_LE(vocab, 12);
    }
    for (const Field& field : loss.signature.fields) {
      const Tensor& tensor = c.batch.at(field.name);
      std::set<std::int64_t> labels;
      const std::int64_t list = field.axes.size() > 2 ? c.shape[field.axes.back()] : 1;
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        if (field.quantity == Quantity::label && tensor.integer_at(i) != kIgnoreLabel) {
          EXPECT_GE(tensor.integer_at(i), 0);
          if (vocab > 0) EXPECT_LT(tensor.integer_at(i), vocab);
          labels.insert(tensor.integer_at(i));
        }
        if (field.quantity != Quantity::log_prob || list == 1 || i % list != 0) continue;
        double mass = 0.0;
        for (std::int64_t k = 0; k < list; ++k) mass += std::exp(tensor.at(i + k));
        EXPECT_LE(mass, static_cast<double>(list)) << "zeros where masked";
        if (tensor.at(i) != 0.0) EXPECT_LT(mass, 0.7) << field.name;
      }
      if (field.quantity == Quantity::label && vocab > 0) EXPECT_GT(labels.size(), 1U);
      if (field.quantity != Quantity::label || list > 1) continue;
      bool counts_up = true;  // then a place would do for the label
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        const std::int64_t given = tensor.integer_at(i);
        counts_up &= given == kIgnoreLabel || given == i % std::max<std::int64_t>(vocab, 1);
      }
      EXPECT_FALSE(counts_up) << field.name;
    }
  });
}

TEST(PlainCase, HasAnEmptyRowWhereSequencesHaveOneTokenEach) {
  LossSignature signature = impl::toy_signature();
  signature.pinned = {{Axis::tokens, 1}};
  const Plain plain{.padding = false, .empty_row = true};
  const auto c = plain_case(signature, impl::toy_case(signature, 2, 1), plain);
  ASSERT_EQ(c->shape[Axis::tokens], 1);
  EXPECT_EQ(row_counts(signature, *c), (std::vector<std::int64_t>{1, 1, 1, 0}));
}

TEST(PlainCase, IsNoLongerThanCallersSay) {
  LossSignature signature = impl::toy_signature();
  signature.longest = {{Axis::tokens, 2}, {Axis::sequences, 3}};
  const auto c = plain_case(signature, impl::toy_case(signature, 2, 1));
  EXPECT_EQ(c->shape[Axis::tokens], 2);
  EXPECT_EQ(row_counts(signature, *c), (std::vector<std::int64_t>{2, 2, 2})) << "and none is empty";
}

TEST(PlainCase, LabelsSequencesWhereASignatureDoes) {
  LossSignature signature = impl::toy_signature();
  signature.fields.push_back({.name = "class",
                              .role = Role::label,
                              .quantity = Quantity::label,
                              .axes = {Axis::sequences},
                              .dtypes = {Dtype::i64}});
  const auto c = plain_case(signature, impl::toy_case(signature, 2, 3));
  const Tensor& labels = c->batch.at("class");
  ASSERT_EQ(labels.size(), 4);
  std::set<std::int64_t> classes;
  for (std::int64_t i = 0; i < labels.size(); ++i) classes.insert(labels.integer_at(i));
  EXPECT_EQ(classes.size(), 4U);
  EXPECT_GE(*classes.begin(), 0);
  EXPECT_LT(*classes.rbegin(), c->shape[Axis::vocab]);
}

TEST(PlainCase, HasItsSequencesBesideACaseThatHasNone) {
  const LossSignature& signature = *reference::find_signature("grpo");
  Case like = ordinary_case("grpo");
  like.shape[Axis::sequences] = like.shape[Axis::tokens] = 0;
  const auto c = plain_case(signature, like);
  EXPECT_EQ(c->shape[Axis::sequences], 4);
  EXPECT_EQ(c->shape[Axis::tokens], 5);
}

TEST(PlainCase, IsNoneWhereNoOrdinaryNumberIsKnown) {
  const LossSignature& payload = *reference::find_signature("teacher_payload");
  EXPECT_FALSE(plain_case(payload, reference::SmallCases(payload, 1).draw(Dtype::f64)));
}

TEST(WithOtherNumbers, KeepsEverythingButNumbersThatAreNotZero) {
  for_every_loss({}, [](const reference::Loss& loss, const Case&, const Case& plain) {
    const auto other = with_other_numbers(loss.signature, plain, {.turn = 1});
    ASSERT_TRUE(other);
    EXPECT_EQ(other->spec, plain.spec);
    EXPECT_EQ(valid_positions(loss.signature, *other), valid_positions(loss.signature, plain));
    const auto next = with_other_numbers(loss.signature, plain, {.turn = 2});
    for (const Field& field : loss.signature.fields) {
      const Tensor &now = other->batch.at(field.name), &before = plain.batch.at(field.name);
      for (std::int64_t i = 0; i < now.size(); ++i) {
        EXPECT_EQ(now.at(i) == 0.0, before.at(i) == 0.0) << field.name;
      }
      // Labels, groups and a mask are no such numbers, and a loss may have nothing else.
      const bool moves = is_float(before.dtype) && field.name != loss.signature.mask;
      EXPECT_EQ(now != before, moves) << field.name;
      EXPECT_EQ(next->batch.at(field.name) != now, moves) << field.name;
    }
  });
}

}  // namespace
}  // namespace lossgate::properties
