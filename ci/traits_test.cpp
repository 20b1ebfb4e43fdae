// SPDX-License-Identifier: Apache-2.0
#include "ci/traits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "reference/reference.h"

namespace lossgate::ci {
namespace {

Case plain_case(const LossSignature& signature) {
  Case c;
  c.spec = standard_spec(signature);
  c.shape[Axis::sequences] = 2;
  c.shape[Axis::tokens] = 2;
  for (const Field& field : signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes[0];
    Tensor tensor = Tensor::zeros(dtype, c.shape.of(field.axes));
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 1.0);
    c.batch.fields.emplace_back(field.name, tensor);
  }
  return c;
}

std::set<std::string> shown_by(const Case& c) {
  std::set<std::string> names;
  for (const Trait& trait : traits_of(*reference::find_signature("grpo"), c)) {
    if (trait.shown) names.insert(trait.name);
  }
  return names;
}

TEST(Traits, OfAPlainCaseAreFew) {
  const Case c = plain_case(*reference::find_signature("grpo"));
  EXPECT_EQ(shown_by(c), (std::set<std::string>{"batch: on-policy"}));
}

TEST(Traits, TellWhatIsMaskedFromWhatCounts) {
  Case c = plain_case(*reference::find_signature("grpo"));
  c.batch.at("mask").set(0, 0.0);
  c.batch.at("log_prob").set(0, NAN);
  c.batch.at("log_prob").set(1, -200.0);
  c.batch.at("log_prob").set(2, -INFINITY);
  c.batch.at("log_prob").set(3, -0.0);
  EXPECT_EQ(shown_by(c),
            (std::set<std::string>{"batch: some masked", "masked: NaN", "valid: -0", "valid: -inf",
                                   "valid: beyond 80, where exp ends"}));
}

TEST(Traits, SeeRowsSplitsAndEmptyBatches) {
  Case c = plain_case(*reference::find_signature("grpo"));
  c.batch.at("mask").set(0, 0.0);
  c.batch.at("mask").set(1, 0.0);
  c.split = {.world = 2, .parts = {{.rank = 0, .sequences = {0, 1}}, {.rank = 1, .sequences = {}}}};
  c.upstream = 0.0;
  const auto shown = shown_by(c);
  for (const char* name : {"batch: a sequence without a valid token", "split: micro-batches",
                           "split: several ranks", "split: an empty micro-batch", "upstream: 0"}) {
    EXPECT_TRUE(shown.contains(name)) << name;
  }
  c.batch.at("mask").set(2, 0.0);
  c.batch.at("mask").set(3, 0.0);
  EXPECT_TRUE(shown_by(c).contains("batch: nothing valid"));
  EXPECT_FALSE(shown_by(c).contains("batch: empty"));
  c = plain_case(*reference::find_signature("grpo"));
  c.shape[Axis::tokens] = 0;
  for (auto& [name, tensor] : c.batch.fields) {
    const Field& field = *reference::find_signature("grpo")->find_field(name);
    tensor = Tensor::zeros(tensor.dtype, c.shape.of(field.axes));
  }
  EXPECT_TRUE(shown_by(c).contains("batch: empty"));
}

TEST(Traits, CallNoLossEmptyThatHasNoTokens) {
  const LossSignature& signature = *reference::find_signature("prompt_dedup");
  for (const Trait& trait : traits_of(signature, plain_case(signature))) {
    EXPECT_FALSE(trait.name == "batch: empty" && trait.shown);
  }
}

}  // namespace
}  // namespace lossgate::ci
