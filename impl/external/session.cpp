// SPDX-License-Identifier: Apache-2.0
#include "impl/external/session.h"

#include <nlohmann/json.hpp>

#include "corpora/element_text.h"
#include "corpora/format_error.h"
#include "corpora/header.h"
#include "corpora/safetensors.h"
#include "impl/external/guilty_line.h"
#include "impl/external/named_argument.h"
#include "impl/untidy_refusal.h"

namespace lossgate::impl {
namespace {

using Json = nlohmann::json;
using corpora::TensorFile;

/// A subject that ends, or hangs, more often than this is not asked any more. An interpreter takes
/// seconds to start, a library a few milliseconds.
constexpr int kMostEnds = 50, kMostLibraryEnds = 5000, kMostHangs = 50;

std::vector<std::string> asked_gradients(const LossSignature& loss, GradMode mode) {
  std::vector<std::string> asked;
  for (const Field& field : loss.fields) {
    const bool differentiable = field.role == Role::differentiable;
    if (differentiable && asks_gradient(loss, mode, field.name)) asked.push_back(field.name);
  }
  return asked;
}

/// Of all tensors, or, where each lies its own way, of each in their order.
std::string layouts_text(const Case& part) {
  if (part.layout != Layout::mixed) return std::string(name(part.layout));
  std::string text;
  for (std::int64_t i = 0; i < std::ssize(part.batch.fields); ++i) {
    text += (i == 0 ? "" : ",") + std::string(name(layout_of(part, i)));
  }
  return text;
}

TensorFile request(const Subject& subject, const MicroBatch& batch, double share, bool explain) {
  const Case& part = batch.part;
  TensorFile frame;
  const auto say = [&](std::string key, std::string text) {
    frame.metadata.emplace_back(std::move(key), std::move(text));
  };
  const auto count = [&](std::string key, std::int64_t value) {
    say(std::move(key), std::to_string(value));
  };
  say("op", "step");
  say("subject", subject.name);
  say("reduction", std::string(name(part.spec.reduction)));
  for (const auto& [option, value] : part.spec.options) {
    say("option." + option, corpora::option_text(value));
  }
  count("total_tokens", batch.totals.tokens);
  count("total_sequences", batch.totals.sequences);
  count("total_rows", batch.totals.rows);
  count("rank_tokens", batch.rank_totals.tokens);
  count("rank_sequences", batch.rank_totals.sequences);
  count("rank_rows", batch.rank_totals.rows);
  count("rank", batch.rank);
  count("world", batch.world);
  count("micro_batch", batch.index);
  count("micro_batches", batch.count);
  for (const Axis axis : axes_of_outputs_alone(batch.signature)) {
    count(extent_fact(axis), part.shape[axis]);
  }
  say("layout", layouts_text(part));
  say("upstream", corpora::number_text(part.upstream * share));
  say("explain", explain ? "1" : "0");
  if (part.grad_mode != GradMode::all) {
    say("gradients", Json(asked_gradients(batch.signature, part.grad_mode)).dump());
  }
  if (part.history != History::alone) say("history", std::string(name(part.history)));
  frame.tensors = part.batch.fields;
  return frame;
}

/// A tensor that the worker returned, or zeros of the shape that it should have.
Tensor output_of(const TensorFile& answer, const OutputInfo& info) {
  const Tensor* tensor = answer.find_tensor(info.name);
  if (!tensor && info.kind == OutputKind::gradient) return Tensor::zeros(info.dtype, info.extents);
  if (!tensor) {
    throw Refusal{kNoResult, -1, -1, "'" + info.name + "' was not returned", {info.name}};
  }
  if (tensor->extents != info.extents) {
    throw Refusal{kNoResult, -1, -1, "'" + info.name + "' has another shape", {info.name}};
  }
  return *tensor;
}

void scale(Tensor& tensor, double factor) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, tensor.at(i) * factor);
}

std::vector<std::string> changed_settings_of(const TensorFile& answer) {
  const std::string changed = text_of(answer, "changed_settings");
  if (changed.empty()) return {};
  return Json::parse(changed).get<std::vector<std::string>>();
}

Refusal refusal_of(const TensorFile& answer, const LossSignature& loss, const Greeting& greeting) {
  const std::string type = text_of(answer, "type");
  if (type == "BadResult" || type == "StrayGradient") {
    Refusal refusal{kNoResult, -1, -1, text_of(answer, "message")};
    if (std::string output = text_of(answer, "output"); !output.empty()) {
      refusal.beside.push_back(std::move(output));
    }
    if (type == "StrayGradient") refusal.beside.push_back("shifted");
    return refusal;
  }
  if (type == "NotReduced") {
    return {kNoResult, -1, -1, text_of(answer, "message"), {"reduction"}};
  }
  std::string message = type + ": " + text_of(answer, "message");
  const std::string file = text_of(answer, "file");
  if (!file.empty()) {
    message += " at " + file + ":" + text_of(answer, "line") + ": " + text_of(answer, "code");
  }
  if (type == "NotImplementedError" || type == "NotComputed") {
    return {kNotComputed, -1, -1, message};
  }
  auto names = named_arguments(text_of(answer, "message"), loss, greeting);
  Refusal refusal{.argument = "", .message = std::move(message)};
  if (!names.empty()) {
    refusal.argument = names.front();
    refusal.beside.assign(names.begin() + 1, names.end());
  }
  return refusal;
}

[[noreturn]] void refuse(const TensorFile& answer, const LossSignature& loss,
                         const Greeting& greeting) {
  Refusal refusal = refusal_of(answer, loss, greeting);
  auto changed = changed_settings_of(answer);
  if (changed.empty()) throw refusal;
  throw UntidyRefusal{std::move(refusal), std::move(changed)};
}

std::optional<Origin> origin_of(const TensorFile& answer) {
  const std::optional<GuiltyLine> guilty = guilty_of(answer);
  if (!guilty) return std::nullopt;
  Origin origin;
  origin.source = guilty->source;
  origin.text = guilty->text;
  return origin;
}

LossResult result_of(const TensorFile& answer, const MicroBatch& batch, double share) {
  LossResult result;
  for (const OutputInfo& info : outputs_of(batch.signature, batch.part)) {
    Tensor tensor = output_of(answer, info);
    if (info.kind == OutputKind::loss && share != 1.0) scale(tensor, share);
    result.outputs.push_back({info.name, std::move(tensor)});
  }
  result.mutated = Json::parse(text_of(answer, "mutated")).get<std::vector<std::string>>();
  result.changed_settings = changed_settings_of(answer);
  return result;
}

}  // namespace

Session::Session(Subject subject, LossSignature loss, std::shared_ptr<Host> host)
    : subject_(std::move(subject)), loss_(std::move(loss)), host_(std::move(host)) {}

Session::Session(Subject subject, LossSignature loss)
    : Session(subject, std::move(loss), std::make_shared<Host>(subject)) {}

void Session::begin() {
  try {
    host_->start();
  } catch (const std::exception&) {
    host_->end();
  }
}

void Session::greet() {
  const int most = subject_.entry.starts_with("so:") ? kMostLibraryEnds : kMostEnds;
  if (wear_.ends >= most || wear_.hangs > kMostHangs) {
    throw SubjectWornOut(subject_.name + " crashed or hung " + std::to_string(wear_.ends) +
                         " times");
  }
  try {
    greeting_ = impl::greet(*host_, subject_, loss_);
  } catch (const SubjectError&) {
    wear_.ends += host_->running() == 0;
    throw;
  }
  greeted_ = host_->running();
}

void Session::end() {
  ++wear_.ends;
  host_->end();
}

const Greeting& Session::greeting() {
  if (greeting_ && greeted_ == host_->running()) return *greeting_;
  greet();
  return *greeting_;
}

void Session::become(const Subject& subject, const LossSignature& loss) {
  subject_ = subject;
  loss_ = loss;
  greeting_.reset();
}

bool Session::begin_foreseeing() {
  if (!greeting_ || greeted_ != host_->running() || !foresees_) return false;
  try {
    host_->begin_foreseeing(subject_.seconds);
  } catch (const std::exception&) {
    stop_foreseeing();
  }
  return foresees_;
}

bool Session::foresee(MicroBatch& batch, double share) {
  try {
    return host_->foresee(corpora::write_tensors(request(subject_, batch, share, false)),
                          subject_.seconds);
  } catch (const std::exception&) {
    stop_foreseeing();
    return false;
  }
}

void Session::stop_foreseeing() {
  foresees_ = false;
  host_->end();
}

/// While other answers are to come, one may be missing or spoilt by another question's fault: asked
/// alone, it is known whose.
TensorFile Session::answer_to(const std::vector<std::byte>& frame) {
  if (host_->waits()) {
    try {
      return corpora::read_tensors(host_->ask(frame, subject_.seconds), "answer");
    } catch (const std::exception&) {
      stop_foreseeing();
      greeting();
    }
  }
  return corpora::read_tensors(host_->ask(frame, subject_.seconds), "answer");
}

LossResult Session::ask(MicroBatch& batch, double share, std::optional<Origin>* origin) {
  greeting();
  try {
    const TensorFile answer =
        answer_to(corpora::write_tensors(request(subject_, batch, share, origin != nullptr)));
    const std::string op = text_of(answer, "op");
    if (op == "trouble") throw SubjectError(subject_.name + ": " + text_of(answer, "message"));
    // What was raised is an answer still; the next call needs a process whose device works.
    if (text_of(answer, "device_lost") == "1") host_->end();
    if (op == "raised") refuse(answer, loss_, *greeting_);
    if (op == "damaged") throw ProcessEnded(text_of(answer, "message"));
    if (origin && !*origin) *origin = origin_of(answer);
    loss_in_ = text_of(answer, "loss_in");
    return result_of(answer, batch, share);
  } catch (const ProcessEnded&) {
    end();
    throw;
  } catch (const ProcessHung& error) {
    ++wear_.hangs;
    end();
    throw ProcessHung(std::string(error.what()) +
                      "; a call has seconds = " + corpora::number_text(subject_.seconds));
  } catch (const corpora::FormatError& error) {
    end();
    throw ProcessEnded(std::string("answered garbage: ") + error.what());
  } catch (const Json::exception& error) {
    end();
    throw ProcessEnded(std::string("answered garbage: ") + error.what());
  }
}

}  // namespace lossgate::impl
