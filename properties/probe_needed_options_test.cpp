// SPDX-License-Identifier: Apache-2.0
// Options with another value of which all is right: what is to blame, and what is not.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "properties/fake_answer.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

TEST(ProbeNeededOptions, CallNoForwardRightWhoseLossIsWrong) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (c.batch.at("advantage").at(0) == 1e3) add_to_loss(result, 100.0);
    if (c.spec.is_none("log_ratio_clamp")) return;
    at_positions(c, true, [&](std::int64_t p) {
      Tensor& gradient = output(result, "gradient.log_prob");
      gradient.set(p, gradient.at(p) + 0.03);
    });
  });
  Case c = ordinary_case("grpo");
  c.spec.set("log_ratio_clamp", 20.0);
  EXPECT_TRUE(speaks(probe_needed_options, fake, c));
  c.batch.at("advantage").set(0, 1e3);
  EXPECT_FALSE(speaks(probe_needed_options, fake, c));
}

TEST(ProbeNeededOptions, FindsTheOneValueWithWhichAllIsRight) {
  struct Needed {
    const char* option;
    OptionValue value;
    const char* text;
  };
  const Needed all[] = {
      {"log_ratio_clamp", None{}, "none"},  // no bound
      {"clip_low", 0.0, "0"},               // left out
      {"clip_high", 1.0, "1"},              // left out as a factor
  };
  for (const auto& [option, needed, text] : all) {
    const auto fake = answering("grpo", nullptr, [&](const Case& c, LossResult& result) {
      at_positions(c, true, [&](std::int64_t) {
        if (*c.spec.find(option) != needed) add_to_loss(result, 0.03);
      });
    });
    expect_shown(fake, ordinary_case("grpo"), "option misread",
                 "right where " + std::string(option) + " is " + text);
  }
}

TEST(ProbeNeededOptions, TellAFaultOfATermFromAnOptionThatIsReadOtherwise) {
  const auto off_by = [](double (*error)(double z_loss)) {
    return answering("cross_entropy", nullptr, [error](const Case& c, LossResult& result) {
      const double off = 0.1 * error(c.spec.number("z_loss"));
      at_positions(c, true, [&](std::int64_t) { add_to_loss(result, off); });
    });
  };
  Case c = ordinary_case("cross_entropy");
  c.spec.set("z_loss", 0.3);
  const std::string right = "right where z_loss is 0";
  expect_shown(off_by([](double z) { return z; }), c, "option misread",
               right + " and off in proportion to it: the fault is in its term");
  expect_shown(off_by([](double z) { return z * z; }), c, "option misread", right);
}

TEST(ProbeNeededOptions, BlameATermThatIsMadeOfWhatIsSilentWithoutIt) {
  // Without a penalty no reference matters: whatever is wrong with it is gone.
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const Tensor &own = c.batch.at("log_prob"), &reference = c.batch.at("ref_log_prob");
    at_positions(c, true, [&](std::int64_t p) {
      const double penalty = std::fabs(own.at(p) - reference.at(p));
      add_to_loss(result, 0.1 * c.spec.number("kl_penalty") * penalty);
    });
  });
  Case c = ordinary_case("grpo");
  c.spec.set("kl_penalty", 0.3);
  expect_shown(fake, c, "disagrees with the formula",
               "right where kl_penalty is 0 and off in proportion to it: the fault is in its term");
}

TEST(ProbeNeededOptions, SeeATermWithTheOtherSign) {
  const auto turned = [](const char* loss, const char* option) {
    return answering(loss, nullptr, [=](const Case& c, LossResult& result) {
      Case without = c;
      without.spec.set(option, 0.0);
      const LossResult rest =
          answering(loss, nullptr).evaluate(*reference::find_signature(loss), without);
      for (Output& each : result.outputs) {
        const Tensor& other = *rest.find(each.name);
        for (std::int64_t i = 0; i < each.tensor.size(); ++i) {
          each.tensor.set(i, 2.0 * other.at(i) - each.tensor.at(i));
        }
      }
    });
  };
  Case policy = ordinary_case("grpo"), logits = ordinary_case("cross_entropy");
  policy.spec.set("kl_penalty", 0.3);
  logits.spec.set("z_loss", 0.3);
  expect_shown(turned("grpo", "kl_penalty"), policy, "wrong sign",
               "the term that kl_penalty scales has the other sign");
  expect_shown(turned("cross_entropy", "z_loss"), logits, "wrong sign",
               "the term that z_loss scales has the other sign");
}

TEST(ProbeNeededOptions, TellWhatAnOptionAsksForFromAnOptionThatIsReadOtherwise) {
  struct Asked {
    const char* option;
    OptionValue given, right;
    const char* because;
  };
  const Asked all[] = {
      {"kl_estimator", "k1", "k3",
       "right where kl_estimator is k3: the fault is in what k1 asks for"},
      {"kl_weighted", 1.0, 0.0, "right where kl_weighted is 0: the fault is in what 1 asks for"},
  };
  for (const Asked& asked : all) {
    const auto fake = answering("grpo", nullptr, [&](const Case& c, LossResult& result) {
      at_positions(c, true, [&](std::int64_t) {
        if (*c.spec.find(asked.option) != asked.right) add_to_loss(result, 0.03);
      });
    });
    Case c = ordinary_case("grpo");
    c.spec.set(asked.option, asked.given);
    expect_shown(fake, c, "disagrees with the formula", asked.because);
  }
}

TEST(ProbeNeededOptions, BlameNoOptionWithWhichFartherNumbersAreWrong) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const Tensor &own = c.batch.at("log_prob"), &old = c.batch.at("old_log_prob");
    bool far = false;
    at_positions(c, true, [&](std::int64_t p) { far |= std::fabs(own.at(p) - old.at(p)) > 3.0; });
    if (far || c.spec.number("clip_low") != 0.0) add_to_loss(result, 0.03);
  });
  EXPECT_FALSE(speaks(probe_needed_options, fake, ordinary_case("grpo")));
}

TEST(ProbeNeededOptions, FindsTheOnesWithWhichAllIsRight) {
  const auto fake = answering("sapo", nullptr, [](const Case& c, LossResult& result) {
    const bool ones = c.spec.number("tau_positive") == 1.0 && c.spec.number("tau_negative") == 1.0;
    at_positions(c, true, [&](std::int64_t) {
      if (!ones) add_to_loss(result, 0.03);
    });
  });
  Case c = ordinary_case("sapo");
  c.spec.set("tau_positive", 2.0);
  c.spec.set("tau_negative", 3.0);
  expect_shown(fake, c, "option misread", "right where numbers among the options are 1");
}

TEST(ProbeNeededOptions, NameNoOptionThatSilencesTheOneThatIsMisread) {
  // Of gamma 0 the formula does not feel lambda.
  const auto fake = answering("gae", nullptr, [](const Case& c, LossResult& result) {
    const double off = 0.03 * c.spec.number("gamma") * c.spec.number("lambda");
    Tensor& advantage = output(result, "advantage");
    at_positions(c, true, [&](std::int64_t p) { advantage.set(p, advantage.at(p) + off); });
  });
  expect_shown(fake, ordinary_case("gae"), "option misread", "right where lambda is 0");
}

TEST(ProbeNeededOptions, NameTheLimitThatIsMisreadBeforeAnotherThatHoldsAllThereIs) {
  const auto fake = answering("cispo", [](Case& c) {
    if (!c.spec.is_none("log_ratio_clamp")) c.spec.set("log_ratio_clamp", 3.0);
  });
  Case c = ordinary_case("cispo");
  c.batch.at("log_prob").set(0, c.batch.at("old_log_prob").at(0) - 6.0);
  expect_shown(fake, c, "option misread", "right where log_ratio_clamp is none");
}

TEST(ProbeNeededOptions, BlameNoOptionThatSilencesAField) {
  // Where all is smoothed no label counts.
  const auto fake = answering("cross_entropy", [](Case& c) {
    const double last = static_cast<double>(c.shape[Axis::vocab]) - 1.0;
    change_each(c.batch.at("label"), [&](double x) { return x == last ? x - 1.0 : x; });
  });
  EXPECT_FALSE(speaks(probe_needed_options, fake, ordinary_case("cross_entropy")));
}

TEST(ProbeNeededOptions, LeaveAloneANumberThatCannotBeOne) {
  // Of the two, clip_low is always below 1.
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const bool right = c.spec.number("clip_low") == 0.0 && c.spec.number("clip_high") == 1.0;
    at_positions(c, true, [&](std::int64_t) {
      if (!right) add_to_loss(result, 0.03);
    });
  });
  EXPECT_EQ(diagnosed(fake, ordinary_case("grpo")).because, "");
}

}  // namespace
}  // namespace lossgate::properties
