// SPDX-License-Identifier: Apache-2.0
#include "fuzz/draw_case.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "fuzz/edges.h"
#include "fuzz/fake_signatures.h"

namespace lossgate::fuzz {
namespace {

constexpr Dtype kFloats[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16};

std::vector<LossSignature> all_signatures() {
  return {fake_policy_loss(), fake_vocabulary_loss(), fake_mixed_loss(), fake_payload_operation()};
}

Case draw(const LossSignature& signature, Dtype dtype, Profile profile, std::uint64_t index) {
  Choices choices(case_seed(1, signature.id, dtype, index));
  return draw_case(signature, dtype, profile, choices);
}

bool is_same(const Case& a, const Case& b) {
  return a.spec == b.spec && a.shape == b.shape && a.batch == b.batch && a.split == b.split &&
         a.layout == b.layout && a.upstream == b.upstream;
}

/// Calls `check(index, position)` for every entry of the field at a valid position.
template <class Check>
void for_each_valid(const LossSignature& signature, const Case& c, const Field& field,
                    Check check) {
  const std::vector<bool> valid = valid_positions(signature, c);
  const Tensor& tensor = c.batch.at(field.name);
  const bool positional = is_positional(field);
  const std::int64_t row = positional ? tensor.size() / std::ssize(valid) : 1;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (!positional || valid[static_cast<std::size_t>(i / row)]) check(i);
  }
}

/// What is wrong with a number at a valid position, or nothing.
std::string fault_of_number(const Field& field, double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value) && (field.infinity != Infinity::legal || value > 0.0)) return "infinity";
  if (field.quantity == Quantity::log_prob && value > 0.0) return "positive log-prob";
  if (field.role == Role::weight && value < 0.0) return "negative weight";
  return "";
}

std::string fault_of_field(const LossSignature& signature, const Case& c, const Field& field,
                           Dtype dtype) {
  const Tensor& tensor = c.batch.at(field.name);
  if (tensor.extents != c.shape.of(field.axes)) return "extents";
  if (tensor.size() != element_count(tensor.extents)) return "size";
  const auto& allowed = field.dtypes;
  if (allowed.empty() ? tensor.dtype != dtype
                      : std::ranges::find(allowed, tensor.dtype) == allowed.end()) {
    return "dtype";
  }
  std::string fault;
  for_each_valid(signature, c, field, [&](std::int64_t i) {
    if (field.quantity == Quantity::label) {
      const std::int64_t label = tensor.integer_at(i);
      const std::int64_t vocab = c.shape[Axis::vocab];
      if (label < 0 || label >= vocab) fault = "label";
    } else if (field.quantity == Quantity::mask) {
      if (tensor.at(i) != 0.0 && tensor.at(i) != 1.0) fault = "mask";
    } else if (is_float(tensor.dtype)) {
      if (const std::string found = fault_of_number(field, tensor.at(i)); !found.empty())
        fault = found;
    }
  });
  return fault;
}

/// The stored probabilities of a row on the support axis, summed.
std::string fault_of_support(const Case& c, const LossSignature& signature, const Field& field) {
  if (field.quantity != Quantity::log_prob || field.axes.back() != Axis::support) return "";
  const Tensor& tensor = c.batch.at(field.name);
  const std::int64_t row = c.shape[Axis::support];
  std::map<std::int64_t, long double> sums;
  for_each_valid(signature, c, field,
                 [&](std::int64_t i) { sums[i / row] += std::exp((long double)tensor.at(i)); });
  for (const auto& [at, sum] : sums) {
    if (sum > 1.0L) return "probabilities above 1";
  }
  return "";
}

std::string fault_of(const LossSignature& signature, const Case& c, Dtype dtype) {
  if (c.spec.loss != signature.id) return "loss";
  if (std::ranges::find(signature.reductions, c.spec.reduction) == signature.reductions.end()) {
    return "reduction";
  }
  if (c.batch.fields.size() != signature.fields.size()) return "fields";
  for (std::size_t i = 0; i < signature.fields.size(); ++i) {
    const Field& field = signature.fields[i];
    if (c.batch.fields[i].first != field.name) return "order of fields";
    std::string fault = fault_of_field(signature, c, field, dtype);
    if (fault.empty()) fault = fault_of_support(c, signature, field);
    if (!fault.empty()) return field.name + ": " + fault;
  }
  for (std::size_t i = 0; i < signature.options.size(); ++i) {
    const Option& option = signature.options[i];
    const auto& [name, value] = c.spec.options[i];
    if (name != option.name) return "order of options";
    const double* number = std::get_if<double>(&value);
    if (number && (*number < option.low || *number > option.high)) return name + ": range";
    const auto* choice = std::get_if<std::string>(&value);
    if (choice && std::ranges::find(option.choices, *choice) == option.choices.end()) {
      return name + ": choice";
    }
    if (std::holds_alternative<None>(value) && !option.nullable) return name + ": none";
  }
  return std::isfinite(c.upstream) ? "" : "upstream";
}

TEST(DrawCase, SameSeedGivesTheSameCase) {
  for (const LossSignature& signature : all_signatures()) {
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
      EXPECT_TRUE(is_same(c, draw(signature, Dtype::f32, Profile::hostile, i)));
      EXPECT_FALSE(is_same(c, draw(signature, Dtype::f32, Profile::hostile, i + 1)));
    }
  }
}

TEST(DrawCase, SeedsOfCasesDependOnEverythingThatNamesThem) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t root : {0, 1, 2}) {
    for (std::string_view loss : {"", "a", "b"}) {
      for (Dtype dtype : kFloats) {
        for (std::uint64_t i = 0; i < 100; ++i) seeds.insert(case_seed(root, loss, dtype, i));
      }
    }
  }
  EXPECT_EQ(seeds.size(), 3u * 3u * 4u * 100u);
}

TEST(DrawCase, EveryCaseIsOneThatItsSignatureAccepts) {
  for (const LossSignature& signature : all_signatures()) {
    for (Dtype dtype : kFloats) {
      for (Profile profile : kAllProfiles) {
        for (std::uint64_t i = 0; i < 400; ++i) {
          const Case c = draw(signature, dtype, profile, i);
          ASSERT_EQ(fault_of(signature, c, dtype), "")
              << signature.id << " " << name(dtype) << " " << name(profile) << " " << i;
        }
      }
    }
  }
}

RC_GTEST_PROP(DrawCase, AnyBytesGiveACaseThatItsSignatureAccepts, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 3000);
  const auto bytes =
      *rc::gen::container<std::vector<std::uint8_t>>(count, rc::gen::arbitrary<std::uint8_t>());
  const auto signature = *rc::gen::elementOf(all_signatures());
  const Dtype dtype =
      *rc::gen::elementOf(std::vector<Dtype>(std::begin(kFloats), std::end(kFloats)));
  const Profile profile =
      *rc::gen::elementOf(std::vector<Profile>(std::begin(kAllProfiles), std::end(kAllProfiles)));
  Choices choices{std::span<const std::uint8_t>(bytes)};
  RC_ASSERT(fault_of(signature, draw_case(signature, dtype, profile, choices), dtype) == "");
}

TEST(DrawCase, NoBytesGiveAMinimalCase) {
  for (Profile profile : kAllProfiles) {
    Choices choices{std::span<const std::uint8_t>()};
    const LossSignature signature = fake_policy_loss();
    const Case c = draw_case(signature, Dtype::f32, profile, choices);
    EXPECT_EQ(c.spec, standard_spec(signature));
    EXPECT_EQ(c.shape[Axis::sequences], 1);
    EXPECT_EQ(c.shape[Axis::tokens], 1);
    EXPECT_EQ(c.batch.at("mask").at(0), 1.0);
    EXPECT_EQ(c.batch.at("old_log_prob"), c.batch.at("log_prob"));
    EXPECT_TRUE(c.split.whole());
    EXPECT_EQ(c.layout, Layout::contiguous);
    EXPECT_EQ(c.upstream, 1.0);
  }
}

/// How many of `count` cases show each trait that `traits` names.
template <class Traits>
std::map<std::string, int> census(const LossSignature& signature, Dtype dtype, Profile profile,
                                  int count, Traits traits) {
  std::map<std::string, int> seen;
  for (int i = 0; i < count; ++i) {
    std::set<std::string> of_case;
    traits(draw(signature, dtype, profile, static_cast<std::uint64_t>(i)), of_case);
    for (const std::string& trait : of_case) ++seen[trait];
  }
  return seen;
}

void policy_traits(const Case& c, std::set<std::string>& traits) {
  const LossSignature signature = fake_policy_loss();
  const Tensor& log_prob = c.batch.at("log_prob");
  const auto add = [&](bool shown, std::string trait) {
    if (shown) traits.insert(std::move(trait));
  };
  add(c.batch.at("old_log_prob") == log_prob, "on-policy");
  add(std::ranges::count(valid_positions(signature, c), true) == 0, "nothing valid");
  add(std::ranges::count(valid_positions(signature, c), true) == 1, "one valid token");
  for_each_valid(signature, c, signature.fields[0], [&](std::int64_t i) {
    const double difference = log_prob.at(i) - c.batch.at("old_log_prob").at(i);
    add(std::isinf(log_prob.at(i)), "-inf where legal");
    add(std::signbit(log_prob.at(i)) && log_prob.at(i) == 0.0, "log-prob -0");
    add(std::fabs(difference) > 88.8 && std::isfinite(difference), "overflowing ratio");
    for (double edge : {20.0, 0.1823215567939546, -0.2231435513142097, 10.0, 88.0, 1e4}) {
      for (int step : {-1, 0, 1}) {
        const double wanted = step_ulps(log_prob.dtype, edge, step);
        add(difference == wanted, "edge " + std::to_string(edge) + " " + std::to_string(step));
      }
    }
  });
  const Tensor& advantage = c.batch.at("advantage");
  for_each_valid(signature, c, signature.fields[3], [&](std::int64_t i) {
    const double a = advantage.at(i);
    add(a == 0.0 && !std::signbit(a), "advantage 0");
    add(a == 0.0 && std::signbit(a), "advantage -0");
    add(std::fabs(a) == 1.0, "advantage 1");
    add(a != 0.0 && std::fabs(a) < min_normal(advantage.dtype), "advantage subnormal");
    add(std::fabs(a) > 100.0, "advantage large");
  });
  const std::vector<bool> valid = valid_positions(signature, c);
  for (std::int64_t i = 0; i < log_prob.size(); ++i) {
    if (valid[static_cast<std::size_t>(i)]) continue;
    const double left = log_prob.at(i);
    add(left == 0.0, "masked 0");
    add(left == 1.0, "masked 1");
    add(left == -INFINITY, "masked -inf");
    add(left == INFINITY, "masked inf");
    add(std::isnan(left), "masked NaN");
    add(std::isnan(left) && load_bits(log_prob.dtype, log_prob.element(i)) % 64 != 0,
        "masked payload");
    add(left == -max_finite(log_prob.dtype), "masked lowest");
    add(left == max_finite(log_prob.dtype), "masked highest");
    add(left == round_to(log_prob.dtype, -1e9), "masked -1e9");
    add(left == round_to(log_prob.dtype, 1e4), "masked 1e4");
    add(left == -100.0, "masked -100");
  }
}

TEST(DrawCase, HostilePolicyCasesSitOnEveryEdge) {
  const auto seen = census(fake_policy_loss(), Dtype::f32, Profile::hostile, 4000, policy_traits);
  std::vector<std::string> wanted = {
      "on-policy",      "nothing valid",       "one valid token", "-inf where legal",
      "log-prob -0",    "overflowing ratio",   "advantage 0",     "advantage -0",
      "advantage 1",    "advantage subnormal", "advantage large", "masked 0",
      "masked 1",       "masked -inf",         "masked inf",      "masked NaN",
      "masked payload", "masked lowest",       "masked highest",  "masked -1e9",
      "masked 1e4",     "masked -100"};
  for (double edge : {20.0, 0.1823215567939546, -0.2231435513142097, 10.0, 88.0, 1e4}) {
    for (int step : {-1, 0, 1}) {
      wanted.push_back("edge " + std::to_string(edge) + " " + std::to_string(step));
    }
  }
  for (const std::string& trait : wanted) {
    EXPECT_GE(seen.contains(trait) ? seen.at(trait) : 0, 4) << trait;
  }
}

TEST(DrawCase, BenignPolicyCasesAreOrdinary) {
  const auto seen = census(fake_policy_loss(), Dtype::f32, Profile::benign, 2000, policy_traits);
  for (const char* trait : {"-inf where legal", "overflowing ratio", "nothing valid", "masked NaN",
                            "masked -inf", "masked lowest", "advantage subnormal"}) {
    EXPECT_FALSE(seen.contains(trait)) << trait;
  }
  EXPECT_GT(seen.at("on-policy"), 100);
  EXPECT_GT(seen.at("masked 0"), 100);
}

TEST(DrawCase, HostileVocabularyCasesHoldMaskedTokensAndIllegalLabels) {
  const LossSignature signature = fake_vocabulary_loss();
  const auto seen =
      census(signature, Dtype::f32, Profile::hostile, 3000, [&](const Case& c, auto& traits) {
        const Tensor& labels = c.batch.at("labels");
        const Tensor& student = c.batch.at("student");
        const std::int64_t vocab = c.shape[Axis::vocab];
        const std::vector<bool> valid = valid_positions(signature, c);
        for (std::int64_t p = 0; p < labels.size(); ++p) {
          if (!valid[static_cast<std::size_t>(p)]) {
            traits.insert(std::to_string(labels.integer_at(p)));
            continue;
          }
          const double label_logit = student.at(p * vocab + labels.integer_at(p));
          double peak = -INFINITY;
          bool equal = vocab > 2;
          for (std::int64_t v = 0; v < vocab; ++v) {
            const double logit = student.at(p * vocab + v);
            peak = std::max(peak, logit);
            equal = equal && logit == student.at(p * vocab);
            if (std::isinf(logit)) traits.insert(v == 0 ? "-inf first" : "-inf");
            if (std::fabs(logit) > 900.0) traits.insert("offset");
            if (logit != 0.0 && std::fabs(logit) < min_normal(student.dtype))
              traits.insert("subnormal");
          }
          EXPECT_TRUE(std::isfinite(peak));
          if (equal) traits.insert("equal");
          if (peak == label_logit) traits.insert("label at peak");
          if (std::isinf(label_logit)) traits.insert("label impossible");
        }
        if (c.batch.at("teacher") == student) traits.insert("teacher = student");
      });
  for (const char* trait : {"-100", "-inf first", "-inf", "offset", "subnormal", "equal",
                            "label at peak", "label impossible", "teacher = student"}) {
    EXPECT_GE(seen.contains(trait) ? seen.at(trait) : 0, 4) << trait;
  }
}

TEST(DrawCase, LabelsBehindAMaskAreLeftIllegal) {
  const LossSignature signature = fake_mixed_loss();
  const auto seen =
      census(signature, Dtype::f32, Profile::hostile, 2000, [&](const Case& c, auto& traits) {
        const Tensor& labels = c.batch.at("labels");
        for (std::int64_t i = 0; i < labels.size(); ++i) {
          const std::int64_t label = labels.integer_at(i);
          const bool masked = c.batch.at("mask").at(i) == 0.0;
          if (label == c.shape[Axis::vocab]) traits.insert("V");
          if (label == -1) traits.insert("-1");
          if (label == std::int64_t{1} << 31) traits.insert("2^31");
          if (label == kIgnoreLabel) traits.insert(masked ? "-100 masked" : "-100 alone");
        }
      });
  for (const char* trait : {"V", "-1", "2^31", "-100 masked", "-100 alone"}) {
    EXPECT_GE(seen.contains(trait) ? seen.at(trait) : 0, 4) << trait;
  }
}

TEST(DrawCase, SoakCasesAreLargerNowAndThen) {
  const auto tokens = [](Profile profile) {
    std::int64_t most = 0;
    for (std::uint64_t i = 0; i < 500; ++i) {
      most = std::max(most, draw(fake_policy_loss(), Dtype::f32, profile, i).shape[Axis::tokens]);
    }
    return most;
  };
  EXPECT_LE(tokens(Profile::hostile), 33);
  EXPECT_GE(tokens(Profile::soak), 127);
}

}  // namespace
}  // namespace lossgate::fuzz
