// SPDX-License-Identifier: Apache-2.0
#include "impl/external/rerun.h"

#include <algorithm>

#include "corpora/element_text.h"
#include "corpora/header.h"
#include "impl/external/process.h"

namespace lossgate::impl {
namespace {

using corpora::Dump;
using corpora::TensorFile;

/// The dump as the worker hears of a loss: fields that nobody knows more of than their names.
LossSignature fields_of(const Dump& dump) {
  LossSignature fields;
  fields.id = dump.loss.empty() ? "the dump" : dump.loss;
  for (const auto& [name, tensor] : dump.fields) {
    const auto& leaves = dump.differentiable;
    const bool leaf = std::ranges::find(leaves, name) != leaves.end();
    fields.fields.push_back({.name = name,
                             .role = leaf ? Role::differentiable : Role::constant,
                             .quantity = Quantity::value,
                             .axes = {}});
  }
  for (const Dump::Given& given : dump.given) {
    if (given.name == "reduction") continue;
    fields.options.push_back({.name = given.name, .kind = given.kind, .standard = given.value});
  }
  const Dump::Given* reduction = dump.find_given("reduction");
  if (const auto* word = reduction ? std::get_if<std::string>(&reduction->value) : nullptr) {
    if (const auto known = parse_reduction(*word)) fields.reductions.push_back(*known);
  }
  return fields;
}

/// Where a dump has no field of the name that a lossgate.toml takes an argument from, but one of
/// the parameter's own, that is what the parameter was given. What a function shifts itself was
/// given with all its positions, and what it expects at each of them stood there.
Subject called_as_stored(Subject subject, const Dump& dump) {
  std::erase_if(subject.arguments, [&](const auto& argument) {
    const auto& [parameter, source] = argument;
    if (!source.starts_with("field:") || !dump.find_field(parameter)) return false;
    return !dump.find_field(source.substr(6, source.find(" as ") - 6));
  });
  for (auto& [parameter, source] : subject.arguments) {
    for (const std::string& done : {std::string(" as shifted"), std::string(" as ") + kExpanded}) {
      const std::size_t at = source.find(done);
      if (at != source.npos) source.erase(at, done.size());
    }
  }
  return subject;
}

/// The counts of the whole batch, of which a dump may hold a few rows.
TensorFile request(const Subject& subject, const Dump& dump, bool explain) {
  TensorFile frame{.tensors = dump.fields, .metadata = {{"op", "step"}, {"subject", subject.name}}};
  const auto say = [&](std::string key, std::string text) {
    frame.metadata.emplace_back(std::move(key), std::move(text));
  };
  for (const Dump::Given& given : dump.given) {
    const bool reduction = given.name == "reduction";
    say(reduction ? "reduction" : "option." + given.name, corpora::option_text(given.value));
  }
  const std::string rows = std::to_string(dump.whole.empty() ? 1 : dump.whole.front());
  const std::string tokens =
      dump.counts.empty() ? rows : std::to_string(dump.counts.begin()->second);
  for (const char* kind : {"total_", "rank_"}) {
    say(std::string(kind) + "tokens", tokens);
    say(std::string(kind) + "sequences", rows);
    say(std::string(kind) + "rows", rows);
  }
  const std::string rank = dump.run_fact("rank"), world = dump.run_fact("world");
  say("rank", rank.empty() ? "0" : rank);
  say("world", world.empty() ? "1" : world);
  say("micro_batch", "0");
  say("micro_batches", "1");
  say("layout", "contiguous");
  say("upstream", corpora::number_text(dump.upstream));
  say("explain", explain ? "1" : "0");
  return frame;
}

Rerun rerun_of(TensorFile answer) {
  Rerun rerun;
  if (text_of(answer, "op") == "raised") {
    rerun.raised = text_of(answer, "type") + ": " + text_of(answer, "message") + " at " +
                   text_of(answer, "file") + ":" + text_of(answer, "line") + ": " +
                   text_of(answer, "code");
    return rerun;
  }
  constexpr std::string_view kGradient = "gradient.";
  rerun.guilty = guilty_of(answer);
  for (auto& [name, tensor] : answer.tensors) {
    if (name == "loss")
      rerun.loss = std::move(tensor);
    else if (name.starts_with(kGradient))
      rerun.gradients.emplace_back(name.substr(kGradient.size()), std::move(tensor));
  }
  return rerun;
}

}  // namespace

Rerunner::Rerunner(Subject subject, const Dump& dump)
    : subject_(called_as_stored(std::move(subject), dump)),
      fields_(fields_of(dump)),
      host_(subject_) {}

const Greeting& Rerunner::greeting() {
  if (greeting_ && greeted_ == host_.running()) return *greeting_;
  greeting_ = greet(host_, subject_, fields_);
  greeted_ = host_.running();
  return *greeting_;
}

Rerun Rerunner::run(const Dump& dump, bool explain) {
  greeting();
  const auto frame = corpora::write_tensors(request(subject_, dump, explain));
  TensorFile answer = corpora::read_tensors(host_.ask(frame, subject_.seconds), "answer");
  const std::string op = text_of(answer, "op");
  if (op == "trouble") throw SubjectError(subject_.name + ": " + text_of(answer, "message"));
  if (op == "damaged") {
    host_.end();
    throw SubjectError(subject_.name + ": " + text_of(answer, "message"));
  }
  return rerun_of(std::move(answer));
}

}  // namespace lossgate::impl
