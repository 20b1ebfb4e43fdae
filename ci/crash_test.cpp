// SPDX-License-Identifier: Apache-2.0
#include "ci/crash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "corpora/case_id.h"
#include "fuzz/draw_case.h"
#include "impl/catalog.h"

namespace lossgate::ci {
namespace {

constexpr const char* kSegfault = "killed by signal 11 (Segmentation fault)";

const reference::Loss& loss() { return *reference::find_loss("grpo"); }

std::vector<const properties::Property*> all() {
  std::vector<const properties::Property*> asked;
  for (const properties::Property& property : properties::catalog()) asked.push_back(&property);
  return asked;
}

/// A sound implementation, but for what `before` throws.
impl::Implementation subject(std::function<void(const Case&)> before) {
  impl::Implementation made = *std::ranges::find_if(
      impl::catalog(/*with_torch=*/false),
      [](const auto& one) { return one.loss == "grpo" && one.name == "host"; });
  made.evaluate = [before = std::move(before), inner = made.evaluate](
                      const LossSignature& signature, const Case& c) {
    before(c);
    return inner(signature, c);
  };
  return made;
}

[[noreturn]] void crash(const std::string& how) {
  throw ImplementationThrew(how, "does_not_crash");
}

std::int64_t positions(const Case& c) { return c.shape[Axis::sequences] * c.shape[Axis::tokens]; }

/// A case of so many positions or more, and of two sequences and tokens at least.
Case large_case(std::int64_t least) {
  for (std::uint64_t seed = 1;; ++seed) {
    fuzz::Choices choices(seed);
    Case c = draw_case(loss().signature, Dtype::f32, fuzz::Profile::benign, choices);
    const bool both = c.shape[Axis::sequences] > 1 && c.shape[Axis::tokens] > 1;
    if (both && positions(c) >= least) return c;
  }
}

std::optional<SimpleCrash> made_simple(const impl::Implementation& implementation, const Case& c) {
  const auto met = Crash::on(loss(), implementation, all(), c);
  return met ? simplest(*met, loss().signature, c, nullptr) : std::nullopt;
}

TEST(Crash, IsMetOnTheSimplestCaseThatTakesIt) {
  const auto implementation = subject([](const Case& c) {
    if (positions(c) >= 6) crash(std::string(kSegfault) + "; it said last: " + corpora::case_id(c));
  });
  const Case c = large_case(12);
  const auto simple = made_simple(implementation, c);
  ASSERT_TRUE(simple);
  EXPECT_LT(positions(simple->c), 12);
  EXPECT_GE(positions(simple->c), 6);
  EXPECT_EQ(simple->how, std::string(kSegfault) + "; it said last: " + corpora::case_id(simple->c));
  EXPECT_EQ(simple->c.provenance.story, "made simple from case " + corpora::case_id(c));
  EXPECT_TRUE(Crash::on(loss(), implementation, all(), simple->c));
}

TEST(Crash, IsNotTakenForAnother) {
  const auto implementation = subject([](const Case& c) {
    if (c.shape[Axis::sequences] < 2) crash("killed by signal 6 (Aborted)");
    if (c.shape[Axis::tokens] < 2) throw ImplementationThrew("no answer", "does_not_hang");
    crash(kSegfault);
  });
  const Case c = large_case(12);
  const auto simple = made_simple(implementation, c);
  ASSERT_TRUE(simple);
  EXPECT_EQ(simple->how, kSegfault);
  EXPECT_EQ(simple->c.shape[Axis::sequences], 2);
  EXPECT_EQ(simple->c.shape[Axis::tokens], 2);
}

TEST(Crash, ThatIsNotMetAgainHasNoSimplerCase) {
  int crashes = 1;
  const auto now_and_then = subject([&](const Case&) {
    if (crashes-- > 0) crash(kSegfault);
  });
  const Case c = large_case(12);
  const auto met = Crash::on(loss(), now_and_then, all(), c);
  ASSERT_TRUE(met);
  crashes = 5;
  EXPECT_FALSE(simplest(*met, loss().signature, c, nullptr));
}

TEST(Crash, IsNothingThatHangsOrIsAskedNoMore) {
  const auto hangs = subject([](const Case&) {
    throw ImplementationThrew("no answer in the time that a call has", "does_not_hang");
  });
  EXPECT_FALSE(Crash::on(loss(), hangs, all(), large_case(12)));
  const auto worn = subject(
      [](const Case&) { throw ImplementationWornOut("crashed 50 times", "does_not_crash"); });
  EXPECT_FALSE(Crash::on(loss(), worn, all(), large_case(12)));
  EXPECT_FALSE(Crash::on(loss(), subject([](const Case&) {}), all(), large_case(12)));
}

}  // namespace
}  // namespace lossgate::ci
