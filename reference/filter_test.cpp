// SPDX-License-Identifier: Apache-2.0
// The filter beside the reference: values and bounds of one formula in double and in long double.
#include "reference/filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "reference/given_case.h"
#include "reference/lanes/vectors.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

struct Kept final : Sink<Tracked> {
  explicit Kept(const Problem& problem) {
    for (const OutputInfo& output : problem.outputs) {
      values.emplace_back(static_cast<std::size_t>(element_count(output.extents)));
    }
  }
  void entry(std::size_t output, std::int64_t index, const Tracked& value) override {
    values[output][static_cast<std::size_t>(index)] = value;
  }
  std::vector<std::vector<Tracked>> values;
};

/// Arithmetics of all kinds that double is fine enough for.
std::vector<Arithmetic> arithmetics(const Loss& loss, Dtype storage) {
  std::vector<std::string> forms = loss.signature.forms;
  forms.emplace_back();
  std::vector<Arithmetic> all;
  for (const std::string& form : forms) all.push_back(plain_arithmetic(Dtype::f32, form));
  if (storage == Dtype::f32) {
    all.push_back(with_subnormals_flushed(all.front()));
    all.push_back(all.front());
    all.back().ties_open = true;
    all.back().math.exp_slope = 1.0;
    return all;
  }
  all.push_back(plain_arithmetic(storage, forms.front()));
  all.push_back(all.front());  // stages are stored as the fields are
  for (Store& store : all.back().stages) {
    store = {.roundoff = unit_roundoff(storage),
             .eta = min_subnormal(storage),
             .largest = max_finite(storage)};
  }
  return all;
}

/// How much of the slack is used, at most; infinite where the filter is wrong.
double used(const Approximate& x, const Tracked& exact) {
  const auto share = [](double off, double allowed) {
    return off == 0.0 ? 0.0 : off / (kFilterSlack * allowed);
  };
  const auto distance = [](double a, double b) { return std::fabs(a - b); };
  return std::max({share(static_cast<double>(std::fabs(x.v - exact.v)), exact.err),
                   share(distance(x.err, exact.err), exact.err),
                   share(distance(x.half, exact.half), exact.err),
                   share(distance(x.peak, exact.peak), exact.peak + exact.err),
                   x.is_exact_zero() == exact.is_exact_zero() ? 0.0 : HUGE_VAL});
}

struct Tally {
  int asked = 0, decided = 0;
  double used = 0.0;
};

void compare(Tally& tally, const Problem& problem, const Approximation& found, const Kept& kept) {
  for (std::size_t o = 0; o < kept.values.size(); ++o) {
    ASSERT_EQ(found[o].size(), kept.values[o].size());
    for (std::size_t i = 0; i < kept.values[o].size(); ++i) {
      const double share = used(found[o][i], kept.values[o][i]);
      tally.used = std::max(tally.used, share);
      ASSERT_LT(share, 0.1) << problem.outputs[o].name << " " << i << ": " << found[o][i].v
                            << " +- " << found[o][i].err << ", exactly "
                            << static_cast<double>(kept.values[o][i].v) << " +- "
                            << kept.values[o][i].err;
    }
  }
}

/// In every instruction set that this machine has.
void add(Tally& tally, const Loss& loss, const Case& c, const Arithmetic& arithmetic) {
  const Problem problem(loss.signature, c);
  Kept kept(problem);
  evaluate(loss, problem, arithmetic, kept);
  for (const Approximator approximate : approximators_of(loss)) {
    ++tally.asked;
    const auto found = approximate(problem, arithmetic);
    if (!found) continue;
    ++tally.decided;
    compare(tally, problem, *found, kept);
  }
}

TEST(Filter, HasValueAndBoundOfEveryEntryWithinItsSlack) {
  for (const Loss& loss : catalog()) {
    if (approximators_of(loss).empty()) continue;
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
      Tally tally;
      for (const std::int64_t longest : {3, 20}) {
        SmallCases cases(loss.signature, 23, longest);
        for (int i = 0; i < 250; ++i) {
          const Case c = cases.draw(dtype);
          if (expected_refusal(loss, c)) continue;
          for (const Arithmetic& arithmetic : arithmetics(loss, dtype)) {
            ASSERT_TRUE(is_coarse(arithmetic));
            SCOPED_TRACE(loss.signature.id + ", " + std::string(name(dtype)) + ", case " +
                         std::to_string(i) + " of " + std::to_string(longest) + ", form " +
                         arithmetic.form);
            add(tally, loss, c, arithmetic);
            if (HasFatalFailure()) return;
          }
        }
      }
      EXPECT_GT(tally.decided, tally.asked / 4) << loss.signature.id;
      RecordProperty(loss.signature.id + "." + std::string(name(dtype)),
                     std::to_string(tally.decided) + " of " + std::to_string(tally.asked) +
                         ", slack used " + std::to_string(tally.used));
    }
  }
}

TEST(Filter, IsNotAskedOfArithmeticThatIsAsFineAsItsOwn) {
  EXPECT_FALSE(is_coarse(plain_arithmetic(Dtype::f64, "")));
  EXPECT_FALSE(is_coarse(real_arithmetic()));
  Arithmetic mixed = plain_arithmetic(Dtype::f32, "");
  EXPECT_TRUE(is_coarse(mixed));
  mixed.sum.roundoff = unit_roundoff(Dtype::f64);  // sums in double
  EXPECT_FALSE(is_coarse(mixed));
}

TEST(Filter, IsThatOfTheFormulaWhateverItsName) {
  Loss loss = *find_loss("grpo");
  EXPECT_FALSE(approximators_of(loss).empty());
  loss.evaluate = [](const Inputs<Tracked>&, const Outputs<Tracked>&) {};
  EXPECT_TRUE(approximators_of(loss).empty()) << "it has another formula";
  loss = *find_loss("grpo");
  loss.advice.emplace();
  EXPECT_TRUE(approximators_of(loss).empty()) << "its values are by somebody's word";
  EXPECT_TRUE(approximators_of(*find_loss("jsd")).empty()) << "its rows are no positions";
}

/// The largest relative error of a function of ExpParts, in roundoffs of double.
double worst_error(double low, double high, const std::function<double(const ExpParts&)>& f,
                   const std::function<Real(Real)>& exact) {
  double worst = 0.0;
  for (int i = 0; i <= 100'000; ++i) {
    const double x = low + (high - low) * i / 100'000;
    const Real right = exact(x);
    if (right == 0.0L) continue;
    const Real error = std::fabs((f(exp_parts(all_lanes(x))) - right) / right);
    worst = std::max(worst, static_cast<double>(error) / unit_roundoff(Dtype::f64));
  }
  return worst;
}

TEST(Filter, ComputesExponentialsWithinTheRoundoffsThatItDeclares) {
  const auto exp = [](const ExpParts& e) { return e.power[0] + e.power[0] * e.rest[0]; };
  const auto expm1 = [](const ExpParts& e) { return (e.power[0] - 1.0) + e.power[0] * e.rest[0]; };
  for (const double range : {1e-300, 1e-8, 0.1, 0.3466, 0.35, 1.0, 1.1, 20.0, 600.0}) {
    EXPECT_LT(worst_error(-range, range, exp, [](Real x) { return std::exp(x); }), 8.0) << range;
    EXPECT_LT(worst_error(-range, range, expm1, [](Real x) { return std::expm1(x); }), 8.0)
        << range;
  }
}

}  // namespace
}  // namespace lossgate::reference
