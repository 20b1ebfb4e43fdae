// SPDX-License-Identifier: Apache-2.0
#include "fuzz/census.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fuzz/edges.h"
#include "fuzz/fake_signatures.h"
#include "reference/reference.h"

namespace lossgate::fuzz {
namespace {

/// Every wanted trait is shown by at least four cases.
void expect_all(const std::map<std::string, int>& seen, const std::vector<std::string>& wanted) {
  for (const std::string& trait : wanted) {
    EXPECT_GE(seen.contains(trait) ? seen.at(trait) : 0, 4) << trait;
  }
}

constexpr double kEdges[] = {20.0, 0.1823215567939546, -0.2231435513142097, 10.0, 88.0, 1e4};

void observe_log_ratios(const LossSignature& signature, const Case& c, Traits& traits) {
  const Tensor& log_prob = c.batch.at("log_prob");
  const Tensor& old_log_prob = c.batch.at("old_log_prob");
  traits.add(old_log_prob == log_prob, "on-policy");
  for_each_valid(signature, c, signature.fields[0], [&](std::int64_t i) {
    const double now = log_prob.at(i), difference = now - old_log_prob.at(i);
    traits.add(std::isinf(now), "-inf where legal");
    traits.add(now == 0.0 && std::signbit(now), "log-prob -0");
    traits.add(std::fabs(difference) > 88.8 && std::isfinite(difference), "overflowing ratio");
    traits.add(difference == step_ulps(log_prob.dtype, now, 1) - now, "one ulp apart");
    traits.add(difference == round_to(log_prob.dtype, kEdges[1]) ||
                   difference == round_to(log_prob.dtype, kEdges[2]),
               "clip edge");
    for (double edge : kEdges) {
      for (int step : {-1, 0, 1}) {
        traits.add(difference == step_ulps(log_prob.dtype, edge, step),
                   "edge " + std::to_string(edge) + " " + std::to_string(step));
      }
    }
  });
}

void observe_advantages(const LossSignature& signature, const Case& c, Traits& traits) {
  const Tensor& advantage = c.batch.at("advantage");
  for_each_valid(signature, c, signature.fields[3], [&](std::int64_t i) {
    const double a = advantage.at(i);
    traits.add(a == 0.0 && !std::signbit(a), "advantage 0");
    traits.add(a == 0.0 && std::signbit(a), "advantage -0");
    traits.add(std::fabs(a) == 1.0, "advantage 1");
    traits.add(a != 0.0 && std::fabs(a) < min_normal(advantage.dtype), "advantage subnormal");
    traits.add(std::fabs(a) > 100.0, "advantage large");
  });
}

void observe_sentinels(const LossSignature& signature, const Case& c, Traits& traits) {
  const Tensor& log_prob = c.batch.at("log_prob");
  const std::vector<bool> valid = valid_positions(signature, c);
  traits.add(std::ranges::count(valid, true) == 0, "nothing valid");
  traits.add(std::ranges::count(valid, true) == 1 && valid.size() > 1, "one valid token");
  const std::pair<double, const char*> kLeft[] = {{0.0, "0"},
                                                  {1.0, "1"},
                                                  {-INFINITY, "-inf"},
                                                  {INFINITY, "inf"},
                                                  {-max_finite(log_prob.dtype), "lowest"},
                                                  {max_finite(log_prob.dtype), "highest"},
                                                  {round_to(log_prob.dtype, -1e9), "-1e9"},
                                                  {round_to(log_prob.dtype, 1e4), "1e4"},
                                                  {-100.0, "-100"}};
  for (std::int64_t i = 0; i < log_prob.size(); ++i) {
    if (valid[static_cast<std::size_t>(i)]) continue;
    const double left = log_prob.at(i);
    const std::uint64_t bits = load_bits(log_prob.dtype, log_prob.element(i));
    for (const auto& [value, trait] : kLeft)
      traits.add(left == value, "masked " + std::string(trait));
    traits.add(std::isnan(left), "masked NaN");
    traits.add(std::isnan(left) && bits % 64 != 0, "masked NaN with a payload");
    traits.add(std::isnan(left) && std::signbit(left), "masked NaN of negative sign");
  }
}

/// Two sequences that have all in common, a token that counts among it.
bool has_equal_sequences(const LossSignature& signature, const Case& c) {
  const std::int64_t sequences = c.shape[Axis::sequences], tokens = c.shape[Axis::tokens];
  const std::vector<bool> valid = valid_positions(signature, c);
  const auto same = [&](std::int64_t a, std::int64_t b) {
    return std::ranges::all_of(c.batch.fields, [&](const auto& field) {
      const auto width = static_cast<std::size_t>(tokens * size_of(field.second.dtype));
      return std::memcmp(field.second.element(a * tokens), field.second.element(b * tokens),
                         width) == 0;
    });
  };
  for (std::int64_t row = 0; row < sequences; ++row) {
    const auto begin = valid.begin() + row * tokens;
    if (std::find(begin, begin + tokens, true) == begin + tokens) continue;
    for (std::int64_t other = 0; other < row; ++other) {
      if (same(row, other)) return true;
    }
  }
  return false;
}

void observe_policy(const Case& c, Traits& traits) {
  const LossSignature signature = fake_policy_loss();
  observe_log_ratios(signature, c, traits);
  observe_advantages(signature, c, traits);
  observe_sentinels(signature, c, traits);
  traits.add(c.shape[Axis::sequences] == 1 && c.shape[Axis::tokens] == 1, "one position in all");
  traits.add(has_equal_sequences(signature, c), "a sequence twice");
  traits.add(!c.split.whole(), "split");
  traits.add(c.layout != Layout::contiguous, "layout");
  traits.add(c.upstream != 1.0, "upstream");
  traits.add(c.spec.options != standard_spec(signature).options, "options");
}

TEST(Census, HostilePolicyCasesSitOnEveryEdge) {
  std::vector<std::string> wanted = {"on-policy",
                                     "one ulp apart",
                                     "-inf where legal",
                                     "log-prob -0",
                                     "nothing valid",
                                     "one valid token",
                                     "one position in all",
                                     "overflowing ratio",
                                     "advantage 0",
                                     "advantage -0",
                                     "advantage 1",
                                     "advantage subnormal",
                                     "advantage large",
                                     "masked 0",
                                     "masked 1",
                                     "masked -inf",
                                     "masked inf",
                                     "masked lowest",
                                     "masked highest",
                                     "masked -1e9",
                                     "masked 1e4",
                                     "masked -100",
                                     "masked NaN",
                                     "masked NaN with a payload",
                                     "masked NaN of negative sign",
                                     "a sequence twice",
                                     "split",
                                     "layout",
                                     "upstream",
                                     "options"};
  for (double edge : kEdges) {
    for (int step : {-1, 0, 1}) {
      wanted.push_back("edge " + std::to_string(edge) + " " + std::to_string(step));
    }
  }
  for (Dtype dtype : {Dtype::f32, Dtype::f64}) {
    const auto seen = census(fake_policy_loss(), dtype, Profile::hostile, 4000, observe_policy);
    expect_all(seen, wanted);
    // Differences of two arbitrary numbers would be on the edge half as often.
    EXPECT_GE(seen.at("clip edge"), 80);
    EXPECT_GE(seen.at("one position in all"), 80);
  }
}

TEST(Census, NineOfTenHostileCasesSitOnSomeEdge) {
  const auto seen = census(fake_policy_loss(), Dtype::f32, Profile::hostile, 2000,
                           [](const Case& c, Traits& traits) {
                             Traits all;
                             observe_policy(c, all);
                             for (const char* ordinary : {"masked 0", "split", "layout"}) {
                               all.names.erase(ordinary);
                             }
                             traits.add(!all.names.empty(), "edge");
                           });
  EXPECT_GE(seen.at("edge"), 1800);
}

TEST(Census, BenignPolicyCasesAreOrdinary) {
  const auto seen = census(fake_policy_loss(), Dtype::f32, Profile::benign, 2000, observe_policy);
  for (const char* trait : {"-inf where legal", "overflowing ratio", "nothing valid", "masked NaN",
                            "masked -inf", "masked lowest", "advantage subnormal"}) {
    EXPECT_FALSE(seen.contains(trait)) << trait;
  }
  expect_all(seen, {"on-policy", "masked 0", "split", "layout", "upstream", "options"});
}

void observe_vocabulary(const Case& c, Traits& traits) {
  const Tensor& labels = c.batch.at("labels");
  const Tensor& student = c.batch.at("student");
  const std::int64_t vocab = c.shape[Axis::vocab];
  const std::vector<bool> valid = valid_positions(fake_vocabulary_loss(), c);
  traits.add(c.batch.at("teacher") == student, "teacher = student");
  for (std::int64_t p = 0; p < labels.size(); ++p) {
    traits.add(labels.integer_at(p) == kIgnoreLabel, "ignored");
    if (!valid[static_cast<std::size_t>(p)]) continue;
    const double first = student.at(p * vocab);
    double peak = first, lowest = first;
    for (std::int64_t v = 0; v < vocab; ++v) {
      const double logit = student.at(p * vocab + v);
      peak = std::max(peak, logit);
      lowest = std::min(lowest, logit);
      traits.add(std::isinf(logit), v == 0 ? "-inf first" : "-inf");
      traits.add(std::fabs(logit) > 900.0 && std::fabs(logit) < 2e4, "offset");
      traits.add(logit < -7e4 && logit > -2e6, "beyond the lowest of 16 bits");
      traits.add(logit != 0.0 && std::fabs(logit) < min_normal(student.dtype), "subnormal");
    }
    EXPECT_TRUE(std::isfinite(peak));
    const double label_logit = student.at(p * vocab + labels.integer_at(p));
    traits.add(peak == lowest, "equal");
    traits.add(peak != lowest && peak - lowest < 1e-5, "nearly equal");
    traits.add(peak - lowest > 104.0 && std::isfinite(lowest), "underflowing");
    traits.add(peak == label_logit, "label at peak");
    traits.add(std::isinf(label_logit), "label impossible");
  }
}

TEST(Census, HostileVocabularyCasesHoldEveryKindOfRow) {
  expect_all(census(fake_vocabulary_loss(), Dtype::f32, Profile::hostile, 3000, observe_vocabulary),
             {"ignored", "-inf first", "-inf", "offset", "beyond the lowest of 16 bits",
              "subnormal", "equal", "nearly equal", "underflowing", "label at peak",
              "label impossible", "teacher = student"});
}

void observe_mixed(const Case& c, Traits& traits) {
  const Tensor& labels = c.batch.at("labels");
  for (std::int64_t i = 0; i < labels.size(); ++i) {
    const std::int64_t label = labels.integer_at(i);
    const bool masked = c.batch.at("mask").at(i) == 0.0;
    traits.add(label == c.shape[Axis::vocab], "V");
    traits.add(label == -1, "-1");
    traits.add(label == std::int64_t{1} << 31, "2^31");
    traits.add(label == kIgnoreLabel, masked ? "-100 masked" : "-100 alone");
  }
  const Tensor& value = c.batch.at("value");
  const LossSignature signature = fake_mixed_loss();
  for_each_valid(signature, c, signature.fields[0], [&](std::int64_t i) {
    const double gap = std::fabs(value.at(i) - c.batch.at("target").at(i));
    const double root = std::sqrt(max_finite(value.dtype));
    traits.add(gap == 0.0, "value met");
    traits.add(c.batch.at("target").at(i) == 0.0 && value.at(i) != 0.0, "target alone 0");
    traits.add(gap > root && gap < 2.1 * root, "square overflows");
    traits.add(gap < root && gap > root / 2.1, "square nearly overflows");
  });
  const std::int64_t support = c.shape[Axis::support];
  double mass = 0.0;
  for_each_valid(signature, c, signature.fields[3], [&](std::int64_t i) {
    const double p = c.batch.at("student").at(i);
    mass = std::exp(p) + (i % support == 0 ? 0.0 : mass);
    traits.add(i % support == support - 1 && mass > 1.0, "mass above 1");
    const Tensor& ids = c.batch.at("support_ids");
    traits.add(p < 0.0 && p > -1e-4, "nearly certain");
    traits.add(p < -60.0, "nearly impossible");
    const std::int64_t slot = i % support;
    traits.add(slot > 0 && ids.at(i) == ids.at(i - slot), "repeated token");
    traits.add(slot > 1 && ids.at(i) == ids.at(i - 1) && ids.at(i) != ids.at(i - slot),
               "repeats a later token");
    traits.add(slot > 0 && std::fabs(ids.at(i) - ids.at(i - 1)) > 1.0 &&
                   std::fabs(ids.at(i) - ids.at(i - 1)) < c.shape[Axis::vocab] - 1,
               "tokens apart");
  });
  const Tensor& group = c.batch.at("group");
  traits.add(group.size() > 2 && group.at(group.size() - 1) == 0.0, "one group");
  traits.add(group.size() > 2 && group.at(1) == 1.0 && group.at(2) == 0.0, "scattered group");
  traits.add(group.size() > 1 && group.at(0) > 65536.0, "group beyond 16 bits");
  traits.add(group.size() > 1 && group.at(0) > group.at(group.size() - 1), "groups fall");
  for (std::int64_t s = 1; s < group.size(); ++s) {
    const std::int64_t a = group.integer_at(0), b = group.integer_at(s);
    traits.add(a != b && static_cast<float>(a) == static_cast<float>(b), "groups apart in no f32");
    traits.add(a != b && static_cast<std::int32_t>(a) == static_cast<std::int32_t>(b),
               "groups apart in no 32 bits");
  }
  for_each_valid(signature, c, *signature.find_field("hidden"), [&](std::int64_t i) {
    traits.add(std::fabs(c.batch.at("hidden").at(i)) == 100.0, "hidden offset");
  });
}

TEST(Census, OtherHostileCasesHoldTheirEdgesToo) {
  const auto seen = census(fake_mixed_loss(), Dtype::f32, Profile::hostile, 3000, observe_mixed);
  expect_all(seen, {"V", "-1", "2^31", "-100 masked", "-100 alone", "value met"});
  expect_all(seen, {"square overflows", "square nearly overflows", "target alone 0"});
  expect_all(seen, {"nearly certain", "nearly impossible", "mass above 1"});
  expect_all(seen, {"repeated token", "repeats a later token", "tokens apart"});
  expect_all(seen, {"one group", "scattered group", "group beyond 16 bits", "groups fall"});
  expect_all(seen, {"groups apart in no f32", "groups apart in no 32 bits"});
  expect_all(seen, {"hidden offset"});
}

TEST(Census, HoldsNumbersThatAreAResultAsAnF32HoldsThem) {
  const LossSignature& prompts = *reference::find_signature("prompt_dedup");
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Case c = draw(prompts, Dtype::f32, Profile::hostile, i);
    const Tensor& prompt = c.batch.at("prompt");
    for (std::int64_t s = 0; s < prompt.size(); ++s) {
      ASSERT_EQ(static_cast<double>(static_cast<float>(prompt.at(s))), prompt.at(s));
    }
  }
}

}  // namespace
}  // namespace lossgate::fuzz
