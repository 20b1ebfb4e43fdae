// SPDX-License-Identifier: Apache-2.0
// What holds for every loss of the catalog, on small cases drawn from its signature alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "properties/agreement.h"
#include "properties/behind_mask.h"
#include "properties/case_facts.h"
#include "properties/entry_sinks.h"
#include "properties/fake_answer.h"
#include "properties/property.h"
#include "properties/transforms.h"
#include "reference/given_case.h"
#include "reference/spec/masked.h"

namespace lossgate::properties {
namespace {

using reference::Loss;
using reference::Tracked;

/// Whether they are the same number, NaN itself.
bool same(const Tracked& a, const Tracked& b) {
  const auto equal = [](auto x, auto y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return equal(a.v, b.v) && equal(a.err, b.err) && equal(a.peak, b.peak) && equal(a.half, b.half);
}

/// A few legal cases of every loss.
template <class Check>
void for_small_cases(int count, Check&& check) {
  for (const Loss& loss : reference::catalog()) {
    reference::SmallCases cases(loss.signature, 5);
    for (int i = 0, legal = 0; legal < count && i < 200; ++i) {
      const Case c = cases.draw(Dtype::f64);
      if (reference::expected_refusal(loss, c)) continue;
      ++legal;
      SCOPED_TRACE(loss.signature.id + ", small case " + std::to_string(i));
      check(loss, c);
    }
  }
}

std::optional<Transformed> apply(const Transform& transform, const Loss& loss, const Case& c) {
  return transform.apply(loss.signature, c, c);
}

/// Entries of a field that have other bits.
std::set<std::int64_t> changed(const Case& a, const Case& b, const std::string& field) {
  const Tensor &x = a.batch.at(field), &y = b.batch.at(field);
  std::set<std::int64_t> entries;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (load_bits(x.dtype, x.element(i)) != load_bits(y.dtype, y.element(i))) entries.insert(i);
  }
  return entries;
}

/// Whether the entry of a field stands at a position that counts; those without a position do.
bool counts(const Loss& loss, const Case& c, const Field& field, std::int64_t entry) {
  if (!is_positional(field)) return true;
  const std::int64_t each = entries_per_position(c, c.batch.at(field.name));
  return valid_positions(loss.signature, c)[static_cast<std::size_t>(entry / each)];
}

TEST(EveryLoss, StepsByAHundredthOfEachNumberThatCountsAndToBothSides) {
  int up = 0, down = 0;
  for_small_cases(6, [&](const Loss& loss, const Case& c) {
    const Case forward = apply(kStepForward, loss, c)->c, back = apply(kStepBackward, loss, c)->c;
    for (const Field& field : loss.signature.fields) {
      const Tensor& from = c.batch.at(field.name);
      if (field.role != Role::differentiable) EXPECT_TRUE(from == forward.batch.at(field.name));
      if (field.role != Role::differentiable) continue;
      for (std::int64_t i = 0; i < from.size(); ++i) {
        const double x = from.at(i), step = forward.batch.at(field.name).at(i) - x;
        if (!counts(loss, c, field, i)) {
          EXPECT_FALSE(changed(c, forward, field.name).contains(i));
          continue;
        }
        const double size = std::fabs(x) < 0.9 ? 0.1 + std::fabs(x) : 1.0;
        EXPECT_NEAR(std::fabs(step), 0.01 * size, 1e-12);
        EXPECT_NEAR(back.batch.at(field.name).at(i) - x, -step, 1e-12);
        ++(step > 0.0 ? up : down);
      }
    }
  });
  EXPECT_GT(std::min(up, down), 100);
}

TEST(EveryLoss, HasOtherDataWhereItIsMaskedThatTheContractAllows) {
  int replaced = 0;
  for_small_cases(10, [&](const Loss& loss, const Case& c) {
    for (const Transform* transform : {&kMaskedFinite, &kMaskedNonFinite}) {
      const auto moved = apply(*transform, loss, c);
      if (!moved) continue;
      EXPECT_FALSE(reference::expected_refusal(loss, moved->c)) << transform->name;
      for (const Field& field : loss.signature.fields) {
        const Tensor& tensor = moved->c.batch.at(field.name);
        for (const std::int64_t i : changed(c, moved->c, field.name)) {
          EXPECT_FALSE(counts(loss, c, field, i)) << field.name;
          EXPECT_NE(field.name, loss.signature.mask);
          EXPECT_NE(field.name, loss.signature.ignore_label);
          if (is_float(tensor.dtype)) {
            EXPECT_TRUE(keeps_to(field.masked, field.quantity, tensor.at(i))) << field.name;
          }
          ++replaced;
        }
        if (transform == &kMaskedNonFinite || field.quantity != Quantity::label) continue;
        for (std::int64_t i = 0; i < tensor.size(); ++i) {
          if (field.name != loss.signature.ignore_label && !counts(loss, c, field, i)) {
            EXPECT_EQ(tensor.integer_at(i), 0) << "a legal label";
          }
        }
      }
    }
  });
  EXPECT_GT(replaced, 500);
}

TEST(EveryLoss, MayBeEmptiedWhollyOrByOneRowThatCounts) {
  int rows = 0;
  for_small_cases(10, [&](const Loss& loss, const Case& c) {
    const std::vector<bool> valid = valid_positions(loss.signature, c);
    if (const auto empty = apply(kAllMasked, loss, c)) {
      EXPECT_FALSE(reference::expected_refusal(loss, empty->c));
      const auto none = valid_positions(loss.signature, empty->c);
      EXPECT_EQ(std::ranges::count(none, true), 0);
    }
    const auto emptied = apply(kRowMasked, loss, c);
    if (!emptied) return;
    ++rows;
    EXPECT_FALSE(reference::expected_refusal(loss, emptied->c));
    const std::vector<bool> left = valid_positions(loss.signature, emptied->c);
    const auto tokens = static_cast<std::size_t>(c.shape[Axis::tokens]);
    const auto row = static_cast<std::int64_t>(
        static_cast<std::size_t>(std::ranges::find(valid, true) - valid.begin()) / tokens);
    for (std::size_t p = 0; p < valid.size(); ++p) {
      EXPECT_EQ(left[p], valid[p] && static_cast<std::int64_t>(p / tokens) != row);
    }
    for (const Field& field : loss.signature.fields) {
      if (!is_positional(field)) continue;
      const std::int64_t each = entries_per_position(c, c.batch.at(field.name));
      for (const std::int64_t i : changed(c, emptied->c, field.name)) {
        EXPECT_EQ(i / each / c.shape[Axis::tokens], row) << field.name;
      }
    }
  });
  EXPECT_GT(rows, 20);
}

TEST(EveryLoss, IsMovedEntryByEntryAsTheMapSays) {
  for_small_cases(6, [&](const Loss& loss, const Case& c) {
    for (const Transform* transform : {&kPadded, &kRowsPermuted}) {
      const auto moved = apply(*transform, loss, c);
      if (!moved) continue;
      EXPECT_FALSE(reference::expected_refusal(loss, moved->c)) << transform->name;
      for (const Field& field : loss.signature.fields) {
        const Tensor &from = c.batch.at(field.name), &to = moved->c.batch.at(field.name);
        if (!has_rows(field.axes)) {
          EXPECT_TRUE(from == to) << field.name;
          continue;
        }
        const OutputInfo info{.name = "", .field = "", .axes = field.axes, .extents = from.extents};
        std::set<std::int64_t> reached;
        for (std::int64_t i = 0; i < from.size(); ++i) {
          const std::int64_t at = moved->index_of(info, to.extents, i);
          EXPECT_TRUE(reached.insert(at).second);
          EXPECT_EQ(load_bits(from.dtype, from.element(i)), load_bits(to.dtype, to.element(at)));
        }
        const double filler = field.name == loss.signature.ignore_label ? kIgnoreLabel : 0.0;
        for (std::int64_t at = 0; at < to.size(); ++at) {
          if (!reached.contains(at)) EXPECT_EQ(to.at(at), filler) << field.name;
        }
      }
    }
  });
}

TEST(EveryLoss, IsPoisonedAtOnePlaceThatCountsAndSpoiltInOneThatIsRefused) {
  int poisoned = 0;
  for_small_cases(10, [&](const Loss& loss, const Case& c) {
    for (const Transform& way : kInvalid) {
      const auto spoilt = apply(way, loss, c);
      if (!spoilt) continue;
      EXPECT_TRUE(reference::expected_refusal(loss, spoilt->c)) << way.name;
      const Tensor* mask =
          loss.signature.mask.empty() ? nullptr : c.batch.find(loss.signature.mask);
      if (mask && mask->dtype == Dtype::boolean) {
        EXPECT_TRUE(*mask == spoilt->c.batch.at(loss.signature.mask)) << "it holds no 2";
      }
    }
    const auto bad = apply(kNanAtValid, loss, c);
    if (!bad) return;
    std::set<std::int64_t> positions;
    for (const Field& field : loss.signature.fields) {
      const auto entries = changed(c, bad->c, field.name);
      if (entries.empty()) continue;
      EXPECT_EQ(++poisoned, poisoned);
      const auto positions_of_case = std::ssize(valid_positions(loss.signature, c));
      const auto row = bad->c.batch.at(field.name).size() / positions_of_case;
      const bool one = entries.size() == 1U || std::ssize(entries) == row;
      EXPECT_TRUE(field.one_per_sequence || one) << entries.size();
      for (const std::int64_t i : entries) {
        EXPECT_FALSE(std::isfinite(bad->c.batch.at(field.name).at(i)));
        if (!field.one_per_sequence) EXPECT_TRUE(counts(loss, c, field, i)) << field.name;
      }
      positions.insert(*entries.begin());
    }
    EXPECT_EQ(positions.size(), 1U) << "one field";
  });
  EXPECT_GT(poisoned, 100);
}

TEST(EveryLoss, HasTheSameValuesWhoeverAsksForGradients) {
  int compared = 0;
  for_small_cases(20, [&](const Loss& loss, const Case& c) {
    const auto& forms = loss.signature.forms;
    CaseStudy study(loss, c);
    if (study.refusal()) return;
    const Arithmetic arithmetic = plain_arithmetic(Dtype::f32, forms.empty() ? "" : forms.front());
    std::vector<reference::Tracked> all;
    study.for_each_expected(arithmetic, false,
                            [&](std::size_t, std::int64_t, const auto& x) { all.push_back(x); });
    CaseStudy whole(loss, c);
    CaseStudy& alone = *whole.derived(kRepeated);
    std::size_t at = 0;
    const auto visit = [&](std::size_t o, std::int64_t, const reference::Tracked& x) {
      ASSERT_NE(alone.outputs()[o].kind, OutputKind::gradient);
      const reference::Tracked& y = all.at(at++);
      EXPECT_TRUE(x.v == y.v || (std::isnan(x.v) && std::isnan(y.v))) << loss.signature.id;
      EXPECT_EQ(std::tie(x.err, x.peak, x.half), std::tie(y.err, y.peak, y.half));
      ++compared;
    };
    alone.for_each_expected(arithmetic, false, visit, CaseStudy::Wanted::values);
  });
  EXPECT_GT(compared, 1000);
}

TEST(EveryLoss, HasTheWrongEntryNamedByItsPlace) {
  int named = 0;
  for_small_cases(3, [&](const Loss& loss, const Case& c) {
    CaseStudy study(loss, c);
    const auto outputs = study.outputs();
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const std::int64_t size = element_count(outputs[o].extents);
      for (std::int64_t i = 0; i < size; i += std::max<std::int64_t>(size / 3, 1)) {
        const auto wrong =
            answering(loss.signature.id, nullptr, [&](const Case&, LossResult& result) {
              Tensor& tensor = output(result, outputs[o].name);
              tensor.set(i, 1.0 + 2.0 * tensor.at(i));
            });
        Evaluation evaluation(study, wrong);
        evaluation.agreement.reset();
        const Outcome outcome = find_property("reference_agreement")->check(evaluation);
        if (!outcome.violation) continue;
        ++named;
        const Place& place = outcome.violation->place;
        EXPECT_EQ(place.output, outputs[o].name);
        EXPECT_EQ(place.index, outputs[o].kind == OutputKind::loss ? 0 : i);
        std::int64_t index = 0;
        for (std::size_t axis = 0; axis < place.coordinates.size(); ++axis) {
          index = index * outputs[o].extents[axis] + place.coordinates[axis];
        }
        EXPECT_EQ(index, place.index);
      }
    }
  });
  EXPECT_GT(named, 150);
}

TEST(EveryLoss, IsNotComparedWhereWhatCountsHoldsANan) {
  int skipped = 0, compared = 0;
  for_small_cases(2, [&](const Loss& loss, const Case& c) {
    const auto sound = answering(loss.signature.id, nullptr);
    for (const Field& field : loss.signature.fields) {
      const Tensor& tensor = c.batch.at(field.name);
      for (std::int64_t i = 0; is_float(tensor.dtype) && i < tensor.size(); ++i) {
        Case bad = c;
        bad.batch.at(field.name).set(i, std::nan(""));
        CaseStudy study(loss, bad);
        if (study.refusal()) continue;
        Evaluation evaluation(study, sound);
        const Outcome outcome = find_property("reference_agreement")->check(evaluation);
        const bool valid = counts(loss, c, field, i);
        EXPECT_EQ(outcome.reason == "NaN at a valid position", valid) << field.name << " " << i;
        ++(valid ? skipped : compared);
      }
    }
  });
  EXPECT_GT(std::min(skipped, compared), 40);
}

TEST(EveryLoss, HasZerosBehindItsMaskOnceTheyAreAsked) {
  int zeroed = 0;
  for_small_cases(4, [&](const Loss& loss, const Case& c) {
    if (!has_positions(loss.signature)) return;
    const CaseStudy study(loss, c);
    const auto plain = zeroed_behind_mask(study, c);
    const bool nothing = !anything_counts(study);
    bool any = false;
    for (const Field& field : loss.signature.fields) {
      const Tensor& tensor = c.batch.at(field.name);
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        const bool behind = nothing || (is_positional(field) && !counts(loss, c, field, i));
        const bool goes = behind && is_float(tensor.dtype) && tensor.at(i) != 0.0;
        any |= goes;
        if (!plain) continue;
        EXPECT_EQ(changed(c, *plain, field.name).contains(i), goes) << field.name << " " << i;
        if (goes) EXPECT_EQ(plain->batch.at(field.name).at(i), 0.0);
        zeroed += goes;
      }
    }
    EXPECT_EQ(plain.has_value(), any);
  });
  EXPECT_GT(zeroed, 100);
}

/// What a formula writes of a problem, by output and place.
std::vector<std::vector<Tracked>> written(const Loss& loss, const reference::Problem& problem,
                                          const Arithmetic& arithmetic) {
  Keeping kept(problem.outputs);
  reference::evaluate(loss, problem, arithmetic, kept);
  return std::move(kept.values);
}

TEST(EveryLoss, WritesTheSameOfTwoAccumulationsAtOnceAsOneAfterTheOther) {
  int other = 0;
  for_small_cases(10, [&](const Loss& loss, const Case& c) {
    const Arithmetic single = plain_arithmetic(
        Dtype::f32, loss.signature.forms.empty() ? "" : loss.signature.forms.front());
    Case in_parts = c;
    in_parts.split = {.world = 2, .parts = {{0, {}}, {1, {}}, {1, {}}}};
    const reference::Problem whole(loss.signature, c), divided(loss.signature, in_parts);
    Keeping one(whole.outputs), beside(whole.outputs);
    reference::evaluate(loss, whole, single, one, reference::Accumulation(in_parts.split), beside);
    const auto alone = written(loss, whole, single), apart = written(loss, divided, single);
    for (std::size_t o = 0; o < alone.size(); ++o) {
      for (std::size_t i = 0; i < alone[o].size(); ++i) {
        EXPECT_TRUE(same(one.values[o][i], alone[o][i]));
        EXPECT_TRUE(same(beside.values[o][i], apart[o][i]));
        other += !same(alone[o][i], apart[o][i]);
        const bool is_value = whole.outputs[o].kind == OutputKind::value;
        EXPECT_TRUE(!is_value || same(alone[o][i], apart[o][i])) << "nobody averages a value";
      }
    }
  });
  EXPECT_GT(other, 100);
}

TEST(EveryLoss, IsSoundWhereItsFormulaAnswers) {
  for_small_cases(8, [](const Loss& loss, const Case& c) {
    CaseStudy study(loss, c);
    const auto sound = answering(loss.signature.id, nullptr);
    Evaluation evaluation(study, sound);
    for (const Property& property : catalog()) {
      if (property.tier == Tier::hardening) continue;
      const Outcome outcome = property.check(evaluation);
      EXPECT_FALSE(outcome.violation) << property.name << ": " << outcome.violation->place.output
                                      << " " << outcome.violation->detail;
    }
  });
}

}  // namespace
}  // namespace lossgate::properties
