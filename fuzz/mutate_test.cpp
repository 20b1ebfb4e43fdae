// SPDX-License-Identifier: Apache-2.0
#include "fuzz/mutate.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "fuzz/acceptance.h"
#include "fuzz/cross.h"
#include "fuzz/fake_signatures.h"
#include "fuzz/hash.h"
#include "fuzz/moved_value.h"
#include "reference/reference.h"

namespace lossgate::fuzz {
namespace {

/// A policy loss of which callers promise much.
LossSignature fake_contract() {
  LossSignature signature = fake_policy_loss();
  signature.empty_rows = EmptyRows::counted;
  signature.fields[0].masked = Masked::ordinary;
  signature.fields[1].masked = Masked::minus_infinity;
  signature.fields[2].masked = Masked::finite;
  signature.fields[3].one_per_sequence = true;
  signature.longest = {{Axis::sequences, 3}, {Axis::tokens, 6}};
  return signature;
}

LossSignature fake_even_parts(bool parts, bool ranks) {
  LossSignature signature = fake_policy_loss();
  signature.even_parts = parts;
  signature.even_ranks = ranks;
  return signature;
}

const std::vector<LossSignature>& signatures() {
  static const std::vector<LossSignature> all = [] {
    std::vector<LossSignature> list = all_signatures();
    list.push_back(fake_contract());
    list.push_back(fake_even_parts(true, true));
    list.push_back(fake_even_parts(true, false));
    list.push_back(fake_even_parts(false, true));
    list.push_back(*std::ranges::find_if(list, [](const LossSignature& each) {
      return std::ranges::find(each.fields, Role::group, &Field::role) != each.fields.end();
    }));
    for (Field& field : list.back().fields) field.even_groups = field.role == Role::group;
    list.push_back(fake_policy_loss());
    list.push_back(*reference::find_signature("jsd"));
    for (std::size_t i = list.size() - 2; i < list.size(); ++i) list[i].prefix_mask = true;
    list.push_back(*reference::find_signature("sparse_jsd"));
    for (Field& field : list.back().fields) field.distinct = field.name == "support_token";
    for (const reference::Loss& loss : reference::catalog()) list.push_back(loss.signature);
    return list;
  }();
  return all;
}

struct Drawn {
  const LossSignature* signature;
  Dtype dtype;
  Profile profile;
  Case c;
};

Drawn some_case(Choices& choices) {
  Drawn drawn{.signature = &choices.one_of(std::span<const LossSignature>(signatures())),
              .dtype = choices.one_of(kFloats),
              .profile = choices.one_of(kAllProfiles),
              .c = {}};
  Choices own(static_cast<std::uint64_t>(choices.integer(0, INT64_MAX)));
  drawn.c = draw_case(*drawn.signature, drawn.dtype, drawn.profile, own);
  return drawn;
}

std::string words(const Drawn& d) {
  return d.signature->id + " " + std::string(name(d.dtype)) + " " + std::string(name(d.profile));
}

RC_GTEST_PROP(Mutate, WhateverIsMadeOfAnAcceptedCaseIsAccepted, (std::uint64_t seed)) {
  Choices choices(seed);
  Drawn drawn = some_case(choices);
  for (int step = 0; step < 12; ++step) {
    Choices own(seed + static_cast<std::uint64_t>(step));
    const Mutation mutation = choices.one_of(kAllMutations);
    drawn.c = mutated(mutation, *drawn.signature, drawn.profile, drawn.c, own);
    const std::string fault = fault_of(*drawn.signature, drawn.c, drawn.dtype);
    if (!fault.empty())
      RC_FAIL(words(drawn) + ": " + fault + " after " + std::to_string(static_cast<int>(mutation)));
  }
}

RC_GTEST_PROP(Mutate, AnyBytesMakeAnAcceptedCaseOfOne, (std::vector<std::uint8_t> bytes)) {
  Choices choices(hash_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  const Drawn drawn = some_case(choices);
  Choices fed{std::span<const std::uint8_t>(bytes)};
  const Case made = mutated(*drawn.signature, drawn.profile, drawn.c, fed);
  RC_ASSERT(fault_of(*drawn.signature, made, drawn.dtype) == "");
}

RC_GTEST_PROP(Mutate, TwoAcceptedCasesMakeAnAcceptedOne, (std::uint64_t seed)) {
  Choices choices(seed);
  const Drawn first = some_case(choices);
  Choices own(seed);
  const Case second = draw_case(*first.signature, first.dtype, first.profile, own);
  const Case child = crossed(*first.signature, first.c, second, choices);
  const std::string fault = fault_of(*first.signature, child, first.dtype);
  if (!fault.empty()) RC_FAIL(words(first) + ": " + fault);
}

TEST(Mutate, WhatACallerPromisesIsKept) {
  const LossSignature signature = fake_contract();
  Case before = draw(signature, Dtype::f32, Profile::hostile, 0);
  for (std::uint64_t i = 0; i < 3000; ++i) {
    Choices choices(i);
    const Mutation mutation = choices.one_of(kAllMutations);
    const Case made = mutated(mutation, signature, Profile::hostile, before, choices);
    ASSERT_EQ(fault_of(signature, made, Dtype::f32), "") << i << " " << static_cast<int>(mutation);
    const Case other = draw(signature, Dtype::f32, Profile::hostile, i);
    ASSERT_EQ(fault_of(signature, crossed(signature, made, other, choices), Dtype::f32), "") << i;
    before = i % 10 == 0 ? other : made;
  }
}

// Without the tables an infinity is what a large number becomes that is doubled.
TEST(Mutate, MakesATokenImpossibleWhereThatIsLegalAndAnotherIsLeft) {
  for (const char* loss : {"entropy_bonus", "value_clip"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    const Field& field = signature.fields[0];
    int impossible = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Case c = draw(signature, Dtype::f32, Profile::benign, seed);
      Tensor& tensor = c.batch.at(field.name);
      Tensor& mask = c.batch.at(signature.mask);
      for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, -max_finite(Dtype::f32));
      for (std::int64_t i = 0; i < mask.size(); ++i) mask.set(i, 1.0);
      for (std::uint64_t step = 0; step < 40; ++step) {
        Choices choices(seed * 1000 + step);
        move_value(signature, field, Profile::benign, c, choices);
      }
      ASSERT_EQ(fault_of(signature, c, Dtype::f32), "") << loss << seed;
      const std::int64_t row = tensor.extents.back();
      for (std::int64_t begin = 0; begin < tensor.size(); begin += row) {
        int finite = 0;
        for (std::int64_t i = begin; i < begin + row; ++i) finite += std::isfinite(tensor.at(i));
        impossible += finite < row;
        ASSERT_GT(finite, 0) << loss << seed;
      }
    }
    EXPECT_EQ(impossible > 0, field.infinity == Infinity::legal) << loss;
  }
}

TEST(Mutate, EveryMutationChangesSomethingOfSomeCase) {
  const LossSignature signature = *reference::find_signature("grpo");
  for (const Mutation mutation : kAllMutations) {
    int changed = 0;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
      Choices choices(i);
      changed += !is_same(c, mutated(mutation, signature, Profile::hostile, c, choices));
    }
    EXPECT_GT(changed, 20) << static_cast<int>(mutation);
  }
}

TEST(Mutate, TheSameSeedMakesTheSameCase) {
  const LossSignature signature = fake_mixed_loss();
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
    Choices one(i), other(i);
    EXPECT_TRUE(is_same(mutated(signature, Profile::hostile, c, one),
                        mutated(signature, Profile::hostile, c, other)));
  }
}

TEST(Mutate, ShapesGrowAndShrinkOnEveryAxis) {
  const LossSignature signature = *reference::find_signature("linear_grpo");
  std::map<Axis, std::set<int>> directions;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
    Choices choices(i);
    const Case made = mutated(Mutation::shape, signature, Profile::hostile, c, choices);
    for (Axis axis : kAllAxes) {
      if (made.shape[axis] != c.shape[axis]) {
        directions[axis].insert(made.shape[axis] > c.shape[axis] ? 1 : -1);
      }
    }
  }
  for (Axis axis : {Axis::sequences, Axis::tokens, Axis::vocab, Axis::hidden}) {
    EXPECT_EQ(directions[axis].size(), 2u) << name(axis);
  }
}

TEST(Mutate, WhatIsOnBothShapesKeepsItsValues) {
  const LossSignature signature = fake_policy_loss();
  int kept = 0, counted = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Case c = draw(signature, Dtype::f32, Profile::benign, i);
    Choices choices(i);
    const Case made = mutated(Mutation::shape, signature, Profile::benign, c, choices);
    const std::int64_t tokens = c.shape[Axis::tokens], its = made.shape[Axis::tokens];
    const auto here = valid_positions(signature, c), there = valid_positions(signature, made);
    for (std::int64_t s = 0; s < std::min(c.shape[Axis::sequences], made.shape[Axis::sequences]);
         ++s) {
      for (std::int64_t t = 0; t < std::min(tokens, its); ++t) {
        const auto a = static_cast<std::size_t>(s * tokens + t),
                   b = static_cast<std::size_t>(s * its + t);
        if (!here[a] || !there[b]) continue;
        ++counted;
        kept +=
            c.batch.at("log_prob").at(s * tokens + t) == made.batch.at("log_prob").at(s * its + t);
      }
    }
  }
  EXPECT_GT(counted, 1000);
  EXPECT_EQ(kept, counted);
}

TEST(Mutate, ABenignProfileMeetsNoEdgeButRandomBits) {
  const LossSignature signature = fake_policy_loss();
  std::map<std::string, int> seen;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    Case c = draw(signature, Dtype::f32, Profile::benign, i);
    for (std::uint64_t step = 0; step < 8; ++step) {
      Choices choices(mix(i * 100 + step));
      c = mutated(Mutation::value, signature, Profile::benign, c, choices);
    }
    const std::vector<bool> valid = valid_positions(signature, c);
    for (std::int64_t at = 0; at < std::ssize(valid); ++at) {
      const double value = c.batch.at("log_prob").at(at);
      if (!valid[static_cast<std::size_t>(at)] && !std::isfinite(value)) ++seen["non-finite"];
      if (value == -20.0 || value == -100.0) ++seen["edge"];
    }
  }
  EXPECT_GT(seen["non-finite"], 0);
  EXPECT_EQ(seen["edge"], 0);
}

}  // namespace
}  // namespace lossgate::fuzz
