// SPDX-License-Identifier: Apache-2.0
// Each probe with an implementation that has its cause, and with a neighbour that has not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// GRPO whose answers depend on how many cases were asked before, by `change`.
impl::Implementation counting(std::function<void(int calls, const Case&, LossResult&)> change) {
  return answering("grpo", nullptr,
                   [change = std::move(change), calls = std::make_shared<int>(0)](
                       const Case& c, LossResult& result) { change((*calls)++, c, result); });
}

TEST(ProbeState, SeesWhatCallsAddUp) {
  const auto adds_up =
      counting([](int calls, const Case&, LossResult& result) { add_to_loss(result, calls); });
  expect_shown(adds_up, ordinary_case("grpo"), "state between calls",
               "asked again the same case gets another answer, by more than rounding");
}

TEST(ProbeState, SeesWhatAnotherCaseLeavesBehind) {
  const auto keeps = [kept = std::make_shared<Tensor>()](const Case& c, LossResult& result) {
    const Tensor& advantage = c.batch.at("advantage");
    if (!kept->bytes.empty() && !(*kept == advantage)) add_to_loss(result, 1.0);
    *kept = advantage;
  };
  const auto fake = answering("grpo", nullptr, keeps);
  fake.evaluate(grpo().signature, grpo_case(3, 7, Dtype::f64));
  Case c = ordinary_case("grpo");
  put(c, "advantage", 0, 0, 3.0);
  EXPECT_EQ(diagnosed(fake, c).cause, "state between calls");
}

TEST(ProbeState, SeesChanceInAPlainCaseThatTheGivenOneIsTooSmallFor) {
  const auto fake = counting([](int calls, const Case& c, LossResult& result) {
    const bool small = c.shape[Axis::sequences] == 1;
    add_to_loss(result, small ? 1.0 : calls);
  });
  EXPECT_EQ(diagnosed(fake, grpo_case(1, 1, Dtype::f64)).cause, "state between calls");
}

TEST(Diagnosis, BlamesNoDataForWhatIsNotSoWhenItIsAskedAgain) {
  // The second call is that with other data behind the mask.
  const auto once = counting([](int calls, const Case&, LossResult& result) {
    if (calls == 1) add_to_loss(result, 1.0);
  });
  expect_shown(once, ordinary_case("grpo"), "state between calls",
               "the same question, asked once more, has another answer");
}

TEST(ProbeState, TellsRoundingThatVariesFromDataThatLeaks) {
  expect_shown(fake_grpo(Flaw::order_varies), ordinary_case("grpo", Dtype::f32),
               "order of operations varies",
               "asked again the same case gets other bits, and all of them are right");
}

TEST(ProbeState, BlamesNoNumberThatIsWrongOnRoundingThatVaries) {
  const auto fake = counting([](int calls, const Case&, LossResult& result) {
    add_to_loss(result, 1.0 + 2.3e-16 * (calls % 2));
  });
  EXPECT_NE(diagnosed(fake, ordinary_case("grpo", Dtype::f64)).cause, "order of operations varies");
}

TEST(ProbeState, SaysNothingOfAnAnswerThatIsWrongEachTime) {
  EXPECT_EQ(diagnosed(fake_grpo(Flaw::signal_dead), grpo_case(4, 4)).cause, "dead signal");
}

TEST(ProbeStrides, SeesWhatIsRightInContiguousTensorsAlone) {
  const auto off_by_layout = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (c.layout == Layout::transposed) add_to_loss(result, 1.0);
  });
  Case c = ordinary_case("grpo");
  c.layout = Layout::transposed;
  expect_shown(off_by_layout, c, "strides ignored",
               "the same numbers in contiguous tensors are right");
}

TEST(ProbeStrides, SeesThatAnInputIsWrittenIntoWhoseNumbersShareAPlace) {
  const auto writes = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    result.mutated = {"advantage"};
    if (c.layout != Layout::contiguous) add_to_loss(result, 1.0);
  });
  Case c = ordinary_case("grpo");
  c.layout = Layout::mixed;
  expect_shown(writes, c, "input overwritten",
               "it writes into its inputs, and is right where each number of them has a place of "
               "its own");
}

TEST(ProbeStrides, SeesWhatIsWrongOfAnotherCaseThanTheGivenOne) {
  const auto off_by_layout = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const bool plain = std::fabs(get(c, "advantage", 0, 0)) < 2.0;
    if (plain && c.layout == Layout::transposed) add_to_loss(result, 1.0);
    if (!plain && c.batch.at("mask").at(3) == 0.0) add_to_loss(result, kNan);
  });
  Case c = grpo_case(4, 4, Dtype::f64);
  put(c, "advantage", 0, 0, 3.0);
  c.layout = Layout::transposed;
  EXPECT_EQ(diagnosed(off_by_layout, c).cause, "strides ignored");
}

TEST(ProbeStrides, SeesWhatIsWrongOfAnExpandedGradientAlone) {
  const auto off_in_one_piece = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (c.layout == Layout::contiguous) add_to_loss(result, 1.0);
  });
  expect_shown(off_in_one_piece, ordinary_case("grpo"), "strides ignored",
               "the same numbers are right where nothing that comes in is expanded");
}

/// GRPO that keeps what a field is given first where tensors lie so, as by their address.
impl::Implementation keeping_by_place(const std::string& field) {
  using Place = std::pair<Layout, Extents>;
  return answering("grpo", [field, kept = std::make_shared<std::map<Place, Tensor>>()](Case& c) {
    Tensor& tensor = c.batch.at(field);
    tensor = kept->emplace(Place(c.layout, tensor.extents), tensor).first->second;
  });
}

TEST(ProbeStrides, TellsWhatIsKeptByWhereItLiesFromStrides) {
  Case c = ordinary_case("grpo");
  c.layout = Layout::transposed;
  Case before = c;
  change_each(before.batch.at("advantage"), [](double x) { return -x; });
  mask_out(before, 0, 0);
  for (const std::string field : {"advantage", "mask"}) {
    const auto keeps = keeping_by_place(field);
    keeps.evaluate(grpo().signature, before);
    expect_shown(
        keeps, c, "state between calls",
        "with another " + field + ", where that of the case before lay, the answer is that case's");
  }
}

TEST(ProbeStrides, SaysNothingOfChance) {
  const auto once = counting([](int calls, const Case&, LossResult& result) {
    if (calls == 0) add_to_loss(result, 1.0);
  });
  Case c = ordinary_case("grpo");
  c.layout = Layout::transposed;
  CaseStudy study(grpo(), c);
  const Violation violation;
  Suspect suspect(study, once, violation);
  EXPECT_FALSE(probe_strides(suspect));
}

TEST(ProbeStrides, SaysNothingWhereContiguousTensorsAreWrongToo) {
  Case c = ordinary_case("grpo");
  c.layout = Layout::padded_rows;
  EXPECT_EQ(diagnosed(fake_grpo(Flaw::signal_dead), c).cause, "dead signal");
}

Case with_upstream(double upstream) {
  Case c = ordinary_case("grpo");
  c.upstream = upstream;
  return c;
}

TEST(ProbeUpstream, SeesGradientsThatItDoesNotReach) {
  for (const double upstream : {0.25, 3.0, -1.0, 65536.0}) {
    expect_shown(fake_grpo(Flaw::upstream_ignored), with_upstream(upstream),
                 "wrong upstream factor", "half the loss has the gradient of the whole one");
  }
}

TEST(ProbeUpstream, SeesAGradientThatItDoesNotReachBesideOthers) {
  const auto one = answering("linear_jsd", nullptr, [](const Case& c, LossResult& result) {
    change_each(output(result, "gradient.student_weight"),
                [&](double x) { return x / c.upstream; });
  });
  Case c = ordinary_case("linear_jsd");
  c.upstream = 0.25;
  EXPECT_EQ(diagnosed(one, c).cause, "wrong upstream factor");
}

TEST(ProbeUpstream, SeesOneThatIsIgnoredWhereTheGradientIsWrongAnyhow) {
  const auto twice = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    change_each(output(result, "gradient.log_prob"),
                [&](double x) { return 5.0 * x / c.upstream; });
  });
  EXPECT_EQ(diagnosed(twice, with_upstream(1.0)).cause, "wrong upstream factor");
}

TEST(ProbeUpstream, LeavesGradientsAtALimitAlone) {
  const auto clipped = answering("grpo", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "gradient.log_prob"),
                [](double x) { return std::clamp(x, -1e-9, 1e-9); });
  });
  EXPECT_NE(diagnosed(clipped, ordinary_case("grpo")).cause, "wrong upstream factor");
}

/// GRPO whose gradient has that of the upstream gradient for a factor.
impl::Implementation multiplying_by(double (*factor)(double)) {
  return answering("grpo", nullptr, [=](const Case& c, LossResult& result) {
    change_each(output(result, "gradient.log_prob"),
                [&](double x) { return x / c.upstream * factor(c.upstream); });
  });
}

TEST(ProbeUpstream, SeesAnotherFactorWhereTheGradientIsRightUnderOne) {
  const auto square = multiplying_by([](double u) { return u * u; });
  expect_shown(square, with_upstream(0.25), "wrong upstream factor",
               "the gradient is right, that of minus the loss is not");
  const auto absolute = multiplying_by([](double u) { return std::fabs(u); });
  expect_shown(absolute, with_upstream(-4.0), "wrong upstream factor",
               "the gradient is right, that of minus the loss is not");
  const auto capped = multiplying_by([](double u) { return std::min(u, 1.0); });
  EXPECT_EQ(diagnosed(capped, with_upstream(65536.0)).cause, "wrong upstream factor");
  const auto rounded =
      multiplying_by([](double u) { return std::ldexp(std::rint(std::ldexp(u, 10)), -10); });
  expect_shown(rounded, with_upstream(0.1), "wrong upstream factor",
               "the gradient is right, that of a tenth of the loss is not");
  const auto far = multiplying_by([](double u) { return std::min(u, 1000.0); });
  expect_shown(far, with_upstream(65536.0), "wrong upstream factor",
               "the gradient is right, that of 65536 times the loss is not");
}

TEST(ProbeUpstream, SaysNothingOfWhatIsWrongUnderOneToo) {
  const auto twice_wrong = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const bool far = c.batch.at("log_prob").at(0) < -20.0;
    change_each(output(result, "gradient.log_prob"),
                [&](double x) { return far ? x + 1.0 : x * c.upstream; });
  });
  Case c = ordinary_case("grpo");
  for (const char* field : {"log_prob", "old_log_prob"}) c.batch.at(field).set(0, -30.0);
  EXPECT_NE(diagnosed(twice_wrong, c).cause, "wrong upstream factor");
}

TEST(ProbeUpstream, ExplainsNoValueThatIsWrong) {
  const auto both = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    change_each(output(result, "gradient.log_prob"), [&](double x) { return x / c.upstream; });
    const Tensor& mask = c.batch.at("mask");
    if (std::ranges::count(mask.bytes, std::byte{0}) < std::ssize(mask.bytes)) return;
    change_each(output(result, "loss"), [](double) { return std::nan(""); });
  });
  Case c = with_upstream(1.0);
  Tensor& mask = c.batch.at("mask");
  for (std::int64_t i = 0; i < mask.size(); ++i) mask.set(i, 0.0);
  EXPECT_EQ(diagnosed(both, c).cause, "empty divisor");
}

TEST(ProbeUpstream, LeavesGradientsThatAreWrongUnderOneToOthers) {
  EXPECT_EQ(diagnosed(fake_grpo(Flaw::signal_dead), with_upstream(0.25)).cause, "dead signal");
}

impl::Implementation refusing(std::function<bool(const Case&)> what) {
  return answering("grpo", nullptr, [what = std::move(what)](const Case& c, LossResult& result) {
    if (!what(c)) return;
    result = {};
    result.refusal = Refusal{"", -1, -1, "all tensors must be on one device"};
  });
}

TEST(ProbeRefusal, SeesWhatRefusesPlainNumbersToo) {
  expect_shown(refusing([](const Case&) { return true; }), ordinary_case("grpo"),
               "ordinary input refused",
               "plain numbers, without an edge or a split, are refused with these options, too");
}

/// Clears its advantages, and refuses what it cannot write into.
impl::Implementation clearing_unless(bool (*raises)(const Case&)) {
  return answering("grpo", nullptr, [raises](const Case& c, LossResult& result) {
    const Tensor& advantage = c.batch.at("advantage");
    if (!(advantage == Tensor::zeros(advantage.dtype, advantage.extents))) {
      result.mutated = {"advantage"};
    }
    if (!raises(c)) return;
    result = {};
    result.refusal = Refusal{"", -1, -1, "it cannot be written into"};
  });
}

Case cleared(Layout layout) {
  Case c = ordinary_case("grpo");
  c.layout = layout;
  change_each(c.batch.at("advantage"), [](double) { return 0.0; });
  return c;
}

TEST(ProbeRefusal, SeesThatWhatItRefusesCannotBeWrittenInto) {
  const auto shares_memory = [](const Case& c) { return c.layout == Layout::mixed; };
  const auto is_leaf = [](const Case& c) { return c.grad_mode != GradMode::none; };
  for (const auto& fake : {clearing_unless(shares_memory), clearing_unless(is_leaf)}) {
    expect_shown(
        fake, cleared(Layout::mixed), "input overwritten",
        "it writes into its inputs, and has an answer where each number of them has a place "
        "of its own and no gradient is asked for");
  }
}

TEST(ProbeRefusal, TellsARefusalOfViewsFromWritingIntoInputs) {
  const auto is_view = [](const Case& c) { return c.layout != Layout::contiguous; };
  EXPECT_EQ(diagnosed(clearing_unless(is_view), cleared(Layout::mixed)).cause,
            "legal input refused");
}

TEST(ProbeRefusal, IsSilentWhereAnEdgeOrPaddingIsRefused) {
  Case far = ordinary_case("grpo");
  put(far, "log_prob", 0, 0, -200.0);
  const auto refuses_far =
      refusing([](const Case& c) { return get(c, "log_prob", 0, 0) < -100.0; });
  EXPECT_EQ(diagnosed(refuses_far, far).cause, "legal input refused");
  const auto refuses_padding = refusing([](const Case& c) {
    const Tensor& mask = c.batch.at("mask");
    return std::ranges::count(mask.bytes, std::byte{0}) > 0;
  });
  Case padded = ordinary_case("grpo");
  put(padded, "mask", 0, 0, 0.0);
  EXPECT_EQ(diagnosed(refuses_padding, padded).cause, "legal input refused");
}

TEST(ProbeRefusal, IsNotAskedOfWhatReturnsNoResult) {
  const auto nothing = answering("grpo", nullptr, [](const Case&, LossResult& result) {
    result = {};
    result.refusal = Refusal{impl::kNoResult, -1, -1, "loss returned nothing"};
  });
  EXPECT_EQ(diagnosed(nothing, ordinary_case("grpo")).cause, "malformed result");
}

}  // namespace
}  // namespace lossgate::properties
