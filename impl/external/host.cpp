// SPDX-License-Identifier: Apache-2.0
#include "impl/external/host.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <system_error>
#include <tuple>

#include "corpora/format_error.h"
#include "impl/external/worker_source.h"

namespace lossgate::impl {
namespace {

std::unique_ptr<Process> listener(const Subject& subject) {
  int requests = -1, replies = -1;
  if (std::sscanf(subject.entry.c_str(), "fd:%d:%d", &requests, &replies) != 2) {
    throw SubjectError(subject.name + ": the entry must be fd:REQUESTS:REPLIES");
  }
  return std::make_unique<Process>(requests, replies);
}

std::unique_ptr<Process> library(const Subject& subject) {
  // By our own number: what sets the limit of memory is a process between us and this one.
  const std::string program = "/proc/" + std::to_string(::getpid()) + "/exe";
  return std::make_unique<Process>(Command{.words = {program, "library-worker"},
                                           .folder = subject.folder.string(),
                                           .environment = subject.environment,
                                           .megabytes = subject.megabytes});
}

std::unique_ptr<Process> interpreter(const Subject& subject) {
  auto process = std::make_unique<Process>(
      Command{.words = {subject.interpreter, "-c", std::string(worker_boot())},
              .folder = subject.folder.string(),
              .environment = subject.environment,
              .megabytes = subject.megabytes,
              .says_where = true});
  nlohmann::json modules = nlohmann::json::object();
  for (const auto& [name, text] : worker_modules()) modules[std::string(name)] = text;
  const std::string frame = modules.dump();
  process->tell(std::as_bytes(std::span(frame)), loading_of(subject).seconds);
  return process;
}

std::vector<std::string> names_of(const corpora::TensorFile& answer, std::string_view key) {
  return nlohmann::json::parse(text_of(answer, key)).get<std::vector<std::string>>();
}

/// What an interpreter was started for, in its folder.
auto surroundings(const Subject& subject) {
  return std::tie(subject.interpreter, subject.path, subject.environment, subject.device,
                  subject.threads, subject.megabytes);
}

/// However they are written: a file's folder may end with a slash.
bool are_one(const std::filesystem::path& folder, const std::filesystem::path& other) {
  std::error_code absent;
  return folder == other || std::filesystem::equivalent(folder, other, absent);
}

}  // namespace

Loading loading_of(const Subject& subject) {
  if (!subject.entry.starts_with("so:")) return {180.0, "it was not loaded within three minutes"};
  return {60.0, "opening it did not return within a minute; what its constructors do is done then"};
}

Host::Host(const Subject& subject) : subject_(subject) {}

bool Host::serves(const Subject& subject) const {
  if (!subject_.entry.starts_with("py:") || !subject.entry.starts_with("py:")) return false;
  return surroundings(subject_) == surroundings(subject) &&
         are_one(subject_.folder, subject.folder);
}

void Host::start() {
  if (process_) return;
  ++starts_;
  const bool listens = subject_.entry.starts_with("fd:");
  const bool loaded = subject_.entry.starts_with("so:");
  process_ = listens ? listener(subject_) : loaded ? library(subject_) : interpreter(subject_);
}

Greeting greet(Host& host, const Subject& subject, const LossSignature& loss) {
  const auto lost = [&](const std::string& why) {
    host.end();
    return SubjectError(subject.name + ": " + why);
  };
  const Loading loading = loading_of(subject);
  try {
    if (!subject.folder.empty() && !std::filesystem::is_directory(subject.folder)) {
      throw SubjectError(subject.name + ": there is no folder " + subject.folder.string());
    }
    host.start();
    const auto frame = corpora::write_tensors(hello(subject, loss));
    const auto answer = corpora::read_tensors(host.ask(frame, loading.seconds), "answer");
    if (text_of(answer, "op") == "hello") return greeting_of(answer);
    const std::string why = subject.name + ": " + text_of(answer, "message");
    if (!answer.find_metadata("lacking")) throw SubjectError(why);
    throw ParametersUnmatched(why, names_of(answer, "taken"), names_of(answer, "lacking"));
  } catch (const ProcessEnded& error) {
    const bool library = subject.entry.starts_with("so:");
    throw lost((library ? subject.entry : subject.interpreter) + " " + error.what());
  } catch (const ProcessHung&) {
    throw lost(loading.late);
  } catch (const corpora::FormatError& error) {
    throw lost(error.what());
  } catch (const nlohmann::json::exception& error) {
    throw lost(std::string("its answer is not understood: ") + error.what());
  }
}

}  // namespace lossgate::impl
