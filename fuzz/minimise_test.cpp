// SPDX-License-Identifier: Apache-2.0
#include "fuzz/minimise.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "corpora/case_id.h"
#include "fuzz/choices.h"
#include "fuzz/draw_case.h"
#include "fuzz/fake_signatures.h"
#include "fuzz/smaller.h"
#include "impl/catalog.h"

namespace lossgate::fuzz {
namespace {

const impl::Implementation& faulty_grpo(std::string_view name) {
  return *std::ranges::find_if(impl::catalog(/*with_torch=*/false),
                               [&](const auto& i) { return i.loss == "grpo" && i.name == name; });
}

/// Ordinary values, every position valid, the standard options.
Case grpo_case(std::int64_t sequences, std::int64_t tokens) {
  const LossSignature& signature = *reference::find_signature("grpo");
  Case c;
  c.spec = standard_spec(signature);
  c.shape[Axis::sequences] = sequences;
  c.shape[Axis::tokens] = tokens;
  for (const Field& field : signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes.front();
    Tensor tensor = Tensor::zeros(dtype, c.shape.of(field.axes));
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      tensor.set(i, field.role == Role::mask ? 1.0 : -0.5 - 0.013 * static_cast<double>(i % 17));
    }
    c.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  return c;
}

bool is_same(const Case& a, const Case& b) {
  return a.spec == b.spec && a.shape == b.shape && a.batch == b.batch && a.split == b.split &&
         a.layout == b.layout && a.upstream == b.upstream;
}

Failure failure(std::string_view faulty, std::string_view property, const Case& c) {
  return Failure::on(*reference::find_loss("grpo"), faulty_grpo(faulty),
                     *properties::find_property(property), c)
      .value();
}

/// A log-ratio beyond exp at one masked position of a large batch full of other things.
Case overflow_among_many() {
  Case c = grpo_case(7, 12);
  c.layout = Layout::padded_rows;
  c.upstream = -3.5;
  c.split.parts = {{0, {0, 1, 2}}, {0, {3, 4, 5, 6}}};
  c.spec.set("kl_estimator", "k2");
  c.spec.reduction = Reduction::sequence_mean;
  for (std::int64_t t = 8; t < 12; ++t) c.batch.at("mask").set(4 * 12 + t, 0.0);
  c.batch.at("old_log_prob").set(4 * 12 + 9, -1234.5678);
  return c;
}

TEST(Minimise, LeavesWhatTheFailureNeedsAndNothingElse) {
  const Case c = overflow_among_many();
  const Failure found = failure("unclamped_exp_mask_multiply", "finite_backward", c);
  const Minimised small = minimise(found, c, {.tries = 100'000});
  EXPECT_TRUE(small.complete);
  EXPECT_TRUE(found.shows_on(small.c));
  EXPECT_EQ(small.c.spec.reduction, Reduction::sequence_mean) << "another finding";
  EXPECT_EQ(small.c.shape[Axis::sequences], 1);
  EXPECT_LE(small.c.shape[Axis::tokens], 2);
  EXPECT_TRUE(small.c.split.whole());
  EXPECT_EQ(small.c.layout, Layout::contiguous);
  EXPECT_EQ(small.c.upstream, 1.0);
  // A masked position and a log-ratio there; perhaps one that counts, and no clamp.
  EXPECT_LE(unusual_numbers(found.loss().signature, small.c), 5);
}

TEST(Minimise, KeepsToWhatCallersHandOver) {
  reference::Loss loss = *reference::find_loss("grpo");
  loss.signature.pinned = {{Axis::tokens, 12}};
  const Failure found =
      Failure::on(loss, faulty_grpo("unclamped_exp_mask_multiply"),
                  *properties::find_property("finite_backward"), overflow_among_many())
          .value();
  const Case small = minimise(found, overflow_among_many(), {.tries = 100'000}).c;
  EXPECT_EQ(small.shape[Axis::sequences], 1);
  EXPECT_EQ(small.shape[Axis::tokens], 12);
}

TEST(Minimise, KeepsTheSplitWhereThatIsWhatFails) {
  Case c = grpo_case(6, 5);
  c.split.parts = {{0, {0, 1, 2, 3}}, {0, {4}}, {0, {5}}};
  const Failure found = failure("mean_of_micro_batch_means", "split_invariance", c);
  const Minimised small = minimise(found, c, {.tries = 100'000});
  EXPECT_TRUE(found.shows_on(small.c));
  EXPECT_FALSE(small.c.split.whole());
  EXPECT_LE(small.c.shape[Axis::sequences], 3);
  const auto is_empty = [](const Split::Part& part) { return part.sequences.empty(); };
  EXPECT_LE(std::ranges::count_if(small.c.split.parts, is_empty), 1)
      << "of those that became empty one is enough";
}

TEST(Minimise, AsksNoMoreOftenThanItMay) {
  const Case c = overflow_among_many();
  const Failure found = failure("unclamped_exp_mask_multiply", "finite_backward", c);
  const Minimised small = minimise(found, c, {.tries = 10});
  EXPECT_EQ(small.tried, 10);
  EXPECT_FALSE(small.complete);
  EXPECT_TRUE(found.shows_on(small.c));
}

TEST(Minimise, AsksACaseThatHoldsOnce) {
  const Case c = overflow_among_many();
  const Failure found = failure("unclamped_exp_mask_multiply", "finite_backward", c);
  std::set<std::string> held;
  std::int64_t asked = 0;
  const auto still_fails = [&](const Case& simpler) {
    ++asked;
    if (found.shows_on(simpler)) return true;
    EXPECT_TRUE(held.insert(corpora::case_id(simpler)).second) << "try " << asked;
    return false;
  };
  const Minimised small = minimise(found.loss().signature, c, still_fails, {.tries = 100'000});
  EXPECT_TRUE(is_same(small.c, minimise(found, c, {.tries = 100'000}).c));
  EXPECT_LT(asked, small.tried);
}

TEST(Minimise, LeavesACaseThatIsMinimalAsItIs) {
  const Case c = overflow_among_many();
  const Failure found = failure("unclamped_exp_mask_multiply", "finite_backward", c);
  const Minimised once = minimise(found, c, {.tries = 100'000});
  const Minimised twice = minimise(found, once.c, {.tries = 100'000});
  EXPECT_TRUE(is_same(once.c, twice.c));
}

TEST(Minimise, DoesNotTurnOneFailureIntoAnother) {
  // Behind the mask of a batch that counts, and in a batch in which nothing does.
  Case c = overflow_among_many();
  const Failure found = failure("unclamped_exp_mask_multiply", "finite_backward", c);
  EXPECT_TRUE(found.shows_on(c));
  Tensor& mask = c.batch.at("mask");
  for (std::int64_t i = 0; i < mask.size(); ++i) mask.set(i, 0.0);
  EXPECT_FALSE(found.shows_on(c));
}

/// The first drawn case on which a faulty variant fails as its Fault says it must.
std::optional<std::pair<Failure, Case>> first_failure(const impl::Implementation& faulty) {
  const reference::Loss& loss = *reference::find_loss(faulty.loss);
  for (std::uint64_t index = 0; index < 64; ++index) {
    const Dtype dtype = index % 2 == 0 ? Dtype::f32 : Dtype::f16;
    Choices choices(case_seed(1, faulty.loss, dtype, index));
    const Case c = draw_case(loss.signature, dtype, Profile::hostile, choices);
    if (faulty.unsupported(c)) continue;
    for (const std::string& killer : faulty.fault->killers) {
      if (auto failure = Failure::on(loss, faulty, *properties::find_property(killer), c)) {
        return std::pair(*failure, c);
      }
    }
  }
  return std::nullopt;
}

TEST(Minimise, LeavesFewNumbersOfTheFaultsThatItKnows) {
  std::vector<std::int64_t> left;
  for (const impl::Implementation& implementation : impl::catalog(/*with_torch=*/false)) {
    if (!implementation.fault) continue;
    const auto found = first_failure(implementation);
    if (!found) continue;
    const Minimised small = minimise(found->first, found->second, {.tries = 2'000});
    ASSERT_TRUE(found->first.shows_on(small.c)) << implementation.name;
    left.push_back(unusual_numbers(found->first.loss().signature, small.c));
    std::printf(
        "%-16s %-40s %6lld -> %4lld, %lld tried\n", implementation.loss.c_str(),
        implementation.name.c_str(),
        static_cast<long long>(unusual_numbers(found->first.loss().signature, found->second)),
        static_cast<long long>(left.back()), static_cast<long long>(small.tried));
  }
  ASSERT_GE(left.size(), 80U);
  std::ranges::sort(left);
  std::printf("median %lld of %zu\n", static_cast<long long>(left[left.size() / 2]), left.size());
  EXPECT_LE(left[left.size() / 2], 8);
}

Minimised minimal(const Case& c, const StillFails& still_fails) {
  return minimise(*reference::find_signature("grpo"), c, still_fails, {});
}

TEST(Minimise, LeavesAsManyElementsAsTheFailureTakes) {
  const Minimised small = minimal(grpo_case(4096, 4), [](const Case& c) {
    return c.shape[Axis::sequences] * c.shape[Axis::tokens] >= 1025;
  });
  EXPECT_EQ(small.c.shape[Axis::sequences], 1025);
  EXPECT_EQ(small.c.shape[Axis::tokens], 1);
  EXPECT_EQ(unusual_numbers(*reference::find_signature("grpo"), small.c), 0);
  EXPECT_TRUE(small.complete);
  EXPECT_LE(small.tried, 400);
}

TEST(Minimise, FindsTheFewestElementsThatLeaveARemainder) {
  const Case c = grpo_case(1, 66561);
  const Minimised any =
      minimal(c, [](const Case& at) { return at.shape[Axis::tokens] % 1024 != 0; });
  EXPECT_EQ(any.c.shape[Axis::tokens], 1);
  EXPECT_LE(any.tried, 100);
  const Minimised beyond = minimal(c, [](const Case& at) {
    return at.shape[Axis::tokens] > 1024 && at.shape[Axis::tokens] % 1024 == 1;
  });
  EXPECT_EQ(beyond.c.shape[Axis::tokens], 1025);
  EXPECT_LE(beyond.tried, 400);
}

TEST(Minimise, LeavesTwoRowsThatAreNeededTogether) {
  Case c = grpo_case(4096, 4);
  c.batch.at("log_prob").set(1000 * 4 + 2, -77.0);
  c.batch.at("log_prob").set(3000 * 4 + 2, -78.0);
  const Minimised small = minimal(c, [](const Case& at) {
    bool one = false, other = false;
    const Tensor& tensor = at.batch.at("log_prob");
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      one = one || tensor.at(i) == -77.0;
      other = other || tensor.at(i) == -78.0;
    }
    return one && other;
  });
  EXPECT_EQ(small.c.shape[Axis::sequences], 2);
  EXPECT_EQ(small.c.shape[Axis::tokens], 1);
  EXPECT_EQ(unusual_numbers(*reference::find_signature("grpo"), small.c), 2);
  EXPECT_TRUE(small.complete);
  EXPECT_LE(small.tried, 300);
}

TEST(Minimise, SoonSeesThatALargeCaseIsAsSimpleAsItGoes) {
  const Case c = grpo_case(4096, 16);
  const Minimised same = minimal(c, [](const Case&) { return false; });
  EXPECT_TRUE(is_same(same.c, c));
  EXPECT_TRUE(same.complete);
  EXPECT_EQ(same.steps, 0);
  EXPECT_LE(same.tried, 3 + 5 * 160 + (4 * 12 + 152) + (4 * 4 + 152));
}

TEST(Minimise, LetsNoPassTakeTheTriesOfTheOthers) {
  // Every other number is needed: to leave out those between takes one try each, and more than all
  // that there are. That the digits are not needed is found in one, by the last pass.
  const Case c = grpo_case(2, 63);
  const auto every_other = [&](const Case& at) {
    if (at.shape != c.shape) return false;
    const Tensor& tensor = at.batch.at("log_prob");
    for (std::int64_t i = 0; i < tensor.size(); i += 2) {
      if (tensor.at(i) == 0.0) return false;
    }
    return true;
  };
  const LossSignature& signature = *reference::find_signature("grpo");
  const Minimised small = minimise(signature, c, every_other, {.tries = 210});
  EXPECT_EQ(small.tried, 210);
  EXPECT_EQ(small.c.batch.at("log_prob").at(0), -1.0);
  EXPECT_EQ(unusual_numbers(signature, minimal(c, every_other).c), 63);
}

TEST(SimplerCases, MakeNoInfinityOfTheLargestNumber) {
  const LossSignature signature = fake_policy_loss();
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
    Choices choices(std::uint64_t{7});
    Case c = draw_case(signature, dtype, Profile::benign, choices);
    int finite = 0;
    for (const Field& field : signature.fields) {
      Tensor& tensor = c.batch.at(field.name);
      if (is_float(tensor.dtype) && tensor.size() > 0) tensor.set(0, -max_finite(tensor.dtype));
    }
    const auto look = [&](const Case& simpler) {
      for (const Field& field : signature.fields) {
        const Tensor& tensor = simpler.batch.at(field.name);
        if (!is_float(tensor.dtype) || tensor.size() == 0) continue;
        EXPECT_TRUE(std::isfinite(tensor.at(0))) << field.name << " in " << name(tensor.dtype);
        ++finite;
      }
      return false;
    };
    minimise(signature, c, look, {});
    EXPECT_GT(finite, 10);
  }
}

RC_GTEST_PROP(SimplerCases, AreOtherCasesWhoseTensorsHaveTheirShapes, ()) {
  const LossSignature signature = *rc::gen::elementOf(all_signatures());
  Choices choices(*rc::gen::arbitrary<std::uint64_t>());
  const Case c = draw_case(signature, Dtype::f32, Profile::hostile, choices);
  Case before = c;
  int tried = 0;
  const auto look = [&](const Case& simpler) {
    RC_ASSERT(!is_same(simpler, before));
    LossSpec followed = simpler.spec;
    follow(signature, followed);
    RC_ASSERT(followed == simpler.spec);
    for (const Field& field : signature.fields) {
      const Tensor& tensor = simpler.batch.at(field.name);
      RC_ASSERT(tensor.extents == simpler.shape.of(field.axes));
      RC_ASSERT(tensor.size() == element_count(tensor.extents));
    }
    const bool taken = ++tried % 5 == 0;
    if (taken) before = simpler;
    return taken;
  };
  minimise(signature, c, look, {.tries = 200});
}

}  // namespace
}  // namespace lossgate::fuzz
