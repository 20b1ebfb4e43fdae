// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Random = std::mt19937_64;

template <class T, std::size_t N>
T one_of(Random& random, const T (&values)[N]) {
  return values[random() % N];
}

double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution(low, high)(random);
}

/// A log-ratio: mild, at an edge of clip, clamp or dtype, or wild.
double log_ratio(Random& random) {
  static constexpr double kEdges[] = {0.0,  -0.0, 20.0, -20.0, 10.0,   88.72,     89.0,  -104.0,
                                      11.1, -9.7, 1e4,  -1e4,  1e-30,  60.0,      709.8, -745.2,
                                      1e-4, -3e4, 0.18, 1e-8,  0.1823, -0.2231436};
  switch (random() % 4) {
    case 0:
      return one_of(random, kEdges);
    case 1:
      return uniform(random, -30.0, 30.0);
    default:
      return uniform(random, -1.0, 1.0);
  }
}

double advantage(Random& random) {
  static constexpr double kEdges[] = {0.0, -0.0, 1.0, -1.0, 1e4, -1e4, 1e-6, -1e-7, 3e4};
  return random() % 3 == 0 ? one_of(random, kEdges) : uniform(random, -3.0, 3.0);
}

void draw_options(Case& c, Random& random) {
  static constexpr Reduction kReductions[] = {Reduction::token_mean, Reduction::sequence_mean,
                                              Reduction::seq_mean_token_sum_norm, Reduction::sum};
  c.spec.reduction = one_of(random, kReductions);
  const auto maybe = [&](const char* option, OptionValue value) {
    if (random() % 3 == 0) c.spec.set(option, std::move(value));
  };
  maybe("clip_low", uniform(random, 0.0, 0.9));
  maybe("clip_high", uniform(random, 0.0, 4.0));
  maybe("dual_clip", uniform(random, 1.5, 20.0));
  maybe("log_ratio_clamp", random() % 2 ? OptionValue(None{}) : uniform(random, 1.0, 80.0));
  maybe("level", std::string("sequence"));
  maybe("kl_penalty", random() % 2 ? 0.0 : uniform(random, 0.0, 1.0));
  maybe("kl_estimator", std::string(random() % 2 ? "k1" : "k2"));
  maybe("kl_input_clamp", random() % 2 ? OptionValue(None{}) : uniform(random, 1.0, 80.0));
  maybe("kl_output_clamp", random() % 2 ? OptionValue(None{}) : uniform(random, 1.0, 1000.0));
  maybe("kl_weighted", 1.0);
  static constexpr double kUpstream[] = {0.0, -1.0, 0.37, 1e4, 1024.0};
  if (random() % 3 == 0) c.upstream = one_of(random, kUpstream);
}

void draw_split(Case& c, Random& random) {
  if (random() % 3 == 0) return;
  c.split.world = static_cast<int>(1 + random() % 3);
  c.split.parts.resize(1 + random() % 4);
  for (std::size_t i = 0; i < c.split.parts.size(); ++i) {
    c.split.parts[i].rank = static_cast<int>(i) % c.split.world;
  }
  for (std::int64_t s = 0; s < c.shape[Axis::sequences]; ++s) {
    c.split.parts[random() % c.split.parts.size()].sequences.push_back(s);
  }
}

}  // namespace

void put(Case& c, std::string_view field, std::int64_t sequence, std::int64_t token, double value) {
  c.batch.at(field).set(sequence * c.shape[Axis::tokens] + token, value);
}

double get(const Case& c, std::string_view field, std::int64_t sequence, std::int64_t token) {
  return c.batch.at(field).at(sequence * c.shape[Axis::tokens] + token);
}

void mask_out(Case& c, std::int64_t sequence, std::int64_t token) {
  put(c, "mask", sequence, token, 0.0);
}

void put_log_ratio(Case& c, std::int64_t sequence, std::int64_t token, double log_ratio) {
  put(c, "log_prob", sequence, token, 0.0);
  put(c, "old_log_prob", sequence, token, -log_ratio);
}

Case grpo_case(std::int64_t sequences, std::int64_t tokens, Dtype dtype) {
  Case c;
  c.spec = standard_spec(grpo().signature);
  c.shape[Axis::sequences] = sequences;
  c.shape[Axis::tokens] = tokens;
  for (const Field& field : grpo().signature.fields) {
    const Dtype own = field.dtypes.empty() ? dtype : field.dtypes.front();
    c.batch.fields.emplace_back(field.name, Tensor::zeros(own, c.shape.of(field.axes)));
  }
  for (std::int64_t s = 0; s < sequences; ++s) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      const double phase = static_cast<double>(3 * s + t);
      put(c, "log_prob", s, t, -1.0 - 0.3 * std::cos(phase));
      put(c, "old_log_prob", s, t, -1.0 - 0.3 * std::cos(phase + 0.3));
      put(c, "ref_log_prob", s, t, -1.0 - 0.3 * std::cos(phase - 0.4));
      put(c, "advantage", s, t, 1.5 * std::sin(2.0 * phase + 0.5));
      put(c, "mask", s, t, 1.0);
    }
  }
  return c;
}

Case random_grpo_case(std::mt19937_64& random) {
  static constexpr Dtype kDtypes[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16};
  Case c = grpo_case(1 + static_cast<std::int64_t>(random() % 4),
                     1 + static_cast<std::int64_t>(random() % 8), one_of(random, kDtypes));
  draw_options(c, random);
  draw_split(c, random);
  const bool on_policy = random() % 8 == 0;
  const auto density = random() % 4;
  static constexpr double kSentinels[] = {0.0, 1.0, -100.0, -1e9, kInfinity, -kInfinity, kNan};
  for (std::int64_t s = 0; s < c.shape[Axis::sequences]; ++s) {
    for (std::int64_t t = 0; t < c.shape[Axis::tokens]; ++t) {
      const bool masked = random() % 4 < density;
      const double log_prob = -uniform(random, 0.0, 12.0);
      put(c, "log_prob", s, t, log_prob);
      put(c, "old_log_prob", s, t, log_prob - (on_policy ? 0.0 : log_ratio(random)));
      put(c, "ref_log_prob", s, t, log_prob + (on_policy ? 0.0 : log_ratio(random)));
      put(c, "advantage", s, t, advantage(random));
      if (!masked) continue;
      mask_out(c, s, t);
      for (const char* field : {"log_prob", "old_log_prob", "ref_log_prob", "advantage"}) {
        if (random() % 2) put(c, field, s, t, one_of(random, kSentinels));
      }
    }
  }
  return c;
}

TEST(RandomGrpoCase, CountsAsLegal) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    EXPECT_FALSE(reference::expected_refusal(grpo(), random_grpo_case(random)));
  }
}

/// No false alarm: what is sound is never violated, whatever the case.
TEST(SoundImplementation, HoldsEveryPropertyOnThousandsOfHostileCases) {
  std::mt19937_64 random(7);
  std::vector<std::int64_t> held(catalog().size());
  for (int i = 0; i < 3000; ++i) {
    const Case c = random_grpo_case(random);
    CaseStudy study(grpo(), c);
    const auto sound = fake_grpo();
    Evaluation evaluation(study, sound);
    for (std::size_t p = 0; p < catalog().size(); ++p) {
      const Property& property = catalog()[p];
      if (property.tier == Tier::hardening) continue;
      const Outcome outcome = property.check(evaluation);
      held[p] += outcome.verdict == Verdict::held;
      ASSERT_FALSE(outcome.violation)
          << property.name << " at " << outcome.violation->place.output << " "
          << outcome.violation->place.index << " of case " << i << " in "
          << name(float_dtype(study.signature(), c)) << ": " << outcome.violation->detail
          << "; actual " << outcome.violation->actual << ", expected "
          << static_cast<double>(outcome.violation->expected) << ", allowed "
          << outcome.violation->allowed;
    }
  }
  for (std::size_t p = 0; p < catalog().size(); ++p) {
    RecordProperty("held_" + catalog()[p].name, std::to_string(held[p]));
  }
}

}  // namespace lossgate::properties
