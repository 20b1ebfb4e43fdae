// SPDX-License-Identifier: Apache-2.0
#include "ci/brought.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <iterator>
#include <thread>

#include "ci/benign_cases.h"
#include "ci/errors.h"
#include "ci/from_here.h"
#include "ci/own_loss.h"
#include "ci/plan.h"
#include "ci/selection.h"
#include "corpora/files.h"
#include "corpora/utf8.h"
#include "impl/external/config.h"
#include "report/shell_word.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

/// Options that neither reach the function nor are declared keep their defaults: whoever does not
/// take dual_clip computes one value of it, whatever is asked.
std::vector<std::string> fix_options(const LossSignature& loss, const impl::Greeting& greeting,
                                     impl::Subject& subject) {
  std::vector<std::string> fixed;
  for (const Option& option : loss.options) {
    const bool tied = std::ranges::any_of(
        subject.tied, [&](const auto& pair) { return pair.first == option.name; });
    const bool declared = std::ranges::find_if(subject.options, [&](const auto& pair) {
                            return pair.first == option.name;
                          }) != subject.options.end();
    const bool taken = std::ranges::find(greeting.options, option.name) != greeting.options.end();
    if (declared || taken || tied) continue;
    subject.options.emplace_back(option.name, option.standard);
    fixed.push_back(option.name);
  }
  return fixed;
}

/// The first choice of several reductions would be a guess.
void settle_reduction(const SubjectFile& file, const LossSignature& loss,
                      const impl::Greeting& greeting, const impl::Subject& subject) {
  const std::size_t open =
      subject.reductions.empty() ? loss.reductions.size() : subject.reductions.size();
  if (greeting.reduction || open <= 1) return;
  std::string known;
  for (const Reduction reduction : loss.reductions) {
    known += (known.empty() ? "" : ", ") + std::string(name(reduction));
  }
  throw InputError(file.name + ": " + subject.name + " takes no reduction, so say which one it " +
                   "computes: reductions = [\"...\"], one of " + known);
}

/// What follows from how the function is declared, once it is loaded.
void declare(Brought& brought, impl::Subject subject) {
  const LossSignature& signature = whole_signature(subject);
  brought.loss.signature = narrowed(signature, subject);
  impl::Implementation& asked = brought.implementation;
  asked = brought_implementation(subject, brought.loss.signature, brought.session);
  // What nobody splits leaves no question out.
  if (!signature.splittable) asked.contract.splits = true;
  asked.source = brought.greeting.source;
  asked.source.flags = "--config " + report::shell_word(from_here(brought.file).string());
  brought.dtypes = subject.dtypes;
  brought.subject = std::move(subject);
}

std::shared_ptr<const Brought> load(const SubjectFile& file, impl::Subject subject,
                                    const std::shared_ptr<impl::Session>& session) {
  const LossSignature& signature = whole_signature(subject);
  auto brought = std::make_shared<Brought>();
  brought->loss = subject.own ? own_loss(subject, session) : *reference::find_loss(subject.loss);
  brought->file = file.name;
  const auto known = file.greetings.find(subject.name);
  try {
    brought->greeting = known == file.greetings.end() ? session->greeting() : known->second;
  } catch (const impl::SubjectError& error) {
    throw InputError(file.name + ": " + error.what());
  }
  settle_reduction(file, signature, brought->greeting, subject);
  heed(brought->greeting, signature, subject);
  brought->fixed = fix_options(signature, brought->greeting, subject);
  brought->session = session;
  declare(*brought, std::move(subject));
  return brought;
}

/// Whether it gives anything for one of a few plain cases. Of what ends its process a run tells.
bool answers(const Brought& brought) {
  const LossSignature& signature = brought.loss.signature;
  for (std::int64_t i = 0; i < 3; ++i) {
    const Case c = benign_case(signature, brought.dtypes.front(), i);
    if (brought.implementation.unsupported(c)) continue;
    try {
      const auto refusal = brought.implementation.evaluate(signature, c).refusal;
      if (!refusal || refusal->argument == impl::kNoResult) return true;
    } catch (const std::exception&) {
      return true;
    }
  }
  return false;
}

/// The subject without fields that its function may be called without; null where it may not, or
/// raises then. One that is named need not answer, and a worker asks those that its parent asks.
std::shared_ptr<const Brought> load_twin(const SubjectFile& file, const Brought& brought,
                                         const impl::Subject& subject,
                                         const impl::Omission& omission, bool named) {
  auto twin = omitting(omission, subject, brought.greeting);
  if (!twin && named) {
    throw InputError(
        fmt::format("{}: {} is not asked: {} has no parameter for it whose default is None",
                    file.name, omission.name, subject.name));
  }
  const bool known = file.greetings.contains(omission.name);
  if (!twin || (!known && !named && file.greetings.contains(subject.name))) return nullptr;
  twin->most_cases =
      twin->most_cases > 0 ? std::min(twin->most_cases, kWithLongCases) : kWithLongCases;
  const auto session =
      std::make_shared<impl::Session>(*twin, whole_signature(*twin), brought.session->host());
  auto loaded = load(file, *std::move(twin), session);
  return named || known || answers(*loaded) ? loaded : nullptr;
}

/// In as few processes as serve them, those that run first.
std::vector<std::shared_ptr<impl::Session>> sessions_of(const std::vector<impl::Subject>& subjects,
                                                        Hosts hosts) {
  std::vector<std::shared_ptr<impl::Session>> sessions;
  for (const impl::Subject& subject : subjects) {
    auto host = std::ranges::find_if(hosts, [&](const auto& one) { return one->serves(subject); });
    if (host == hosts.end()) host = hosts.insert(host, std::make_shared<impl::Host>(subject));
    sessions.push_back(std::make_shared<impl::Session>(subject, whole_signature(subject), *host));
  }
  return sessions;
}

}  // namespace

Brought redeclared(const Brought& brought, impl::Subject subject) {
  Brought other = brought;
  declare(other, std::move(subject));
  return other;
}

impl::Subject function_named(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == name.size()) {
    throw InputError(name + ": name a function as FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION");
  }
  const std::string file = name.substr(0, colon);
  if (name.starts_with("so:") || file.ends_with(".so") || file.find(".so.") != file.npos) {
    throw InputError(name +
                     ": identify and explain --fn are for functions in Python; "
                     "name one of a shared library in a lossgate.toml: entry = \"so:" +
                     name.substr(name.starts_with("so:") ? 3 : 0) + "\"");
  }
  impl::Subject subject;
  subject.name = name.substr(colon + 1);
  subject.entry = (name.starts_with("py:") ? "" : "py:") + name;
  subject.folder = fs::current_path();
  return subject;
}

std::string left_text(const impl::Greeting& greeting) {
  std::string text;
  for (const auto& [parameter, standard] : greeting.left) {
    text += fmt::format("  {:<24}is left at its default, {}\n", parameter, standard);
  }
  return text;
}

std::vector<impl::Subject> subjects_of(const SubjectFile& file) {
  try {
    return impl::parse_config(file.text, file.name, file.folder, reference::find_signature,
                              loss_names());
  } catch (const impl::ConfigError& error) {
    throw InputError(error.what());
  }
}

const LossSignature& whole_signature(const impl::Subject& subject) {
  return subject.own ? *subject.own : *reference::find_signature(subject.loss);
}

std::vector<impl::Omission> omissions_in(const std::vector<impl::Subject>& declared,
                                         const impl::Subject& subject) {
  std::vector<impl::Omission> all = omissions(subject, whole_signature(subject));
  std::erase_if(all, [&](const impl::Omission& omission) {
    return std::ranges::count(declared, omission.name, &impl::Subject::name) > 0;
  });
  return all;
}

std::vector<std::shared_ptr<const Brought>> bring(const SubjectFile& file,
                                                  const std::vector<std::string>& names) {
  const auto asked = [&](const std::string& name) {
    return names.empty() || std::ranges::find(names, name) != names.end();
  };
  const std::vector<impl::Subject> declared = subjects_of(file);
  std::vector<impl::Subject> subjects = declared;
  std::erase_if(subjects, [&](const impl::Subject& subject) {
    return !asked(subject.name) &&
           std::ranges::none_of(omissions_in(declared, subject), asked, &impl::Omission::name);
  });
  const std::vector<std::shared_ptr<impl::Session>> sessions = sessions_of(subjects, file.hosts);
  const std::size_t at_once = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::shared_ptr<const Brought>> all;
  for (std::size_t i = 0, begun = 0; i < subjects.size(); ++i) {
    for (; begun < std::min(sessions.size(), i + at_once); ++begun) {
      if (!file.greetings.contains(subjects[begun].name)) sessions[begun]->begin();
    }
    auto brought = load(file, subjects[i], sessions[i]);
    std::vector<std::shared_ptr<const Brought>> twins;
    for (const impl::Omission& omission : omissions_in(declared, subjects[i])) {
      if (!asked(omission.name)) continue;
      auto twin = load_twin(file, *brought, subjects[i], omission, !names.empty());
      if (twin) twins.push_back(std::move(twin));
    }
    if (asked(subjects[i].name)) all.push_back(std::move(brought));
    std::ranges::move(twins, std::back_inserter(all));
  }
  return all;
}

void load_here(SubjectFile& file, const std::vector<std::string>& names) {
  for (const auto& brought : bring(file, names)) {
    file.greetings.emplace(brought->implementation.name, brought->greeting);
    file.hosts.push_back(brought->session->host());
  }
}

SubjectFile read_subject_file(const std::string& path) {
  const std::string folder = fs::absolute(path).parent_path().string();
  // Records and workers are told of it in JSON.
  if (!corpora::is_utf8(path) || !corpora::is_utf8(folder))
    throw InputError(path + ": its name is not UTF-8");
  return {corpora::read_text(path), path, folder};
}

}  // namespace lossgate::ci
