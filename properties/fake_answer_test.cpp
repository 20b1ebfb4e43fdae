// SPDX-License-Identifier: Apache-2.0
#include "properties/fake_answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "properties/diagnosis.h"
#include "properties/plain_case.h"

namespace lossgate::properties {
namespace {

using reference::Tracked;

/// What the formula gives for a case, in its outputs' formats.
LossResult formula(const reference::Loss& loss, const Case& c) {
  LossResult result;
  if (auto refusal = reference::expected_refusal(loss, c)) {
    result.refusal = std::move(refusal);
    return result;
  }
  CaseStudy study(loss, c);
  for (const OutputInfo& output : study.outputs()) {
    result.outputs.push_back({output.name, Tensor::zeros(output.dtype, output.extents)});
  }
  study.for_each_expected(plain_arithmetic(Dtype::f64, ""), false,
                          [&](std::size_t o, std::int64_t i, const Tracked& x) {
                            result.outputs[o].tensor.set(i, static_cast<double>(x.v));
                          });
  return result;
}

/// The case with the logits of a layer in the place of what makes them.
Case of_logits_of(const Case& c) {
  const Tensor &hidden = c.batch.at("hidden"), &weight = c.batch.at("weight");
  const std::int64_t vocab = c.shape[Axis::vocab], width = c.shape[Axis::hidden];
  Case made = c;
  made.spec.loss = "cross_entropy";
  made.shape[Axis::hidden] = -1;
  made.grad_mode = GradMode::all;
  Tensor logits =
      Tensor::zeros(hidden.dtype, made.shape.of({Axis::sequences, Axis::tokens, Axis::vocab}));
  for (std::int64_t i = 0; i < logits.size(); ++i) {
    long double logit = c.batch.at("bias").at(i % vocab);
    for (std::int64_t h = 0; h < width; ++h) {
      logit += static_cast<long double>(hidden.at(i / vocab * width + h)) *
               weight.at(i % vocab * width + h);
    }
    logits.set(i, static_cast<double>(logit));
  }
  made.batch.fields = {{"logits", std::move(logits)}, {"label", c.batch.at("label")}};
  return made;
}

/// Of an output the sum over positions that count and, at each, what is added to which entry.
void put_sums(const Case& c, LossResult& result, const std::string& name,
              const std::function<void(std::int64_t, std::vector<long double>&)>& add) {
  const auto found = std::ranges::find(result.outputs, name, &Output::name);
  if (found == result.outputs.end()) return;
  std::vector<long double> sums(static_cast<std::size_t>(found->tensor.size()), 0.0L);
  at_positions(c, true, [&](std::int64_t p) { add(p, sums); });
  for (std::size_t i = 0; i < sums.size(); ++i) {
    found->tensor.set(static_cast<std::int64_t>(i), static_cast<double>(sums[i]));
  }
}

/// Every sequence in one part, every part on a rank that there is.
void expect_partition(const Case& c) {
  std::vector<int> parts(static_cast<std::size_t>(c.shape[Axis::sequences]));
  for (const Split::Part& part : c.split.parts) {
    EXPECT_GE(part.rank, 0);
    EXPECT_LT(part.rank, c.split.world);
    for (const std::int64_t s : part.sequences) ++parts.at(static_cast<std::size_t>(s));
  }
  if (!c.split.whole()) EXPECT_EQ(std::ranges::count(parts, 1), c.shape[Axis::sequences]);
}

}  // namespace

impl::Implementation answering(const std::string& loss, ChangeCase asked, ChangeAnswer answered) {
  impl::Implementation fake;
  fake.name = "answering";
  fake.loss = loss;
  fake.unsupported = [](const Case&) { return std::nullopt; };
  fake.arithmetic = [loss](Dtype stored) {
    const auto& forms = reference::find_signature(loss)->forms;
    return plain_arithmetic(stored == Dtype::f64 ? Dtype::f64 : Dtype::f32,
                            forms.empty() ? "" : forms.front());
  };
  fake.evaluate = [asked = std::move(asked), answered = std::move(answered), loss](
                      const LossSignature&, const Case& c) {
    expect_partition(c);
    LossResult result;
    result.refusal = reference::expected_refusal(*reference::find_loss(loss), c);
    if (result.refusal) return result;
    Case put = c;
    if (asked) asked(put);
    result = formula(*reference::find_loss(loss), put);
    if (answered && !result.refusal) answered(c, result);
    return result;
  };
  return fake;
}

Tensor& output(LossResult& result, std::string_view name) {
  return std::ranges::find(result.outputs, name, &Output::name)->tensor;
}

Case ordinary_case(const std::string& loss, Dtype dtype) {
  const LossSignature& signature = *reference::find_signature(loss);
  Case c;
  c.spec = standard_spec(signature);
  for (const Field& field : signature.fields) {
    for (const Axis axis : field.axes) c.shape[axis] = 5;
  }
  for (const Field& field : signature.fields) {
    c.batch.fields.emplace_back(
        field.name,
        Tensor::zeros(field.dtypes.empty() ? dtype : field.dtypes.front(), c.shape.of(field.axes)));
  }
  return plain_case(signature, c).value();
}

impl::Implementation larger_of_two_means() {
  const auto limit = [](const Case& c) {
    return c.spec.is_none("value_clip") ? HUGE_VAL : c.spec.number("value_clip");
  };
  const auto moved = [](const Case& c, std::int64_t p) {
    return c.batch.at("value").at(p) - c.batch.at("old_value").at(p);
  };
  const auto clipped = [=](const Case& c, std::int64_t p) {
    return c.batch.at("old_value").at(p) + std::clamp(moved(c, p), -limit(c), limit(c));
  };
  const auto is_clipped = [=](const Case& c) {
    double free = 0.0, bounded = 0.0;
    at_positions(c, true, [&](std::int64_t p) {
      const double target = c.batch.at("return").at(p);
      free += std::pow(c.batch.at("value").at(p) - target, 2);
      bounded += std::pow(clipped(c, p) - target, 2);
    });
    return bounded > free;
  };
  return answering(
      "value_clip",
      [=](Case& c) {
        if (is_clipped(c)) {
          at_positions(c, true, [&](std::int64_t p) { c.batch.at("value").set(p, clipped(c, p)); });
        }
        c.spec.set("value_clip", None{});
      },
      [=](const Case& c, LossResult& result) {
        if (!is_clipped(c)) return;
        at_positions(c, true, [&](std::int64_t p) {
          if (std::fabs(moved(c, p)) > limit(c)) output(result, "gradient.value").set(p, 0.0);
        });
      });
}

impl::Implementation through_layer(const impl::Implementation& of_logits) {
  return answering("linear_cross_entropy", nullptr, [of_logits](const Case& c, LossResult& result) {
    const auto& signature = *reference::find_signature(of_logits.loss);
    const LossResult made = of_logits.evaluate(signature, of_logits_of(c));
    if (made.refusal) return;
    for (const char* name : {"loss", "per_token"}) output(result, name) = *made.find(name);
    const std::int64_t vocab = c.shape[Axis::vocab], width = c.shape[Axis::hidden];
    // The slope by each class's logit, with its weights and the state that they meet.
    const auto at_classes = [&](std::int64_t p, auto&& visit) {
      for (std::int64_t v = 0; v < vocab; ++v) {
        const long double slope = made.find("gradient.logits")->at(p * vocab + v);
        for (std::int64_t h = 0; h < width; ++h) visit(slope, v * width + h, p * width + h);
      }
    };
    const Tensor &hidden = c.batch.at("hidden"), &weight = c.batch.at("weight");
    put_sums(c, result, "gradient.hidden", [&](std::int64_t p, std::vector<long double>& sums) {
      at_classes(p, [&](long double slope, std::int64_t of_weight, std::int64_t of_state) {
        sums[static_cast<std::size_t>(of_state)] += slope * weight.at(of_weight);
      });
    });
    put_sums(c, result, "gradient.weight", [&](std::int64_t p, std::vector<long double>& sums) {
      at_classes(p, [&](long double slope, std::int64_t of_weight, std::int64_t of_state) {
        sums[static_cast<std::size_t>(of_weight)] += slope * hidden.at(of_state);
      });
    });
    put_sums(c, result, "gradient.bias", [&](std::int64_t p, std::vector<long double>& sums) {
      for (std::size_t v = 0; v < sums.size(); ++v) {
        sums[v] += made.find("gradient.logits")->at(p * vocab + static_cast<std::int64_t>(v));
      }
    });
  });
}

void ask_first_violation(const impl::Implementation& implementation, const Case& c,
                         const AskViolation& ask) {
  CaseStudy study(*reference::find_loss(implementation.loss), c);
  Evaluation evaluation(study, implementation);
  std::vector<const Property*> properties;
  for (const Property& property : catalog()) properties.push_back(&property);
  const auto outcomes = check_all(evaluation, properties, true);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].violation || properties[i]->tier == Tier::hardening) continue;
    return ask(study, *properties[i], *outcomes[i].violation);
  }
}

bool speaks(Opinion (*probe)(Suspect&), const impl::Implementation& implementation, const Case& c) {
  bool any = false;
  ask_first_violation(implementation, c,
                      [&](CaseStudy& study, const Property&, const Violation& violation) {
                        Suspect suspect(study, implementation, violation);
                        any = probe(suspect).has_value();
                      });
  return any;
}

Diagnosis diagnosed(const impl::Implementation& implementation, const Case& c) {
  Diagnosis diagnosis{.cause = "held", .confidence = 0.0, .because = ""};
  ask_first_violation(implementation, c,
                      [&](CaseStudy& study, const Property& property, const Violation& violation) {
                        diagnosis = diagnose(study, implementation, property, violation);
                      });
  return diagnosis;
}

namespace {

void expect_says(const Diagnosis& diagnosis, const std::string& cause, const std::string& because) {
  EXPECT_EQ(diagnosis.cause, cause);
  EXPECT_EQ(diagnosis.because, because);
  EXPECT_GT(diagnosis.confidence, 0.0);
  EXPECT_LE(diagnosis.confidence, 1.0);
}

}  // namespace

void expect_shown(const impl::Implementation& implementation, const Case& c,
                  const std::string& cause, const std::string& because) {
  expect_says(diagnosed(implementation, c), cause, because);
}

void expect_shown_of_lost(const impl::Implementation& implementation, const Case& c,
                          const std::string& cause, const std::string& because) {
  CaseStudy study(*reference::find_loss(c.spec.loss), c);
  Violation lost;
  lost.cause = "laundering";
  expect_says(diagnose(study, implementation, *find_property("no_laundering"), lost), cause,
              because);
}

std::vector<bool> valid_of(const Case& c) {
  return valid_positions(*reference::find_signature(c.spec.loss), c);
}

void add_to_loss(LossResult& result, double x) {
  Tensor& loss = output(result, "loss");
  loss.set(0, loss.at(0) + x);
}

TEST(FakeAnswer, IsSoundWhereNothingIsChanged) {
  for (const char* loss : {"grpo", "cispo", "value_clip", "cross_entropy", "jsd", "log_prob"}) {
    for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
      EXPECT_EQ(diagnosed(answering(loss, nullptr), ordinary_case(loss, dtype)).cause, "held")
          << loss;
    }
  }
}

TEST(FakeAnswer, IsSoundThroughALayer) {
  const auto fake = through_layer(answering("cross_entropy", nullptr));
  EXPECT_EQ(diagnosed(fake, ordinary_case("linear_cross_entropy")).cause, "held");
}

}  // namespace lossgate::properties
