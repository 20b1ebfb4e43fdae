// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

/// What a position lists.
double listed(const Case& c, std::int64_t position) {
  const std::int64_t support = c.shape[Axis::support];
  double sum = 0.0;
  for (std::int64_t k = 0; k < support; ++k) {
    sum += std::exp(c.batch.at("teacher_log_prob").at(position * support + k));
  }
  return sum;
}

/// No number of a list that leaves nothing; with another floor for what is asked of the formula.
impl::Implementation losing_full_lists(bool floored) {
  return answering(
      "sparse_jsd",
      [=](Case& c) {
        if (!floored) c.spec.set("tail_floor", 1e-12);
      },
      [](const Case& c, LossResult& result) {
        at_positions(c, true, [&](std::int64_t p) {
          if (listed(c, p) < 1.0) return;
          output(result, "per_token").set(p, std::nan(""));
          output(result, "loss").set(0, std::nan(""));
        });
      });
}

/// One list holds more than all there is.
Case with_a_full_list() {
  Case c = ordinary_case("sparse_jsd");
  const std::int64_t support = c.shape[Axis::support];
  for (std::int64_t k = 0; k < support; ++k) c.batch.at("teacher_log_prob").set(k, -0.125);
  return c;
}

TEST(ProbeTail, NamesAFloorOfALogarithmThatThereIsNone) {
  expect_shown(losing_full_lists(true), with_a_full_list(), "clamp after exp",
               "right where a list leaves less than its floor, and no number where it leaves "
               "nothing");
}

TEST(ProbeTail, NamesAFloorThatDoesNotHold) {
  expect_shown(losing_full_lists(false), with_a_full_list(), "dead clamp",
               "no number where a list leaves nothing, and another one where it leaves less than "
               "its floor");
}

TEST(ProbeTail, SaysNothingOfWhatIsNoNumberHoweverLittleIsListed) {
  const auto lost = answering("sparse_jsd", nullptr, [](const Case&, LossResult& result) {
    output(result, "loss").set(0, std::nan(""));
  });
  EXPECT_FALSE(speaks(probe_tail, lost, with_a_full_list()));
  const auto of_logits = answering("sparse_jsd", nullptr, [](const Case& c, LossResult& result) {
    if (c.batch.at("student_logits").at(0) > 100.0) output(result, "loss").set(0, std::nan(""));
  });
  Case far = with_a_full_list();
  far.batch.at("student_logits").set(0, 200.0);
  EXPECT_FALSE(speaks(probe_tail, of_logits, far));
}

}  // namespace
}  // namespace lossgate::properties
