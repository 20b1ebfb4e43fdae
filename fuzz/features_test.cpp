// SPDX-License-Identifier: Apache-2.0
#include "fuzz/features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "fuzz/census.h"
#include "impl/catalog.h"

namespace lossgate::fuzz {
namespace {

using properties::CaseStudy;
using properties::Evaluation;

const impl::Implementation& grpo(std::string_view name) {
  return *std::ranges::find_if(impl::catalog(/*with_torch=*/false),
                               [&](const auto& i) { return i.loss == "grpo" && i.name == name; });
}

Case benign(std::uint64_t index) {
  return draw(*reference::find_signature("grpo"), Dtype::f32, Profile::benign, index);
}

std::set<Feature> shown(const Case& c, std::string_view implementation) {
  CaseStudy study(*reference::find_loss("grpo"), c);
  Evaluation evaluation(study, grpo(implementation));
  std::vector<const properties::Property*> properties;
  for (const properties::Property& property : properties::catalog())
    properties.push_back(&property);
  const auto outcomes = check_all(evaluation, properties, true);
  const auto features = features_of(evaluation, outcomes);
  const std::set<Feature> set(features.begin(), features.end());
  EXPECT_EQ(set.size(), features.size());
  return set;
}

std::size_t index_of(std::string_view property) {
  const auto& all = properties::catalog();
  return static_cast<std::size_t>(std::ranges::find(all, property, &properties::Property::name) -
                                  all.begin());
}

Feature verdict(std::string_view property, properties::Verdict verdict) {
  return feature(Dtype::f32, Facet::verdict, index_of(property), static_cast<std::size_t>(verdict));
}

/// But for what can be asked of autograd alone, and for how near each comes to its bounds.
std::set<Feature> shown_by_all(const Case& c, std::string_view implementation) {
  std::set<Feature> features = shown(c, implementation);
  for (std::size_t value = 0; value < 64; ++value) {
    features.erase(feature(Dtype::f32, Facet::verdict, index_of("grad_mode_invariance"), value));
    for (std::size_t property = 0; property < properties::catalog().size(); ++property) {
      features.erase(feature(Dtype::f32, Facet::ratio, property, value));
    }
  }
  return features;
}

TEST(Features, TheSameCaseShowsTheSame) {
  EXPECT_EQ(shown_by_all(benign(3), "host"), shown_by_all(benign(3), "eager"));
}

TEST(Features, EveryDtypeFacetAndIndexHasItsOwn) {
  std::set<Feature> all;
  for (Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
    for (Facet facet : {Facet::verdict, Facet::ratio, Facet::headroom, Facet::selection,
                        Facet::masked, Facet::counted, Facet::form}) {
      for (std::size_t index = 0; index < 32; ++index) {
        for (std::size_t value = 0; value < 64; ++value) {
          all.insert(feature(dtype, facet, index, value));
        }
      }
    }
  }
  EXPECT_EQ(all.size(), 4u * 7u * 32u * 64u);
}

TEST(Features, AVerdictIsOne) {
  const Case c = benign(0);
  EXPECT_TRUE(shown(c, "host").contains(verdict("finite_backward", properties::Verdict::held)));
}

TEST(Features, AClassOfNumbersBehindTheMaskIsOneOfItsOwn) {
  const LossSignature& signature = *reference::find_signature("grpo");
  Case c = benign(0);
  for (std::uint64_t i = 1; std::ranges::count(valid_positions(signature, c), false) == 0; ++i) {
    c = benign(i);
  }
  const std::vector<bool> valid = valid_positions(signature, c);
  const auto masked = std::ranges::find(valid, false) - valid.begin();
  const auto with = [&](double value) {
    c.batch.at("log_prob").set(masked, value);
    return shown(c, "host");
  };
  const std::set<Feature> plain = with(-1.0), sentinel = with(-HUGE_VAL), nan = with(std::nan(""));
  EXPECT_NE(plain, sentinel);
  EXPECT_NE(sentinel, nan);
}

TEST(Features, TheWayToTheLargestErrorIsPavedWithThem) {
  // The farther an entry is from what is right, the higher the order of its ratio.
  Case c = benign(1);
  c.upstream = 1.0;
  const std::set<Feature> sound = shown(c, "host");
  std::size_t orders = 0;
  const std::size_t index = index_of("reference_agreement");
  for (std::size_t value = 0; value < 64; ++value) {
    orders += sound.contains(feature(Dtype::f32, Facet::ratio, index, value));
  }
  EXPECT_EQ(orders, 1u);
}

}  // namespace
}  // namespace lossgate::fuzz
