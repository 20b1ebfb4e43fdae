// SPDX-License-Identifier: Apache-2.0
#include "ci/evidence/null_answer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace lossgate::ci::evidence {
namespace {

const Sound& grpo() {
  static const std::vector<Sound> all = sound_subjects({});
  for (const Sound& sound : all) {
    if (sound.loss->signature.id == "grpo" && sound.dtype == Dtype::f32) return sound;
  }
  throw std::runtime_error("no sound grpo");
}

bool any(const LossSignature&) { return true; }

TEST(NullAnswer, KeepsTheShapesOfTheRightOne) {
  const Sound& sound = grpo();
  const LossSignature& signature = sound.loss->signature;
  for (const NullAnswer& answer : all_null_answers()) {
    const NullSubject subject(sound, answer);
    for (std::int64_t i = 0; i < 10; ++i) {
      const Case c = drawn(*sound.loss, sound.dtype, fuzz::Profile::hostile, 1, i);
      const LossResult right = sound.implementation->evaluate(signature, c);
      const LossResult given = subject.implementation().evaluate(signature, c);
      ASSERT_EQ(given.outputs.size(), right.outputs.size()) << answer.name;
      for (std::size_t o = 0; o < right.outputs.size(); ++o) {
        EXPECT_EQ(given.outputs[o].tensor.extents, right.outputs[o].tensor.extents) << answer.name;
        EXPECT_EQ(given.outputs[o].tensor.dtype, right.outputs[o].tensor.dtype) << answer.name;
      }
    }
  }
}

TEST(NullAnswer, IsNotAcceptedForGrpo) {
  for (const NullAnswer& answer : all_null_answers()) {
    const auto counted = count_null_answer(grpo(), answer, {});
    EXPECT_FALSE(counted["accepted"].get<bool>()) << answer.name;
    EXPECT_GT(counted["violated"].get<int>(), 0) << answer.name;
  }
}

TEST(NullAnswer, CountsAsAcceptedWhereNothingIsRed) {
  // The neighbour of each number is within any bound, but for zeros that nothing can move.
  const NullAnswer neighbour = {"neighbours",
                                [](const Case&, const Answered&, LossResult& right) {
                                  for (Output& output : right.outputs) {
                                    for (std::int64_t i = 0; i < output.tensor.size(); ++i) {
                                      const auto value = static_cast<float>(output.tensor.at(i));
                                      if (value == 0.0F || !std::isnormal(value)) continue;
                                      output.tensor.set(i, std::nextafter(value, 0.0F));
                                    }
                                  }
                                },
                                any};
  const auto counted = count_null_answer(grpo(), neighbour, {});
  EXPECT_TRUE(counted["accepted"].get<bool>()) << counted.dump(1);
  EXPECT_LT(counted["right"].get<int>(), counted["cases"].get<int>());
}

TEST(NullAnswer, ThatIsRightInEveryCaseIsNoNullAnswer) {
  const NullAnswer right = {"the right one", [](const Case&, const Answered&, LossResult&) {}, any};
  const auto counted = count_null_answer(grpo(), right, {});
  EXPECT_FALSE(counted["accepted"].get<bool>());
  EXPECT_EQ(counted["right"].get<int>() + counted["refused"].get<int>(),
            counted["cases"].get<int>());
}

}  // namespace
}  // namespace lossgate::ci::evidence
