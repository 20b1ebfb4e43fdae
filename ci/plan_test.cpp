// SPDX-License-Identifier: Apache-2.0
#include "ci/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "ci/tasks.h"
#include "fuzz/domains/long_shape.h"
#include "fuzz/long_case.h"

namespace lossgate::ci {
namespace {

Plan plan_of(const std::string& loss, std::int64_t cases, std::vector<std::string> dtypes = {}) {
  PlanOptions options;
  options.filters.losses = {loss};
  options.filters.dtypes = std::move(dtypes);
  options.cases = cases;
  return Plan(options);
}

std::vector<PlannedCase> long_cases(const Plan& plan) {
  std::vector<PlannedCase> found;
  for (std::int64_t i = 0; i < plan.size(); ++i) {
    PlannedCase planned = plan.at(i);
    if (planned.long_axis) found.push_back(std::move(planned));
  }
  return found;
}

/// How many long cases a loss of one dtype has.
std::int64_t lengths_in_single(const std::string& loss) {
  return std::ssize(fuzz::lengths_of(1, *reference::find_signature(loss), std::array{Dtype::f32}));
}

TEST(Plan, AsksLongCasesAlongEachAxisAfterAllOthers) {
  const Plan plan = plan_of("cross_entropy", kWithLongCases);
  const auto found = long_cases(plan);
  const LossSignature& signature = found.front().loss->signature;
  const auto lengths = fuzz::lengths_of(1, signature, dtypes_of(signature));
  std::map<Axis, std::int64_t> most;
  std::set<Dtype> turns;
  std::ptrdiff_t others = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const PlannedCase& planned = found[i];
    EXPECT_EQ(planned.benign, fuzz::is_plain(lengths[i]));
    if (!planned.benign && !fuzz::hides(lengths[i])) continue;
    others += planned.c.spec.options != standard_spec(signature).options;
    std::int64_t& extent = most[planned.long_axis.value()];
    extent = std::max(extent, planned.c.shape[*planned.long_axis]);
    turns.insert(planned.dtype);
  }
  EXPECT_EQ(most, (std::map<Axis, std::int64_t>{
                      {Axis::sequences, 4096}, {Axis::tokens, 66561}, {Axis::vocab, 262209}}));
  EXPECT_EQ(turns.size(), 4u) << "the dtypes take turns";
  EXPECT_EQ(others, std::ranges::count_if(lengths, [](const fuzz::Length& length) {
              return length.form == fuzz::LongForm::other_option ||
                     length.form == fuzz::LongForm::other_options;
            }));
  EXPECT_EQ(found.size(), lengths.size());
  EXPECT_EQ(plan.size(), 4 * kWithLongCases + std::ssize(found));
  EXPECT_TRUE(plan.at(4 * kWithLongCases).long_axis);
}

TEST(IsAsked, OfALongCaseIsWhatALengthMayChange) {
  PlannedCase planned;
  planned.long_axis = Axis::tokens;
  std::set<std::string> asked;
  for (const properties::Property& property : properties::catalog()) {
    if (is_asked(property, planned)) asked.insert(property.name);
  }
  EXPECT_EQ(asked,
            (std::set<std::string>{"bounds_hold", "determinism", "finite_backward",
                                   "finite_forward", "grad_mode_invariance", "inputs_not_mutated",
                                   "reference_agreement", "split_invariance"}));
}

TEST(Plan, AsksNoLongCaseOfWhoAsksFew) {
  EXPECT_TRUE(long_cases(plan_of("grpo", kWithLongCases - 1)).empty());
  EXPECT_EQ(plan_of("grpo", kWithLongCases - 1).without_long_cases(),
            std::set<std::string>{"grpo"});
  EXPECT_TRUE(plan_of("grpo", kWithLongCases).without_long_cases().empty());
}

TEST(Plan, TriesAFaultOnLongCasesLast) {
  const Plan plan = plan_of("value_clip", kWithLongCases, {"f32"});
  const impl::Implementation& variant =
      *plan.selection().find_implementation("value_clip", "beyond_grid");
  const std::int64_t draws = plan.hostile_draws(variant);
  EXPECT_EQ(draws, kWithLongCases + lengths_in_single("value_clip"));
  EXPECT_FALSE(plan.hostile_at(variant, kWithLongCases - 1).long_axis);
  std::set<Axis> axes;
  for (std::int64_t draw = kWithLongCases; draw < draws; ++draw) {
    axes.insert(plan.hostile_at(variant, draw).long_axis.value());
    EXPECT_EQ(plan.hostile_index(variant, draw), draw);
  }
  EXPECT_EQ(axes, (std::set{Axis::sequences, Axis::tokens}));
}

TEST(Tasks, AreOneForEachLongCase) {
  const Plan plan = plan_of("grpo", kWithLongCases, {"f32"});
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;
  for (const Task& task : tasks_of(plan)) {
    if (task.variant.empty()) parts.emplace_back(task.begin, task.end);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> expected = {
      {0, 32}, {32, 64}, {64, 96}, {96, 100}};
  for (std::int64_t at = 100; at < plan.size(); ++at) expected.emplace_back(at, at + 1);
  EXPECT_EQ(plan.size(), 100 + lengths_in_single("grpo"));
  EXPECT_EQ(parts, expected);
}

TEST(Tasks, LeaveOutAFaultOfLengthWhereNothingIsLong) {
  const auto tries = [](std::int64_t cases) {
    const Plan plan = plan_of("value_clip", cases);
    return std::ranges::count(tasks_of(plan), "beyond_grid", &Task::variant);
  };
  EXPECT_EQ(tries(kWithLongCases), 1);
  EXPECT_EQ(tries(kWithLongCases - 1), 0);
}

TEST(Tasks, AskALongCaseAboutItsLengthAlone) {
  const Plan plan = plan_of("value_clip", kWithLongCases, {"f32"});
  Shown shown;
  BenignCases benign(plan.selection());
  const Task task{
      .begin = kWithLongCases, .end = kWithLongCases + 1, .loss = {}, .variant = {}, .skips = {}};
  const report::RunRecord record =
      run_task(plan, task, shown, benign, [](std::int64_t, const auto&) {});
  std::set<std::string> asked, of_long;
  for (const report::Cell& cell : record.cells) asked.insert(cell.property);
  for (const properties::Property& property : properties::catalog()) {
    if (property.of_long) of_long.insert(property.name);
  }
  EXPECT_EQ(asked, of_long);
  EXPECT_FALSE(asked.contains("padding_invariance"));
}

/// What is entered of the first case, or of the first long one, of the plan.
report::RunRecord failed(const Plan& plan, bool long_one, const std::string& property,
                         const std::string& cause = "no answer") {
  PlannedCase planned = plan.at(0);
  if (long_one) planned = long_cases(plan).at(0);
  report::RunRecord record;
  add_failure(record, planned, 0, *plan.selection().find_implementation("value_clip", "eager"),
              property, cause);
  return record;
}

TEST(AddFailure, SkipsALongCaseThatTakesTooLong) {
  const Plan plan = plan_of("value_clip", kWithLongCases, {"f32"});
  EXPECT_EQ(failed(plan, false, "does_not_hang").findings.size(), 1u);
  EXPECT_EQ(failed(plan, true, "does_not_crash").findings.size(), 1u);
  EXPECT_TRUE(
      failed(plan, true, "does_not_crash", "no memory: threw std::bad_alloc").findings.empty());
  const report::RunRecord record = failed(plan, true, "does_not_hang");
  EXPECT_TRUE(record.findings.empty());
  ASSERT_EQ(record.cells.size(), 1u);
  EXPECT_EQ(record.cells[0].reasons.at("skipped: long case: no answer"), 1);
}

}  // namespace
}  // namespace lossgate::ci
