// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "fuzz/certified/certified.h"
#include "fuzz/draw_case.h"
#include "reference/reference.h"

/// The reference held against MPFR and its bounds against implementations that keep the declared
/// arithmetic, on hostile cases of every loss of the catalog.
namespace lossgate::fuzz {
namespace {

using reference::kThreshold;
using reference::Precise;
using reference::Problem;
using reference::Real;
using reference::Tracked;

/// `ci/evidence.sh bounds` asks a million values of each. Under a sanitizer every case costs many
/// times as much, and shows the same.
constexpr int kCases = __has_feature(address_sanitizer) ? 100 : 500;
constexpr Dtype kFormats[] = {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16};

/// The largest error ratios of one loss in one format.
struct Worst {
  double textbook = 0.0, adversary = 0.0;
  double halved_textbook = 0.0, halved_adversary = 0.0;  ///< with every err halved
  double reference = 0.0;                                ///< share of the allowed error
  double real = 0.0;                                     ///< ratio of the reference to its own
  std::map<std::string, double> by_output;               ///< textbook's
  std::int64_t entries = 0, skipped = 0, cases = 0;
};

/// Checks one case and takes part in the statistics.
class Certificate {
 public:
  Certificate(const CertifiedLoss& loss, const Problem& problem, const Arithmetic& arithmetic,
              int index, Worst& worst)
      : loss_(loss), problem_(problem), arithmetic_(arithmetic), index_(index), worst_(worst) {}

  testing::AssertionResult check() {
    const auto exact = evaluated(loss_.precise, problem_, arithmetic_.form);
    if (auto result = check_real(exact); !result) return result;
    auto result = testing::AssertionSuccess();
    ++worst_.cases;
    const auto [beyond, open] = for_each_certified(loss_, problem_, arithmetic_, exact, index_,
                                                   [&](const CertifiedEntry& entry) {
                                                     if (result) result = judge(entry);
                                                   });
    worst_.skipped += beyond + open;
    return result;
  }

 private:
  const OutputInfo& output() const { return problem_.outputs[at_.first]; }

  testing::AssertionResult failure() const {
    return testing::AssertionFailure() << output().name << "[" << at_.second << "] ";
  }

  /// The reference is as close to the truth as Real's own arithmetic says.
  testing::AssertionResult check_real(const Collected<Precise>& exact) {
    Arithmetic real = reference::real_arithmetic();
    real.form = arithmetic_.form;
    real.eta = min_subnormal(Dtype::f64);  // bounds are doubles: theirs, not Real's, underflow
    const reference::ArithmeticScope scope(real);
    const auto tracked = evaluated(loss_.loss.evaluate, problem_, real.form);
    for (std::size_t o = 0; o < problem_.outputs.size(); ++o) {
      for (std::size_t i = 0; i < tracked[o].size(); ++i) {
        at_ = {o, i};
        const Tracked& x = tracked[o][i];
        const auto magnitude = static_cast<double>(std::fabs(x.v));
        // Bounds are doubles: those of smaller values underflow.
        if (magnitude < min_normal(Dtype::f64) / reference::kRealRoundoff) continue;
        if (!std::isfinite(magnitude) || !std::isfinite(x.err)) continue;
        // At a kink of Real's own, x is a midpoint and its half-width has no more than 53 bits.
        if (x.half > 0.0) continue;
        const Real distance = reference::distance(Precise(x.v), exact[o][i]);
        const double allowed = x.err + reference::kRealRoundoff * magnitude;
        worst_.real = std::max(worst_.real, static_cast<double>(distance / allowed));
        if (distance > kThreshold * allowed) {
          return failure() << "Real " << x.v << ", MPFR " << exact[o][i].number() << ", allowed "
                           << allowed;
        }
      }
    }
    return testing::AssertionSuccess();
  }

  testing::AssertionResult judge(const CertifiedEntry& entry) {
    at_ = {entry.output, static_cast<std::size_t>(entry.index)};
    ++worst_.entries;
    const Tracked& x = entry.expected;
    const double allowed = entry.allowed();
    if (!entry.reference_is_certain()) {
      return failure() << "the reference " << x.v << " is uncertain: MPFR " << entry.exact.number()
                       << ", allowed " << allowed;
    }
    if (allowed > 0.0) worst_.reference = std::max(worst_.reference, entry.own / allowed);
    const double halved = x.err / 2 + entry.stored;
    for (const bool is_book : {true, false}) {
      const Real actual = is_book ? entry.textbook : entry.adversary;
      const double ratio = entry.ratio(actual);
      double& worst = is_book ? worst_.textbook : worst_.adversary;
      double& worst_halved = is_book ? worst_.halved_textbook : worst_.halved_adversary;
      worst = std::max(worst, ratio);
      worst_halved = std::max(worst_halved, entry.ratio(actual, halved));
      if (is_book && x.err > 0.0) {
        double& tight = worst_.by_output[output().name];
        tight = std::max(tight, ratio);
      }
      if (ratio > kThreshold) {
        return failure() << (is_book ? "textbook " : "adversary ") << actual << ", MPFR "
                         << entry.exact.number() << ", reference " << x.v << ", ratio " << ratio
                         << ", err " << x.err << ", half " << x.half << ", peak " << x.peak;
      }
    }
    return testing::AssertionSuccess();
  }

  const CertifiedLoss& loss_;
  const Problem& problem_;
  const Arithmetic& arithmetic_;
  int index_;
  Worst& worst_;
  std::pair<std::size_t, std::size_t> at_;
};

Worst certify(const CertifiedLoss& certified, Dtype dtype, int cases) {
  const reference::Loss& loss = certified.loss;
  Worst worst;
  int failures = 0;
  for (int i = 0; i < cases && failures < 3; ++i) {
    Choices choices(case_seed(1, loss.signature.id, dtype, static_cast<std::uint64_t>(i)));
    const Profile profile = i % 4 == 0 ? Profile::benign : Profile::hostile;
    const Case c = draw_case(loss.signature, dtype, profile, choices);
    if (reference::expected_refusal(loss, c)) continue;
    const Arithmetic arithmetic = arithmetic_variant(loss.signature, dtype, i);
    const Problem problem(loss.signature, c);
    const auto result = Certificate(certified, problem, arithmetic, i, worst).check();
    EXPECT_TRUE(result) << loss.signature.id << " " << name(dtype) << ", case " << i << ", "
                        << name(profile) << ", form " << arithmetic.form;
    failures += !result;
  }
  return worst;
}

void print(const LossSignature& signature, Dtype dtype, const Worst& worst) {
  std::printf(
      "%-12s %-4s cases %lld entries %lld (+%lld beyond range) | textbook %.3f adversary "
      "%.3f | err halved %.3f %.3f | reference %.2g of allowed, %.3f of its own\n",
      signature.id.c_str(), std::string(name(dtype)).c_str(), static_cast<long long>(worst.cases),
      static_cast<long long>(worst.entries), static_cast<long long>(worst.skipped), worst.textbook,
      worst.adversary, worst.halved_textbook, worst.halved_adversary, worst.reference, worst.real);
  for (const auto& [output, ratio] : worst.by_output) {
    std::printf("    %-24s tightest %.3f\n", output.c_str(), ratio);
  }
}

std::vector<std::string> loss_ids() {
  std::vector<std::string> ids;
  for (const CertifiedLoss& each : certified_losses()) ids.push_back(each.loss.signature.id);
  return ids;
}

const CertifiedLoss& certified(std::string_view id) {
  return *std::ranges::find_if(
      certified_losses(), [&](const CertifiedLoss& each) { return each.loss.signature.id == id; });
}

class Certification : public testing::TestWithParam<std::tuple<std::string, Dtype>> {};

TEST_P(Certification, Holds) {
  const auto& [id, dtype] = GetParam();
  const CertifiedLoss& loss = certified(id);
  const Worst worst = certify(loss, dtype, kCases);
  print(loss.loss.signature, dtype, worst);
  if (kCases < 500) return;  // too few to come near a bound
  for (const auto& [output, ratio] : worst.by_output) {
    EXPECT_GE(ratio, 0.03) << output << ": the bound is loose";
  }
}

TEST(Bounds, AreNotTwiceAsWideAsNeeded) {
  // An implementation that uses up what it declared is beyond T times half its bound.
  double worst = 0.0;
  for (const CertifiedLoss& loss : certified_losses()) {
    worst = std::max(worst, certify(loss, Dtype::bf16, kCases / 5).halved_adversary);
  }
  EXPECT_GT(worst, kThreshold);
}

/// The largest error ratios of a textbook divergence whose bound takes the smallest number that
/// survives into account, and of one whose bound does not.
struct WithAndWithoutEta {
  double with = 0.0, without = 0.0;
};

WithAndWithoutEta worst_divergence(Dtype dtype) {
  const CertifiedLoss& jsd = certified("jsd");
  const reference::Loss& loss = jsd.loss;
  WithAndWithoutEta worst;
  for (int i = 0; i < 150; ++i) {
    Choices choices(case_seed(1, loss.signature.id, dtype, static_cast<std::uint64_t>(i)));
    const Case c = draw_case(loss.signature, dtype, Profile::hostile, choices);
    if (reference::expected_refusal(loss, c)) continue;
    const Problem problem(loss.signature, c);
    Arithmetic arithmetic = plain_arithmetic(dtype, loss.signature.forms.front());
    const reference::ArithmeticScope scope(arithmetic);
    const auto exact = evaluated(jsd.precise, problem, arithmetic.form);
    const auto textbook = evaluated(jsd.textbook, problem, arithmetic.form);
    const auto take_part = [&](double eta, double& ratio) {
      arithmetic.eta = eta;
      const auto tracked = evaluated(loss.evaluate, problem, arithmetic.form);
      for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
        for (std::size_t at = 0; at < tracked[o].size(); ++at) {
          const Tracked& x = tracked[o][at];
          if (!properties::must_be_finite(arithmetic, problem.outputs[o], x)) continue;
          const double allowed = properties::allowed_error(problem.outputs[o], x);
          const auto error = static_cast<double>(
              reference::distance(Precise(textbook[o][at].v), exact[o][at]) - x.half);
          if (error > 0.0) ratio = std::max(ratio, error / allowed);
        }
      }
    };
    take_part(min_subnormal(dtype), worst.with);
    take_part(0.0, worst.without);
  }
  return worst;
}

TEST(Bounds, NeedTheSmallestNumberThatSurvives) {
  for (Dtype dtype : {Dtype::f32, Dtype::f64}) {
    const auto [with, without] = worst_divergence(dtype);
    std::printf("jsd %s: worst ratio %.2f, without eta %.3g\n", std::string(name(dtype)).c_str(),
                with, without);
    EXPECT_LE(with, kThreshold);
    EXPECT_GT(without, 3.0 * kThreshold);
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, Certification,
                         testing::Combine(testing::ValuesIn(loss_ids()),
                                          testing::ValuesIn(kFormats)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  std::string(name(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace lossgate::fuzz
