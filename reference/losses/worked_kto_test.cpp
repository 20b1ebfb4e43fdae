// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "reference/losses/given_worked.h"

namespace lossgate::reference {
namespace {

constexpr double kYes = 1.0, kNo = 0.0;

/// One answer whose log-ratio is this, in the policy's log-prob.
Worked answer_of(double log_ratio, double desirable) {
  Worked worked("kto", {{Axis::sequences, 1}});
  return worked.with("beta", 1.0).field("log_prob", {log_ratio}).field("desirable", {desirable});
}

TEST(WorkedKto, BeginsAtOneHalf) {
  // r = kl = 0: 1 - sigmoid(0), whatever beta; the derivative is -+ beta / 4.
  for (const double desirable : {kYes, kNo}) {
    answer_of(0.0, desirable)
        .with("beta", 0.5)
        .gives("loss", {0.5})
        .gives("per_sequence", {0.5})
        .gives("gradient.log_prob", {desirable == kYes ? -0.125 : 0.125});
  }
}

TEST(WorkedKto, WantsADesirableAnswerLikelierAndAnotherLessLikely) {
  // arXiv:2402.01306 eq. 7. r = ln 3: sigmoid = 3/4, and the derivative 3/4 1/4.
  answer_of(kLn3, kYes).gives("loss", {0.25}).gives("gradient.log_prob", {-0.1875});
  answer_of(kLn3, kNo).gives("loss", {0.75}).gives("gradient.log_prob", {0.1875});
  answer_of(-kLn3, kYes).gives("loss", {0.75}).gives("gradient.log_prob", {-0.1875});
  answer_of(-kLn3, kNo).gives("loss", {0.25}).gives("gradient.log_prob", {0.1875});
}

TEST(WorkedKto, ComparesALogRatioWithTheDivergence) {
  // r = 0, kl = ln 3: what is wanted falls short of it, what is not is below it.
  answer_of(0.0, kYes).with("kl", kLn3).gives("loss", {0.75}).gives("gradient.log_prob", {-0.1875});
  answer_of(0.0, kNo).with("kl", kLn3).gives("loss", {0.25}).gives("gradient.log_prob", {0.1875});
  answer_of(kLn3, kNo).with("kl", kLn3).gives("loss", {0.5}).gives("gradient.log_prob", {0.25});
}

TEST(WorkedKto, TakesTheReferenceOff) {
  answer_of(-3.0, kYes).field("ref_log_prob", {-3.0}).gives("loss", {0.5});
  answer_of(0.0, kYes).field("ref_log_prob", {kLn3}).gives("loss", {0.75});
  // 2 (ln 3 / 2): twice the slope of ln 3.
  answer_of(0.5 * kLn3, kYes)
      .with("beta", 2.0)
      .gives("loss", {0.25})
      .gives("gradient.log_prob", {-0.375});
}

TEST(WorkedKto, WeighsEitherKindOfAnswers) {
  Worked both("kto", {{Axis::sequences, 2}});
  both.with("beta", 1.0)
      .with("desirable_weight", 2.0)
      .with("undesirable_weight", 0.5)
      .field("log_prob", {kLn3, kLn3})
      .field("desirable", {kYes, kNo})
      .gives("per_sequence", {0.5, 0.375})
      .gives("loss", {0.875})
      .gives("gradient.log_prob", {-0.375, 0.09375});
}

TEST(WorkedKto, IsAMeanOfAnswersOfWhateverKind) {
  Worked three("kto", {{Axis::sequences, 3}});
  three.with("beta", 1.0)
      .field("log_prob", {kLn3, kLn3, 0.0})
      .field("desirable", {kYes, kYes, kYes})
      .reduced(Reduction::sequence_mean)
      .gives("loss", {1.0 / 3.0})
      .gives("gradient.log_prob", {-0.0625, -0.0625, -0.25 / 3.0});
}

TEST(WorkedKto, HasSmallTermsToTheirOwnDigits) {
  answer_of(40.0, kYes)
      .gives("loss", {std::exp(-40.0) / (1.0 + std::exp(-40.0))})
      .gives("gradient.log_prob", {-std::exp(-40.0) / std::pow(1.0 + std::exp(-40.0), 2)});
  answer_of(-40.0, kYes)
      .gives("loss", {1.0})
      .gives("gradient.log_prob", {-std::exp(-40.0) / std::pow(1.0 + std::exp(-40.0), 2)});
}

TEST(WorkedKto, OfAnAnswerThatIsRuledOutIsAllOrNothing) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double desirable : {kYes, kNo}) {
    answer_of(-infinity, desirable)
        .with("desirable_weight", 3.0)
        .gives("loss", {desirable == kYes ? 3.0 : 0.0})
        .gives("gradient.log_prob", {0.0});
    answer_of(-1.0, desirable)
        .field("ref_log_prob", {-infinity})
        .gives("loss", {desirable == kYes ? 0.0 : 1.0})
        .gives("gradient.log_prob", {0.0});
  }
}

}  // namespace
}  // namespace lossgate::reference
