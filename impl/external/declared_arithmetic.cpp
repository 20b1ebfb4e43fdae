// SPDX-License-Identifier: Apache-2.0
#include "impl/external/declared_arithmetic.h"

#include <algorithm>
#include <sstream>

namespace lossgate::impl {
namespace {

template <class T>
std::string_view word_of(const std::vector<std::pair<std::string_view, T>>& words, T value) {
  return std::ranges::find(words, value, &std::pair<std::string_view, T>::second)->first;
}

std::string word_of(Format format) {
  return format ? '"' + std::string(name(*format)) + '"' : "\"stored\"";
}

std::string text_of(const DeclaredSum& sum) {
  std::ostringstream text;
  text << "{ order = \"" << word_of(order_words(), sum.order) << '"';
  if (sum.width != 1.0) text << ", width = " << sum.width;
  if (sum.in) text << ", in = " << word_of(sum.in);
  text << " }";
  return text.str();
}

SumRule rule_of(const DeclaredSum& declared, double roundoff) {
  return {.roundoff = declared.in ? unit_roundoff(*declared.in) : roundoff,
          .order = declared.order,
          .width = declared.width};
}

/// The order in which PyTorch's log_softmax, cross_entropy and their backwards add up on a CPU: one
/// running sum in each lane of 32 bytes, f32 in place of anything narrower.
DeclaredSum sum_of_log_softmax(Dtype compute) {
  const bool narrow = unit_roundoff(compute) > unit_roundoff(Dtype::f32);
  return {SumOrder::lanes, compute == Dtype::f64 ? 4.0 : 8.0,
          narrow ? Format(Dtype::f32) : Format()};
}

}  // namespace

const std::vector<std::pair<std::string_view, Stage>>& stage_words() {
  static const std::vector<std::pair<std::string_view, Stage>> words = {
      {"logits", Stage::logits},
      {"log_prob", Stage::log_prob},
      {"per_token", Stage::per_token},
      {"loss", Stage::loss},
      {"gradient", Stage::gradient}};
  return words;
}

const std::vector<std::pair<std::string_view, SumOrder>>& order_words() {
  static const std::vector<std::pair<std::string_view, SumOrder>> words = {
      {"pairwise", SumOrder::pairwise},
      {"lanes", SumOrder::lanes},
      {"blocked", SumOrder::blocked},
      {"online", SumOrder::online},
      {"sequential", SumOrder::sequential}};
  return words;
}

std::optional<Dtype> stage_format(const DeclaredArithmetic& declared, Stage stage, Dtype stored) {
  for (const auto& [at, format] : declared.stages) {
    if (at == stage) return format.value_or(stored);
  }
  return std::nullopt;
}

Arithmetic arithmetic_of(const DeclaredArithmetic& declared, Dtype stored) {
  Arithmetic arithmetic = plain_arithmetic(declared.compute.value_or(stored), declared.form);
  for (const auto& [stage, format] : declared.stages) {
    const Dtype in = format.value_or(stored);
    arithmetic.stage(stage) = {
        .roundoff = unit_roundoff(in), .eta = min_subnormal(in), .largest = max_finite(in)};
  }
  arithmetic.sum =
      rule_of(declared.sum.value_or(sum_of_log_softmax(arithmetic.compute)), arithmetic.roundoff);
  if (declared.matmul) arithmetic.matmul = rule_of(*declared.matmul, arithmetic.roundoff);
  arithmetic.math.exp_slope = declared.exp_slope;
  const bool flushes = declared.subnormals_flushed.value_or(has_wide_exponents(arithmetic.compute));
  return flushes ? with_subnormals_flushed(arithmetic) : arithmetic;
}

std::vector<std::string> toml_lines(const DeclaredArithmetic& declared) {
  std::vector<std::string> lines;
  if (declared.compute) lines.push_back("compute = " + word_of(declared.compute));
  if (!declared.form.empty()) lines.push_back("form = \"" + declared.form + '"');
  std::string stages;
  for (const auto& [stage, format] : declared.stages) {
    stages += stages.empty() ? "" : ", ";
    stages += std::string(word_of(stage_words(), stage)) + " = " + word_of(format);
  }
  if (!stages.empty()) lines.push_back("stages = { " + stages + " }");
  if (declared.sum) lines.push_back("sum = " + text_of(*declared.sum));
  if (declared.matmul) lines.push_back("matmul = " + text_of(*declared.matmul));
  if (declared.exp_slope != 0.0) {
    std::ostringstream text;
    text << "exp_slope = " << declared.exp_slope;
    lines.push_back(text.str());
  }
  if (const auto& flushed = declared.subnormals_flushed) {
    lines.push_back(std::string("subnormals = ") + (*flushed ? "\"flushed\"" : "\"kept\""));
  }
  return lines;
}

}  // namespace lossgate::impl
