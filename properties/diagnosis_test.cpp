// SPDX-License-Identifier: Apache-2.0
#include "properties/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "impl/catalog.h"
#include "properties/causes.h"
#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// The cause, which must be one of the list.
std::string cause(const impl::Implementation& implementation, const Case& c) {
  const Diagnosis diagnosis = diagnosed(implementation, c);
  EXPECT_TRUE(find_cause(diagnosis.cause)) << diagnosis.cause;
  EXPECT_EQ(diagnosis.confidence > 0.0, !diagnosis.because.empty());
  EXPECT_LE(diagnosis.confidence, 1.0) << diagnosis.cause;
  return diagnosis.cause;
}

/// Loss and gradients times what `factor` says of the case.
ChangeAnswer scaled(double (*factor)(const Case&)) {
  return [factor](const Case& c, LossResult& result) {
    for (Output& output : result.outputs) {
      if (output.name == "per_token") continue;
      change_each(output.tensor, [&](double x) { return factor(c) * x; });
    }
  };
}

double valid_tokens(const Case& c) {
  const auto valid = valid_positions(*reference::find_signature(c.spec.loss), c);
  return static_cast<double>(std::ranges::count(valid, true));
}

double positions(const Case& c) {
  return static_cast<double>(c.shape[Axis::sequences] * c.shape[Axis::tokens]);
}

Case token_mean(const std::string& loss, Dtype dtype = Dtype::f64) {
  Case c = ordinary_case(loss, dtype);
  c.spec.reduction = Reduction::token_mean;
  return c;
}

/// NaN, in the gradients alone or everywhere, where a row of valid logits is like that.
ChangeAnswer nan_where(bool (*row)(const std::vector<double>&), bool gradients_alone = false) {
  return [row, gradients_alone](const Case& c, LossResult& result) {
    const Tensor& logits = c.batch.at("logits");
    const std::int64_t vocab = c.shape[Axis::vocab];
    const auto valid = valid_positions(*reference::find_signature(c.spec.loss), c);
    for (std::size_t p = 0; p < valid.size(); ++p) {
      std::vector<double> x;
      for (std::int64_t v = 0; v < vocab; ++v) {
        x.push_back(logits.at(static_cast<std::int64_t>(p) * vocab + v));
      }
      if (!valid[p] || !row(x)) continue;
      if (!gradients_alone) output(result, "loss").set(0, kNan);
      output(result, "gradient.logits").set(static_cast<std::int64_t>(p) * vocab, kNan);
    }
  };
}

Case with_logit(double value, std::int64_t v) {
  Case c = ordinary_case("cross_entropy");
  c.batch.at("logits").set(v, value);
  return c;
}

double largest(const std::vector<double>& row) { return *std::ranges::max_element(row); }

TEST(Diagnosis, NamesTheDivisor) {
  const Case c = token_mean("grpo");
  EXPECT_EQ(cause(answering("grpo", nullptr, scaled([](const Case& x) {
                              const bool mean = x.spec.reduction == Reduction::token_mean;
                              return mean ? valid_tokens(x) / positions(x) : 1.0;
                            })),
                  c),
            "padding counted");
  EXPECT_EQ(cause(answering("grpo", nullptr, scaled([](const Case& x) {
                              const bool mean = x.spec.reduction == Reduction::token_mean;
                              return mean ? 1.0 / valid_tokens(x) : 1.0;
                            })),
                  c),
            "scaled twice");
  const auto by_sequence = [](Case& x) {
    if (x.spec.reduction == Reduction::token_mean) x.spec.reduction = Reduction::sequence_mean;
  };
  EXPECT_EQ(cause(answering("grpo", by_sequence), c), "wrong divisor");
}

TEST(Diagnosis, NamesTheSign) {
  const auto negated =
      answering("entropy_bonus", nullptr, scaled([](const Case&) { return -1.0; }));
  EXPECT_EQ(cause(negated, ordinary_case("entropy_bonus")), "wrong sign");
}

TEST(Diagnosis, NamesTheOptionThatIsReadOtherwise) {
  Case c = ordinary_case("grpo");
  c.spec.set("clip_high", 0.4);
  const auto low_for_high =
      answering("grpo", [](Case& x) { x.spec.set("clip_high", x.spec.number("clip_low")); });
  EXPECT_EQ(cause(low_for_high, c), "option misread");
  Case hot = ordinary_case("jsd");
  hot.spec.set("temperature", 2.0);
  const auto forgotten = answering("jsd", nullptr, [](const Case& x, LossResult& result) {
    change_each(output(result, "gradient.student_logits"),
                [&](double g) { return g * x.spec.number("temperature"); });
  });
  EXPECT_EQ(cause(forgotten, hot), "option misread");
}

TEST(Diagnosis, NamesTheClampThatDoesNothing) {
  Case c = ordinary_case("sapo");
  c.spec.set("log_ratio_clamp", 1.0);
  EXPECT_EQ(cause(answering("sapo", [](Case& x) { x.spec.set("log_ratio_clamp", None{}); }), c),
            "dead clamp");
}

TEST(Diagnosis, NamesWhatIsWrongWithAGradientWhoseLossIsRight) {
  Case kl = ordinary_case("grpo");
  kl.spec.set("kl_penalty", 0.5);
  const auto gradient_of = [](const std::string& loss, const ChangeCase& asked) {
    const auto other = answering(loss, asked);
    const std::string name = "gradient." + reference::find_signature(loss)->fields.front().name;
    return answering(loss, nullptr, [other, name, loss](const Case& c, LossResult& result) {
      LossResult wrong = other.evaluate(*reference::find_signature(loss), c);
      if (!wrong.refusal) output(result, name) = output(wrong, name);
    });
  };
  EXPECT_EQ(cause(gradient_of("grpo", [](Case& c) { c.spec.set("kl_penalty", 0.0); }), kl),
            "dead signal");
  EXPECT_EQ(cause(gradient_of("value_clip", [](Case& c) { c.spec.set("value_clip", None{}); }),
                  ordinary_case("value_clip")),
            "gradient through a clamp");
  const auto through_weight = answering("cispo", nullptr, [](const Case& c, LossResult& result) {
    Tensor& gradient = output(result, "gradient.log_prob");
    const Tensor &p = c.batch.at("log_prob"), &old = c.batch.at("old_log_prob");
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      const bool inside = std::exp(p.at(i) - old.at(i)) < c.spec.number("weight_high");
      if (inside && gradient.at(i) != 0.0) gradient.set(i, gradient.at(i) * (1.0 + p.at(i)));
    }
  });
  EXPECT_EQ(cause(through_weight, ordinary_case("cispo")), "gradient through what is constant");
  const auto halved = answering("cispo", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "gradient.log_prob"), [](double g) { return 0.73 * g; });
  });
  EXPECT_EQ(cause(halved, ordinary_case("cispo")), "backward is not the derivative");
}

TEST(Diagnosis, NamesTheGradientThatIsFiltered) {
  Case c = with_logit(20.0, 2);
  const auto filtered = answering("cross_entropy", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "gradient.logits"),
                [](double g) { return std::fabs(g) < 1e-5 ? 0.0 : g; });
  });
  EXPECT_EQ(cause(filtered, c), "gradient filtered");
}

TEST(Diagnosis, AsksNothingOfAChoiceThatIsNoReductionBesideTheGivenOne) {
  const Case c = ordinary_case("grpo");
  const double given = c.batch.at("log_prob").at(0) - 0.5;
  const auto fake = answering("grpo", nullptr, [given](const Case& x, LossResult& result) {
    if (x.spec.choice("kl_estimator") == "k1") scaled([](const Case&) { return -1.0; })(x, result);
    at_positions(x, true, [&](std::int64_t p) {
      if (x.batch.at("log_prob").at(p) == given) add_to_loss(result, 1.0);
    });
  });
  Case off = c;
  off.batch.at("log_prob").set(0, given);
  EXPECT_EQ(cause(fake, off), "disagrees with the formula") << "k1 is wrong otherwise";
  off.spec.set("kl_estimator", "k1");
  EXPECT_EQ(cause(fake, off), "wrong sign");
}

/// A divergence whose gradient has been in bf16.
impl::Implementation gradient_in_bf16() {
  return answering("jsd", nullptr, [](const Case&, LossResult& result) {
    Tensor& gradient = output(result, "gradient.student_logits");
    Tensor narrow = Tensor::zeros(Dtype::bf16, gradient.extents);
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      narrow.set(i, gradient.at(i));
      gradient.set(i, narrow.at(i));
    }
  });
}

TEST(Diagnosis, LooksForANarrowFormatWhereASplitOrAnOrderShowsIt) {
  const std::pair<const char*, const char*> seen[] = {
      {"split_invariance", "reduction over the wrong scope"},
      {"permutation_invariance", "a row reads another row"}};
  for (const auto& [property, symptom] : seen) {
    CaseStudy study(*reference::find_loss("jsd"), ordinary_case("jsd"));
    const Violation violation{.place = {}, .detail = "", .cause = symptom};
    EXPECT_EQ(diagnose(study, gradient_in_bf16(), *find_property(property), violation).cause,
              "narrow arithmetic");
  }
}

TEST(Diagnosis, TellsRoundingFromAFormula) {
  EXPECT_EQ(cause(gradient_in_bf16(), ordinary_case("jsd")), "narrow arithmetic");
  const auto& all = impl::catalog();
  impl::Implementation worse = *std::ranges::find(all, "exp_x_1", &impl::Implementation::name);
  worse.arithmetic = answering("kl_penalty", nullptr).arithmetic;
  Case near = ordinary_case("kl_penalty", Dtype::f32);
  near.spec.set("kl_estimator", "k3");
  EXPECT_EQ(cause(worse, near), "cancellation");
  const auto plus_constant = answering("cross_entropy", nullptr, [](const Case& c, LossResult& r) {
    Tensor& terms = output(r, "per_token");
    double sum = 0.0;
    change_each(terms, [&](double x) {
      const double cost = x == 0.0 ? 0.0 : -std::log(std::exp(-x) + 1e-8);
      sum += cost;
      return cost;
    });
    const bool mean = c.spec.reduction == Reduction::token_mean;
    output(r, "loss").set(0, mean ? sum / valid_tokens(c) : sum);
  });
  Case sum = ordinary_case("cross_entropy");
  sum.spec.reduction = Reduction::sum;
  EXPECT_EQ(cause(plus_constant, sum), "epsilon in a logarithm");
}

TEST(Diagnosis, NamesWhatIsBehindTheMask) {
  Case c = grpo_case(4, 4);
  mask_out(c, 1, 2);
  EXPECT_EQ(cause(fake_grpo(Flaw::masked_data_read), c), "masked data leaks");
  EXPECT_EQ(cause(fake_grpo(Flaw::masked_gradient), c), "gradient at a masked position");
  c.spec.set("log_ratio_clamp", None{});
  put_log_ratio(c, 1, 2, 1000.0);
  EXPECT_EQ(cause(fake_grpo(Flaw::mask_multiplied), c), "non-finite value behind a mask");
  const auto by_sentinel = answering("grpo", [](Case& x) {
    if (reference::expected_refusal(grpo(), x)) return;  // fields may differ in length
    for (std::int64_t i = 0; i < x.batch.at("mask").size(); ++i) {
      const bool marked = std::isinf(x.batch.at("log_prob").at(i));
      if (!marked && x.batch.at("old_log_prob").at(i) == x.batch.at("old_log_prob").at(i)) {
        x.batch.at("mask").set(i, 1.0);
      }
    }
  });
  EXPECT_EQ(cause(by_sentinel, token_mean("grpo")), "sentinel compared");
}

TEST(Diagnosis, NamesTheSecondWhere) {
  const auto repaired = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const auto valid = valid_positions(*reference::find_signature("grpo"), c);
    for (std::size_t p = 0; p < valid.size(); ++p) {
      const auto at = static_cast<std::int64_t>(p);
      if (valid[p] || std::isfinite(c.batch.at("log_prob").at(at))) continue;
      output(result, "gradient.log_prob").set(at, kNan);
    }
  });
  EXPECT_EQ(cause(repaired, ordinary_case("grpo")), "value repaired, gradient not");
}

TEST(Diagnosis, NamesTheEdgeOfALogit) {
  const auto named = [](bool (*row)(const std::vector<double>&), const Case& c, bool g = false) {
    return cause(answering("cross_entropy", nullptr, nan_where(row, g)), c);
  };
  EXPECT_EQ(named([](const auto& x) { return largest(x) > 88.0; }, with_logit(90.0, 3)),
            "exp of an unshifted logit");
  const auto impossible = [](const std::vector<double>& x) {
    return std::ranges::count(x, -HUGE_VAL) > 0;
  };
  EXPECT_EQ(named(impossible, with_logit(-HUGE_VAL, 3)), "zero times infinity");
  EXPECT_EQ(named(impossible, with_logit(-HUGE_VAL, 3), true), "value repaired, gradient not");
  EXPECT_EQ(named([](const auto& x) { return x.front() == -HUGE_VAL; }, with_logit(-HUGE_VAL, 0)),
            "infinity minus infinity");
  EXPECT_EQ(named([](const auto& x) { return *std::ranges::min_element(x) < largest(x) - 745.0; },
                  with_logit(-800.0, 3)),
            "logarithm of an underflow");
}

TEST(Diagnosis, NamesTheOrderOfTokensWhetherTheLossShowsItOrNot) {
  const auto first = [](const std::vector<double>& x) { return x.front() == -HUGE_VAL; };
  const auto fake = answering("cross_entropy", nullptr, nan_where(first, true));
  EXPECT_EQ(cause(fake, with_logit(-HUGE_VAL, 0)), "infinity minus infinity");
}

void without_nan(Tensor& tensor) {
  change_each(tensor, [](double x) { return std::isnan(x) ? 0.0 : x; });
}

TEST(Diagnosis, AsksWhetherGradientsLoseANanAsTheLossDoes) {
  const auto nowhere = [](const Case&, LossResult& result) {
    for (Output& each : result.outputs) without_nan(each.tensor);
  };
  const auto in_gradients = [](const Case&, LossResult& result) {
    without_nan(output(result, "loss"));
  };
  for (const char* loss : {"cross_entropy", "grpo"}) {
    EXPECT_EQ(cause(answering(loss, nullptr, nowhere), ordinary_case(loss)), "laundering");
    EXPECT_EQ(cause(answering(loss, nullptr, in_gradients), ordinary_case(loss)),
              "value repaired, gradient not");
  }
}

TEST(Diagnosis, NamesTheMaskThatIsMultipliedWhereverNoNumberIsSeen) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    for (std::int64_t i = 0; i < c.batch.at("log_prob").size(); ++i) {
      const double distance = c.batch.at("log_prob").at(i) - c.batch.at("old_log_prob").at(i);
      if (!(distance < 700.0)) output(result, "loss").set(0, kNan);
    }
  });
  Case c = grpo_case(2, 3, Dtype::f64);  // nothing is masked
  put_log_ratio(c, 0, 2, 1000.0);
  EXPECT_EQ(cause(fake, c), "non-finite value behind a mask");
}

TEST(Diagnosis, NamesTheOverflow) {
  Case c = grpo_case(2, 3);
  put_log_ratio(c, 0, 2, 1000.0);
  EXPECT_EQ(cause(fake_grpo(Flaw::clamped_after_exp), c), "clamp after exp");
  const auto square = answering("value_clip", nullptr, [](const Case& x, LossResult& result) {
    for (std::int64_t i = 0; i < x.batch.at("value").size(); ++i) {
      const double d = x.batch.at("value").at(i) - x.batch.at("return").at(i);
      if (std::isfinite(d) && std::fabs(d) > 1.4e154) output(result, "loss").set(0, HUGE_VAL);
    }
  });
  Case far = ordinary_case("value_clip");
  far.batch.at("value").set(0, 1.5e154);
  EXPECT_EQ(cause(square, far), "overflow of a square or sum");
}

TEST(Diagnosis, TellsANarrowFormatByWhereItOverflows) {
  const auto in_f16 = answering("cispo", nullptr, [](const Case& c, LossResult& result) {
    const Tensor &p = c.batch.at("log_prob"), &old = c.batch.at("old_log_prob");
    for (std::int64_t i = 0; i < p.size(); ++i) {
      if (p.at(i) - old.at(i) > 11.09) output(result, "gradient.log_prob").set(i, kNan);
    }
  });
  Case c = ordinary_case("cispo", Dtype::f32);
  c.batch.at("old_log_prob").set(0, c.batch.at("log_prob").at(0) - 15.0);
  EXPECT_EQ(cause(in_f16, c), "narrow arithmetic");
}

TEST(Diagnosis, TakesNoFormulaThatMovesFarForRounding) {
  Case cold = ordinary_case("jsd");
  cold.spec.set("temperature", 0.1);
  const auto dead = answering("jsd", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "gradient.student_logits"), [](double) { return 0.0; });
  });
  EXPECT_EQ(cause(dead, cold), "dead signal");
}

TEST(Diagnosis, NamesTheEmptyDivisor) {
  Case c = grpo_case(2, 3);
  for (std::int64_t t = 0; t < 3; ++t) mask_out(c, 0, t);
  EXPECT_EQ(cause(fake_grpo(Flaw::empty_divided), c), "empty divisor");
}

TEST(Diagnosis, NamesWhatASplitDoes) {
  Case c = token_mean("grpo");
  c.split = {.world = 2, .parts = {{0, {0, 2}}, {1, {1}}, {1, {3}}}};
  EXPECT_EQ(cause(fake_grpo(Flaw::mean_of_means), c), "mean of means");
  EXPECT_EQ(
      cause(answering("grpo", nullptr, scaled([](const Case& x) { return 1.0 / x.split.world; })),
            c),
      "rank average");
  const auto lost = answering("grpo", [](Case& x) {
    if (x.split.whole()) return;
    for (const std::int64_t row : x.split.parts.back().sequences) {
      for (std::int64_t t = 0; t < x.shape[Axis::tokens]; ++t) put(x, "advantage", row, t, 0.0);
    }
  });
  EXPECT_EQ(cause(lost, c), "remainder dropped");
}

TEST(Diagnosis, NamesTheOtherRow) {
  Case c = ordinary_case("prompt_dedup", Dtype::f32);
  const auto first = answering("prompt_dedup", [](Case& x) {
    Tensor& prompt = x.batch.at("prompt");
    for (std::int64_t s = 1; s < prompt.size(); ++s) prompt.set(s, prompt.at(0));
  });
  EXPECT_EQ(cause(first, c), "pairing by position");
}

TEST(Diagnosis, KeepsTheNameOfWhatWasSeenWhereNoExperimentFits) {
  const auto wavy = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const double wave = std::sin(c.batch.at("log_prob").at(0));
    for (Output& output : result.outputs) {
      change_each(output.tensor, [&](double x) { return x == 0.0 ? 0.0 : x + 0.1 * wave * x * x; });
    }
  });
  const Diagnosis diagnosis = diagnosed(wavy, ordinary_case("grpo"));
  EXPECT_EQ(diagnosis.cause, "disagrees with the formula");
  EXPECT_EQ(diagnosis.confidence, 0.0);
}

}  // namespace
}  // namespace lossgate::properties
