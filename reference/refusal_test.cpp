// SPDX-License-Identifier: Apache-2.0
// Rule C7 of properties/README.md, by the reference: of every loss, what is refused, by which name
// and where.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A few legal cases of every loss.
template <class Check>
void for_small_cases(Check&& check) {
  for (const Loss& loss : catalog()) {
    SmallCases cases(loss.signature, 3);
    for (int i = 0, legal = 0; legal < 8; ++i) {
      ASSERT_LT(i, 200) << loss.signature.id;
      const Case c = cases.draw(Dtype::f32);
      if (expected_refusal(loss, c)) continue;
      ++legal;
      check(loss, c);
    }
  }
}

std::string argument(const Loss& loss, const Case& c) {
  const auto refusal = expected_refusal(loss, c);
  return refusal ? refusal->argument : "none";
}

TEST(Refusal, NamesTheOptionThatIsMissingOrHasNoSuchValue) {
  for_small_cases([](const Loss& loss, const Case& c) {
    for (const Option& option : loss.signature.options) {
      const auto with = [&](const OptionValue& value) {
        Case other = c;
        other.spec.set(option.name, value);
        return argument(loss, other);
      };
      Case without = c;
      std::erase_if(without.spec.options, [&](const auto& o) { return o.first == option.name; });
      EXPECT_EQ(argument(loss, without), option.name);
      if (!option.nullable) EXPECT_EQ(with(None{}), option.name);
      EXPECT_EQ(with(std::string("no such choice")), option.name);
      EXPECT_EQ(with(kNan), option.name);
      if (option.kind == Option::Kind::choice) continue;
      EXPECT_EQ(with(std::nextafter(option.low, -HUGE_VAL)), option.name);
      EXPECT_EQ(with(std::nextafter(option.high, HUGE_VAL)), option.name);
      EXPECT_NE(with(option.low), option.name);
      EXPECT_NE(with(option.high), option.name);
      const bool whole = option.kind != Option::Kind::real;
      if (whole) EXPECT_EQ(with(option.low + 0.5), option.name);
    }
    Case other = c;
    other.spec.set("no_such_option", 1.0);
    EXPECT_EQ(argument(loss, other), "no_such_option");
  });
}

TEST(Refusal, IsNotOwedToTheStandardOptions) {
  for_small_cases([](const Loss& loss, const Case& c) {
    Case standard = c;
    standard.spec = standard_spec(loss.signature);
    const std::string named = argument(loss, standard);
    EXPECT_FALSE(loss.signature.find_option(named)) << named;
  });
}

TEST(Refusal, IsNotOwedToLabelsOfWhatIsNoAxis) {
  Loss loss = *find_loss("cross_entropy");
  LossSignature& own = loss.signature;
  SmallCases cases(own, 3);
  Case c = cases.draw(Dtype::f32);
  while (expected_refusal(loss, c)) c = cases.draw(Dtype::f32);
  std::erase_if(own.fields, [](const Field& field) { return field.name != "label"; });
  std::erase_if(c.batch.fields, [](const auto& field) { return field.first != "label"; });
  c.shape[Axis::vocab] = -1;
  EXPECT_EQ(argument(loss, c), "none");
}

TEST(Refusal, NamesTheReductionThatTheLossHasNot) {
  for_small_cases([](const Loss& loss, const Case& c) {
    const auto& known = loss.signature.reductions;
    for (const Reduction reduction : kAllReductions) {
      Case other = c;
      other.spec.reduction = reduction;
      const bool has = known.empty() ? reduction == Reduction::none
                                     : std::ranges::find(known, reduction) != known.end();
      EXPECT_EQ(argument(loss, other) == "reduction", !has) << name(reduction);
    }
  });
}

TEST(Refusal, NamesTheFieldThatIsMissingOrStoredOtherwise) {
  for_small_cases([](const Loss& loss, const Case& c) {
    const auto sharing = std::ranges::count_if(
        loss.signature.fields, [](const Field& field) { return field.dtypes.empty(); });
    for (const Field& field : loss.signature.fields) {
      Case without = c, longer = c, narrow = c;
      std::erase_if(without.batch.fields, [&](const auto& f) { return f.first == field.name; });
      EXPECT_EQ(argument(loss, without), field.name);
      Tensor& tensor = longer.batch.at(field.name);
      ++tensor.extents.back();
      tensor = Tensor::zeros(tensor.dtype, tensor.extents);
      EXPECT_EQ(argument(loss, longer), field.name);
      Tensor& other = narrow.batch.at(field.name);
      other = Tensor::zeros(Dtype::f16, other.extents);
      const bool alone = field.dtypes.empty() && sharing == 1;
      EXPECT_EQ(argument(loss, narrow) == "none", alone) << field.name;
    }
  });
}

TEST(Refusal, TakesF32BesideBf16WhereTheSignatureSaysSoAlone) {
  Loss loss = *find_loss("grpo");
  const auto advantage = std::ranges::find(loss.signature.fields, "advantage", &Field::name);
  Case mixed;
  for_small_cases([&](const Loss& other, const Case& c) {
    if (other.signature.id == "grpo") mixed = c;
  });
  for (const Field& field : loss.signature.fields) {
    Tensor& tensor = mixed.batch.at(field.name);
    if (!field.dtypes.empty()) continue;
    tensor = Tensor::zeros(field.name == "advantage" ? Dtype::f32 : Dtype::bf16, tensor.extents);
  }
  EXPECT_EQ(argument(loss, mixed), "advantage");
  advantage->wide = true;
  EXPECT_EQ(argument(loss, mixed), "none");
  Tensor& narrow = mixed.batch.at("advantage");
  narrow = Tensor::zeros(Dtype::bf16, narrow.extents);
  EXPECT_EQ(argument(loss, mixed), "advantage");
}

TEST(Refusal, TakesNoWholeNumbersForFloatingPointOnes) {
  for_small_cases([](const Loss& loss, const Case& c) {
    Case whole = c;
    std::string first;
    for (const Field& field : loss.signature.fields) {
      if (!field.dtypes.empty()) continue;
      if (first.empty()) first = field.name;
      Tensor& tensor = whole.batch.at(field.name);
      tensor = Tensor::zeros(Dtype::i64, tensor.extents);
    }
    if (!first.empty()) EXPECT_EQ(argument(loss, whole), first);
  });
}

/// The refusal of the case with this number at entry `at` of a field.
std::optional<Refusal> with_entry(const Loss& loss, Case c, const std::string& field,
                                  std::int64_t at, double value) {
  c.batch.at(field).set(at, value);
  return expected_refusal(loss, c);
}

TEST(Refusal, OfAMaskOrALabelSaysWhere) {
  int masks = 0, labels = 0;
  for_small_cases([&](const Loss& loss, const Case& c) {
    const std::int64_t tokens = c.shape[Axis::tokens], vocab = c.shape[Axis::vocab];
    const std::vector<bool> valid = valid_positions(loss.signature, c);
    const auto positions = static_cast<std::int64_t>(valid.size());
    const auto expect_at = [&](const std::optional<Refusal>& refusal, const std::string& field,
                               std::int64_t position) {
      ASSERT_TRUE(refusal) << field;
      EXPECT_EQ(refusal->argument, field);
      EXPECT_EQ(refusal->sequence, position / tokens);
      EXPECT_EQ(refusal->token, position % tokens);
    };
    for (const Field& field : loss.signature.fields) {
      const std::int64_t last = c.batch.at(field.name).size() - 1;
      if (field.name == loss.signature.mask) {
        expect_at(with_entry(loss, c, field.name, last, 2.0), field.name, positions - 1);
        Case masked = c;
        for (std::int64_t at = 0; at < last; ++at) masked.batch.at(field.name).set(at, 0.0);
        expect_at(with_entry(loss, masked, field.name, last, 2.0), field.name, positions - 1);
        ++masks;
      }
      if (field.quantity != Quantity::label || !is_positional(field)) continue;
      const std::int64_t each = (last + 1) / positions;
      for (std::int64_t at = 0; at <= last; ++at) {
        if (!valid[static_cast<std::size_t>(at / each)]) continue;
        const auto with = [&](std::int64_t label) {
          return with_entry(loss, c, field.name, at, static_cast<double>(label));
        };
        expect_at(with(vocab), field.name, at / each);
        expect_at(with(-1), field.name, at / each);
        EXPECT_FALSE(with(vocab - 1)) << field.name;
        EXPECT_FALSE(with(0)) << field.name;
        ++labels;
      }
    }
  });
  EXPECT_GT(masks, 40);
  EXPECT_GT(labels, 100);
}

}  // namespace
}  // namespace lossgate::reference
