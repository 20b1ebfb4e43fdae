// SPDX-License-Identifier: Apache-2.0
#include "ci/brought.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "ci/errors.h"
#include "ci/from_here.h"
#include "ci/own_loss.h"
#include "corpora/files.h"
#include "corpora/utf8.h"
#include "impl/external/config.h"
#include "reference/spec/masked.h"
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
  subject.tied = tied_options(brought->greeting, subject);
  brought->fixed = fix_options(signature, brought->greeting, subject);
  subject.without = optional_fields_not_taken(brought->greeting, signature);
  brought->loss.signature = narrowed(signature, subject);
  brought->implementation = brought_implementation(subject, brought->loss.signature, session);
  // What nobody splits leaves no question out.
  if (!signature.splittable) brought->implementation.contract.splits = true;
  brought->implementation.source = brought->greeting.source;
  brought->implementation.source.flags =
      "--config " + report::shell_word(from_here(file.name).string());
  brought->dtypes = subject.dtypes;
  brought->session = session;
  brought->subject = std::move(subject);
  return brought;
}

/// In as few processes as serve them.
std::vector<std::shared_ptr<impl::Session>> sessions_of(
    const std::vector<impl::Subject>& subjects) {
  std::vector<std::shared_ptr<impl::Host>> hosts;
  std::vector<std::shared_ptr<impl::Session>> sessions;
  for (const impl::Subject& subject : subjects) {
    auto host = std::ranges::find_if(hosts, [&](const auto& one) { return one->serves(subject); });
    if (host == hosts.end()) host = hosts.insert(host, std::make_shared<impl::Host>(subject));
    sessions.push_back(std::make_shared<impl::Session>(subject, whole_signature(subject), *host));
  }
  return sessions;
}

/// Whether the valid positions of each sequence have one value.
bool one_per_sequence(const Tensor& tensor, const std::vector<bool>& valid, std::int64_t tokens) {
  std::int64_t first = -1;  // valid position of the row
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (i % tokens == 0) first = -1;
    if (!valid[static_cast<std::size_t>(i)]) continue;
    if (first < 0) first = i;
    const double value = tensor.at(i), own = tensor.at(first);
    if (value != own && !(std::isnan(value) && std::isnan(own))) return false;
  }
  return true;
}

bool is_zero(const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.at(i) != 0.0) return false;
  }
  return true;
}

}  // namespace

std::vector<impl::Subject> subjects_of(const SubjectFile& file) {
  try {
    return impl::parse_config(file.text, file.name, file.folder, reference::find_signature);
  } catch (const impl::ConfigError& error) {
    throw InputError(error.what());
  }
}

const LossSignature& whole_signature(const impl::Subject& subject) {
  return subject.own ? *subject.own : *reference::find_signature(subject.loss);
}

std::vector<std::shared_ptr<const Brought>> bring(const SubjectFile& file,
                                                  const std::vector<std::string>& names) {
  std::vector<impl::Subject> subjects = subjects_of(file);
  std::erase_if(subjects, [&](const impl::Subject& subject) {
    return !names.empty() && std::ranges::find(names, subject.name) == names.end();
  });
  const std::vector<std::shared_ptr<impl::Session>> sessions = sessions_of(subjects);
  const std::size_t at_once = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::shared_ptr<const Brought>> all;
  for (std::size_t i = 0, begun = 0; i < subjects.size(); ++i) {
    for (; begun < std::min(sessions.size(), i + at_once); ++begun) {
      if (!file.greetings.contains(subjects[begun].name)) sessions[begun]->begin();
    }
    all.push_back(load(file, std::move(subjects[i]), sessions[i]));
  }
  return all;
}

SubjectFile read_subject_file(const std::string& path) {
  const std::string folder = fs::absolute(path).parent_path().string();
  // Records and workers are told of it in JSON.
  if (!corpora::is_utf8(path) || !corpora::is_utf8(folder))
    throw InputError(path + ": its name is not UTF-8");
  return {corpora::read_text(path), path, folder};
}

bool keeps_to_contract(const LossSignature& narrowed, const Case& c) {
  const std::vector<bool> valid = valid_positions(narrowed, c);
  const bool any = std::ranges::find(valid, true) != valid.end();
  if (any && !allows_empty_rows(narrowed, c.spec) &&
      has_empty_sequence(valid, c.shape[Axis::sequences])) {
    return false;
  }
  for (const auto& [axis, extent] : narrowed.pinned) {
    if (c.shape[axis] != extent) return false;
  }
  for (const auto& [axis, extent] : narrowed.longest) {
    if (c.shape[axis] > extent) return false;
  }
  for (const Field& field : narrowed.fields) {
    const Tensor& tensor = c.batch.at(field.name);
    if (field.absent && !is_zero(tensor)) return false;
    const bool any_float = field.dtypes.empty();
    if (!any_float && std::ranges::count(field.dtypes, tensor.dtype) == 0) return false;
    if (!is_float(tensor.dtype) || !is_positional(field) || valid.empty()) continue;
    const std::int64_t each = tensor.size() / static_cast<std::int64_t>(valid.size());
    if (field.one_per_sequence && each == 1 &&
        !one_per_sequence(tensor, valid, c.shape[Axis::tokens])) {
      return false;
    }
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double value = tensor.at(i);
      if (valid[static_cast<std::size_t>(i / each)]) {
        if (field.infinity != Infinity::legal && !std::isfinite(value)) return false;
      } else if (!field.one_per_sequence && !keeps_to(field.masked, field.quantity, value)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace lossgate::ci
