// SPDX-License-Identifier: Apache-2.0
#include "impl/external/c/conversation.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "corpora/format_error.h"
#include "impl/external/c/fp_settings.h"
#include "impl/external/greeting.h"
#include "impl/external/subject.h"

namespace lossgate::impl {
namespace {

using Json = nlohmann::json;
using corpora::TensorFile;

constexpr std::string_view kFacts[] = {
    "total_tokens", "total_sequences", "total_rows",  "rank_tokens",  "rank_sequences", "rank_rows",
    "rank",         "world",           "micro_batch", "micro_batches"};

TensorFile message(const char* op, const std::string& text) {
  return {.tensors = {}, .metadata = {{"op", op}, {"message", text}}};
}

std::vector<Axis> axes_of(const Json& names) {
  std::vector<Axis> axes;
  for (const Json& each : names) {
    const auto at = std::ranges::find_if(
        kAllAxes, [&](Axis axis) { return name(axis) == each.get<std::string>(); });
    if (at == std::end(kAllAxes)) throw SubjectError("there is no axis " + each.dump());
    axes.push_back(*at);
  }
  return axes;
}

LibraryLoss loss_of(const TensorFile& hello) {
  LibraryLoss loss;
  loss.id = text_of(hello, "loss");
  for (const Json& field : Json::parse(text_of(hello, "fields"))) {
    loss.fields.push_back({.name = field.at("name"),
                           .axes = axes_of(field.at("axes")),
                           .differentiable = field.at("role") == name(Role::differentiable)});
  }
  for (const Json& output : Json::parse(text_of(hello, "outputs"))) {
    LibraryLoss::Array& array = loss.outputs.emplace_back(
        LibraryLoss::Array{output.at("name"), axes_of(output.at("axes"))});
    if (output.contains("dtype")) array.dtype = parse_dtype(output.at("dtype").get<std::string>());
  }
  for (const Json& option : Json::parse(text_of(hello, "options"))) {
    loss.options.push_back(option.at("name"));
  }
  for (const Json& reduction : Json::parse(text_of(hello, "reductions"))) {
    loss.scalar = loss.scalar || reduction != name(Reduction::none);
  }
  return loss;
}

/// Every name that the loss has, and what it is.
std::vector<std::pair<std::string, std::string>> sources_of(const LibraryLoss& loss) {
  std::vector<std::pair<std::string, std::string>> sources;
  for (const auto& field : loss.fields) sources.emplace_back(field.name, "field:" + field.name);
  for (const auto& option : loss.options) sources.emplace_back(option, "option:" + option);
  sources.emplace_back("reduction", "reduction");
  for (const auto fact : kFacts) sources.emplace_back(fact, "fact:" + std::string(fact));
  return sources;
}

/// The sources of what the function takes.
std::vector<std::pair<std::string, std::string>> taken_sources(const LibraryLoss& loss,
                                                               const LibraryFunction& function) {
  const auto known = sources_of(loss);
  std::vector<std::pair<std::string, std::string>> taken;
  std::string words = function.takes;
  std::ranges::replace(words, ',', ' ');
  std::istringstream stream(words);
  for (std::string word; stream >> word;) {
    if (word == "*") return known;
    const auto at = std::ranges::find(known, word, &std::pair<std::string, std::string>::first);
    if (at == known.end()) {
      std::string names;
      for (const auto& [each, source] : known) names += (names.empty() ? "" : ", ") + each;
      throw SubjectError(function.name + " takes '" + word + "', which " + loss.id +
                         " does not have; it has " + names);
    }
    taken.push_back(*at);
  }
  return taken;
}

/// The source's name as users know it: from the subject's folder on, where it lies below that.
std::string shown(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path below = fs::path(file).lexically_relative(fs::current_path(ignored));
  const bool inside = !below.empty() && *below.begin() != "..";
  return inside ? below.string() : file;
}

std::string line_of(const std::string& file, int number) {
  std::ifstream stream(file);
  std::string line;
  for (int i = 0; i < number && std::getline(stream, line);) ++i;
  const auto first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t\r");
  return stream && first != std::string::npos ? line.substr(first, last - first + 1) : "";
}

TensorFile result(const LibraryCall& call) {
  const auto mutated = call.mutated();
  LibraryCall::Filled filled = call.filled();
  if (!filled.complaint.empty()) {
    TensorFile raised = message("raised", filled.complaint);
    raised.metadata.emplace_back("type", "BadResult");
    raised.metadata.emplace_back("output", filled.output);
    return raised;
  }
  return {.tensors = std::move(filled.tensors),
          .metadata = {
              {"op", "result"}, {"mutated", Json(mutated).dump()}, {"without_gradient", "[]"}}};
}

TensorFile raised(const char* type, std::string text, const char* standard) {
  TensorFile answer = message("raised", text.empty() ? standard : std::move(text));
  answer.metadata.emplace_back("type", type);
  return answer;
}

TensorFile outcome(int status, const LibraryCall& call, const FencedArrays& arrays,
                   const LibraryFunction& function) {
  if (const auto place = arrays.trespass()) return message("damaged", "wrote " + *place);
  if (!call.complaint().empty()) throw SubjectError(call.complaint());
  switch (status) {
    case LOSSGATE_DONE:
      return result(call);
    case LOSSGATE_NOT_COMPUTED:
      return raised("NotComputed", call.message(), "it says so");
    case LOSSGATE_REFUSED:
      return raised("Refused", call.message(), "without a message");
    default:
      return raised("BadResult",
                    function.name + " returned " + std::to_string(status) +
                        "; return LOSSGATE_DONE, LOSSGATE_NOT_COMPUTED or LOSSGATE_REFUSED",
                    "");
  }
}

/// How many libraries this process has loaded so far (dl_iterate_phdr(3)).
unsigned long long libraries_loaded() {
  unsigned long long loaded = 0;
  const auto read = [](dl_phdr_info* info, std::size_t, void* count) {
    *static_cast<unsigned long long*>(count) = info->dlpi_adds;
    return 1;
  };
  ::dl_iterate_phdr(read, &loaded);
  return loaded;
}

/// How a call ended.
struct Called {
  int status = 0;
  std::optional<std::string> thrown;
  std::vector<FpSettings::Change> changes;  ///< which are undone
  bool loaded = false;                      ///< another library
};

Called called(LibraryCall& call) {
  const pid_t process = ::getpid();
  const unsigned long long before = libraries_loaded();
  const FpSettings settings;
  Called done;
  try {
    done.status = call.run();
  } catch (const std::exception& error) {
    done.thrown = error.what();
  } catch (...) {
    done.thrown = "something that is no std::exception";
  }
  done.changes = settings.restore();
  done.loaded = libraries_loaded() != before;
  if (::getpid() != process) ::_exit(0);  // a child that the library forked and let return
  return done;
}

/// What a call left changed, but for what the loading of a library changes.
std::vector<std::string> texts_of(const Called& done) {
  std::vector<std::string> texts;
  for (const FpSettings::Change& change : done.changes) {
    if (!change.loading || !done.loaded) texts.push_back(change.text);
  }
  return texts;
}

/// Texts of a library need not be UTF-8, those of a frame must.
void clean(TensorFile& answer) {
  for (auto& [key, text] : answer.metadata) {
    text = Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
    text = Json::parse(text).get<std::string>();
  }
}

}  // namespace

TensorFile LibraryConversation::hello(const TensorFile& request) {
  if (text_of(request, "protocol") != "1") {
    throw SubjectError("protocol '" + text_of(request, "protocol") + "' is not spoken here");
  }
  function_.reset();
  LibraryFunction function = open_library(text_of(request, "entry"));
  loss_ = loss_of(request);
  const auto sources = taken_sources(loss_, function);
  taken_.clear();
  Json arguments = Json::object(), options = Json::array(), facts = Json::array();
  for (const auto& [name, source] : sources) {
    taken_.insert(name);
    arguments[name] = source;
    if (source.starts_with("option:")) options.push_back(name);
    if (source.starts_with("fact:")) facts.push_back(name);
  }
  function_ = std::move(function);
  return {.tensors = {},
          .metadata = {{"op", "hello"},
                       {"protocol", "1"},
                       {"versions", Json{{"lossgate.h", std::to_string(LOSSGATE_VERSION)}}.dump()},
                       {"file", shown(function_->file)},
                       {"line", std::to_string(function_->line)},
                       {"code", line_of(function_->file, function_->line)},
                       {"arguments", arguments.dump()},
                       {"options", options.dump()},
                       {"reduction", taken_.contains("reduction") ? "1" : "0"},
                       {"facts", facts.dump()}}};
}

TensorFile LibraryConversation::step(const TensorFile& request) {
  if (!function_) throw SubjectError("a step came before a successful hello");
  LibraryCall call(*function_, loss_, taken_, request, arrays_);
  Called done = called(call);
  if (done.thrown) return raised("exception", std::move(*done.thrown), "without a message");
  TensorFile answer = outcome(done.status, call, arrays_, *function_);
  if (text_of(answer, "op") != "result") return answer;
  if (const auto changed = texts_of(done); !changed.empty()) {
    answer.metadata.emplace_back("changed_settings", Json(changed).dump());
  }
  return answer;
}

std::vector<std::byte> LibraryConversation::answer(std::span<const std::byte> frame) {
  TensorFile answer;
  const std::string* id = nullptr;
  TensorFile request;
  try {
    request = corpora::read_tensors(frame, "request");
    id = request.find_metadata("id");
    const std::string op = text_of(request, "op");
    answer = op == "hello"  ? hello(request)
             : op == "step" ? step(request)
                            : message("trouble", "unknown op '" + op + "'");
  } catch (const std::exception& error) {
    answer = message("trouble", error.what());
  }
  if (id) answer.metadata.emplace_back("id", *id);
  clean(answer);
  return corpora::write_tensors(answer);
}

}  // namespace lossgate::impl
