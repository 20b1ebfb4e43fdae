// SPDX-License-Identifier: Apache-2.0
#include "ci/identify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "ci/asked_under.h"
#include "ci/brought.h"
#include "ci/candidates.h"
#include "ci/catalog_search.h"
#include "ci/config_text.h"
#include "ci/drawn_ties.h"
#include "ci/errors.h"
#include "ci/nearest_cause.h"
#include "ci/promises.h"
#include "ci/proposal.h"
#include "ci/recognition.h"
#include "ci/selection.h"
#include "ci/suggestion.h"
#include "ci/variant.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

void print_function(const impl::Greeting& greeting, const impl::Subject& subject) {
  fmt::print("{}:{}: {}\n", greeting.source.file, greeting.source.line, greeting.code);
  for (const auto& [parameter, source] : greeting.arguments) {
    fmt::print("  {:<24}<- {}\n", parameter, source);
  }
  fmt::print("{}", left_text(greeting));
  for (const auto& [option, followed] : subject.tied) {
    fmt::print("  {} follows {}: one parameter stands for both\n", option, followed);
  }
}

/// Whether two messages differ in their numbers and names alone: where each was raised is at its
/// end.
bool alike(const std::string& one, const std::string& other) {
  const auto kind = [](const std::string& text) { return text.substr(0, text.find(':')); };
  const auto place = [](const std::string& text) {
    return text.substr(std::min(text.rfind(" at "), text.size()));
  };
  return kind(one) == kind(other) && place(one) == place(other);
}

/// As much of them as somebody may have typed.
OptionValues shortened(OptionValues options) {
  for (auto& [name, value] : options) {
    if (double* number = std::get_if<double>(&value)) *number = to_digits(*number, 6);
  }
  return options;
}

void print_choices(const OptionValues& options, const std::vector<std::string>& remarks) {
  if (!options.empty()) fmt::print("  with {}\n", options_text(shortened(options), " ", false));
  for (const std::string& remark : remarks) fmt::print("  {}\n", remark);
}

void print_nearest(const Recognition& nearest) {
  const Likeness& likeness = nearest.likeness;
  const std::string& id = nearest.loss->signature.id;
  const bool reduces = !nearest.loss->signature.reductions.empty();
  const std::string name =
      reduces ? fmt::format("{}({})", id, lossgate::name(likeness.candidate.reduction)) : id;
  if (likeness.by_positions) {
    fmt::print(
        "  = {}{} x valid / all positions on all cases: it divides by all positions, padding "
        "included\n",
        std::fabs(likeness.factor - 1.0) < 1e-6 ? "" : fmt::format("{:.6g} x ", likeness.factor),
        name);
  } else if (std::fabs(likeness.factor + 1.0) < 1e-6) {
    fmt::print("  = -1 x {} on all {} cases: the sign is the other\n", name, likeness.cases);
  } else if (likeness.factor != 0.0) {
    fmt::print("  = {:.6g} x {} on all {} cases: a constant factor, or another divisor\n",
               likeness.factor, name, likeness.cases);
  } else {
    fmt::print("  nearest {}: equal on {} of {} cases\n", name, likeness.equal, likeness.cases);
  }
  print_choices(likeness.candidate.options, nearest.remarks);
}

/// What raised the same, whatever it was asked as, is said once.
void print_all_nearest(const std::vector<Recognition>& found) {
  std::vector<std::pair<std::string, std::string>> refusals;  // and the losses
  for (const Recognition& nearest : found) {
    if (nearest.likeness.cases > 0) {
      print_nearest(nearest);
      continue;
    }
    const auto same = [&](const auto& known) { return alike(known.first, nearest.refusal); };
    const auto known = std::ranges::find_if(refusals, same);
    const std::string& id = nearest.loss->signature.id;
    if (known == refusals.end()) {
      refusals.emplace_back(nearest.refusal, id);
    } else {
      known->second += ", " + id;
    }
  }
  for (const auto& [refusal, losses] : refusals) {
    fmt::print("  no answer as {}: {}\n", losses, refusal);
  }
}

/// What a gate would say of the nearest one, where nothing was said that explains it.
void print_cause(const IdentifyOptions& options, const Recognition& nearest, const Hosts& hosts) {
  const Likeness& likeness = nearest.likeness;
  if (likeness.cases == 0 || likeness.factor != 0.0 || !nearest.remarks.empty()) return;
  if (const auto found = cause_of_nearest(options, nearest, hosts)) {
    fmt::print("  as {} a gate finds in it: {}: {}\n", nearest.loss->signature.id, found->cause,
               found->because);
  }
}

/// How to go on where no file can be written: which loss it should be is not for a guess.
void print_ways_on(const Recognition& nearest) {
  const std::string& id = nearest.loss->signature.id;
  if (nearest.likeness.cases > 0) {
    fmt::print(
        "next: where it should be {0}, lossgate init {0} begins a file that says so: a gate "
        "shows where it is not\n",
        id);
  } else {
    fmt::print(
        "next: mend that and identify it again; or lossgate init {} begins a file, and a function "
        "in which yours is called as it wants to be\n",
        id);
  }
  fmt::print(
      "next: where it is a loss of its own, signature = \"FILE.toml\" in place of loss names its "
      "fields, and a gate asks what needs no formula: impl/external/README.md\n");
}

void print_match(const Recognition& match) {
  const std::string& id = match.loss->signature.id;
  const int equal = match.likeness.equal, cases = match.likeness.cases;
  if (match.loss->signature.reductions.empty()) {
    fmt::print("  = {}: all outputs equal on {} of {} cases\n", id, equal, cases);
  } else {
    fmt::print("  = {}({}): loss and gradients equal on {} of {} cases\n", id,
               reductions_text(match.subject.reductions, ""), equal, cases);
  }
  print_choices(match.likeness.candidate.options, match.remarks);
}

void write_config(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw MachineError(path + " cannot be written");
}

/// What the function keeps beyond what a file says that declares the least, and what of that it
/// does not keep on cases such as a gate draws.
struct Tried {
  Failures failures;
  std::vector<Proposal> of_trainer;  ///< of a batch in which nothing counts, and of parts
  std::vector<Promise> promises;
};

Tried try_config(const std::string& config, bool quick, const Hosts& hosts) {
  Tried tried;
  try {
    SubjectFile file = read_subject_file(config);
    file.hosts = hosts;
    const auto brought = bring(file, {}).front();
    Progress progress(kTrials, 0);
    tried.failures = failures({*brought, brought->subject}, brought->dtypes.front(), progress);
    progress.finish();
    for (auto propose : {propose_empty, propose_even_parts}) {
      if (auto found = propose(*brought, tried.failures.all)) {
        tried.of_trainer.push_back(*std::move(found));
      }
    }
    if (!quick) tried.promises = try_promises(*brought, tried.failures);
  } catch (const ImplementationThrew&) {  // a gate shows it
  } catch (const impl::SubjectError&) {
  }
  return tried;
}

/// What was found on plain cases is a fault of the function on others, or not what it is: who reads
/// that a gate is red should have read so here.
void print_failures(const Failures& failures, const OptionValues& settled) {
  if (failures.all.empty()) return;
  fmt::print("  but not on all of {} cases such as a gate draws:\n", failures.cases);
  for (const Failure& failure : failures.all) fmt::print("    {}\n", failure.text());
  if (settled.empty()) return;
  fmt::print("    either it is wrong there, or something else than {}\n",
             options_text(settled, " ", false));
}

void print_promises(const std::vector<Promise>& promises) {
  for (const Promise& promise : promises) {
    if (!promise.needs.empty()) {
      fmt::print("  splits are right under {} alone, with {}\n    right only if {}\n", promise.line,
                 promise.needs, promise.price);
    }
    if (promise.of_trainer || promise.cases == 0) continue;
    fmt::print("  {} {}{}\n", promise.kept() ? "keeps" : "does not keep", promise.line,
               promise.kept() ? "" : fmt::format(": {}", fmt::join(promise.failing, ", ")));
  }
}

/// No contract makes right what is wrong.
void print_next(const std::string& config, bool wrong, bool doubted) {
  const bool check = doubted && !wrong;
  const char* why = wrong   ? ", which is red"
                    : check ? ", which tries what a contract could say"
                            : "";
  fmt::print("wrote {0}; next: lossgate {1} --config {0}{2}\n", config, check ? "check" : "gate",
             why);
}

}  // namespace

int run_identify(const IdentifyOptions& options) {
  for (const std::string& loss : options.losses) {
    const auto known = loss_names();
    if (std::ranges::find(known, loss) == known.end()) {
      throw InputError(unknown_name("loss", loss, known));
    }
  }
  const fs::path folder = fs::absolute(options.out).parent_path();
  if (!fs::is_directory(folder)) {
    throw InputError(fmt::format("--out {}: there is no folder {}", options.out, folder.string()));
  }
  if (!options.overwrite && fs::exists(options.out)) {
    throw InputError(options.out + " is there already; name another with --out, or --overwrite");
  }
  auto [found, complaint, hosts] = search_catalog(options);
  if (found.empty()) throw InputError(complaint);
  print_function(found.front().greeting, found.front().subject);
  if (!found.front().whole()) {
    fmt::print("no loss of the catalog, as it stands\n");
    print_all_nearest(found);
    print_cause(options, found.front(), hosts);
    print_ways_on(found.front());
    return static_cast<int>(Exit::red);
  }
  found.front() = settled_by_drawn_cases(options, std::move(found.front()), hosts);
  print_match(found.front());
  write_config(options.out, config_text(options, found.front(), {}, {}));
  const Tried tried = try_config(options.out, options.quick, hosts);
  print_failures(tried.failures, shortened(found.front().likeness.candidate.options));
  for (const Proposal& proposal : tried.of_trainer) print_proposal(proposal);
  print_promises(tried.promises);
  write_config(options.out, config_text(options, found.front(), tried.promises, tried.of_trainer));
  const auto& faults = found.front().faults;
  for (const std::string& fault : faults) fmt::print("wrong: {}\n", fault);
  print_next(options.out, !faults.empty(), !tried.failures.all.empty());
  return static_cast<int>(faults.empty() ? Exit::green : Exit::red);
}

}  // namespace lossgate::ci
