// SPDX-License-Identifier: Apache-2.0
#include "ci/args.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <thread>

#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/file_flags.h"
#include "ci/flags.h"
#include "ci/fuzz_flags.h"
#include "ci/fuzz_worker.h"
#include "ci/gate.h"
#include "ci/identify.h"
#include "ci/init.h"
#include "ci/subjects.h"
#include "ci/suggestion.h"
#include "ci/verbs.h"
#include "ci/worker.h"
#include "corpora/format_error.h"
#include "impl/external/c/conversation.h"
#include "report/record_file.h"

namespace lossgate::ci {
namespace {

/// What the flags of all verbs are read into.
struct Flags {
  GateOptions gate;
  FileFlags files;
  BaselineOptions baseline;
  ReportOptions report;
  IdentifyOptions identify;
  InitOptions init;
  FuzzFlags fuzz;
  std::string list, describe, profile = "hostile", fail_on = "rare";
  std::vector<std::string> corpora, configs;
  bool quick = false;
};

void add_gate(CLI::App& verb, Flags& flags) {
  constexpr std::uint64_t kMostCases = 1'000'000'000;
  GateOptions& gate = flags.gate;
  gate.pool.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  verb.add_option("--profile", flags.profile, "What kind of cases: benign, hostile, soak");
  verb.add_option("--seed", gate.plan.seed, "Where all draws come from")
      ->check(whole(0, std::numeric_limits<std::uint64_t>::max()))
      ->type_name("N");
  verb.add_option(
          "--cases", gate.plan.cases,
          "Cases drawn for each loss and dtype, 200 unless said; from 100 on, long ones besides")
      ->check(whole(0, kMostCases))
      ->type_name("N");
  verb.add_option("--jobs", gate.pool.jobs,
                  "Worker processes, one per core unless said; 0 runs in this process")
      ->check(whole(0, 1024))
      ->type_name("N");
  verb.add_option("--timeout", gate.pool.timeout_s,
                  "Seconds for one call of an implementation; a lossgate.toml says its own")
      ->check(CLI::Range(0.1, 86400.0).description(""))
      ->type_name("SECONDS");
  verb.add_option("--out", gate.out,
                  "Folder for run.json, report.html, the other views and the findings' cases");
  add_names(verb, "--loss", gate.plan.filters.losses, "Only these losses");
  add_configs(verb, flags.configs);
  add_filters(verb, gate.plan.filters);
  add_names(verb, "--dtype", gate.plan.filters.dtypes, "Only these dtypes: f64, f32, f16, bf16");
  verb.add_flag("--hardening", gate.plan.filters.hardening, "Ask the hardening properties as well");
  verb.add_flag_callback(
      "--no-causes", [&gate] { gate.plan.causes = false; },
      "Verdicts alone: look for no cause of a finding, make no case simple");
  add_names(verb, "--corpus", flags.corpora,
            "Folders of .case files, instead of regressions and corpora/seeds", "FOLDER");
  verb.add_option("--fail-on", flags.fail_on,
                  "The rarest findings that are red: ordinary, rare, adversarial");
  add_accepted(verb, gate.waivers, gate.baseline);
}

int gate(Flags& flags) {
  flags.gate.plan.profile = parsed("profile", flags.profile, fuzz::parse_profile(flags.profile),
                                   names_of(fuzz::kAllProfiles));
  flags.gate.fail_on = parsed("grade", flags.fail_on, properties::parse_grade(flags.fail_on),
                              names_of(properties::kAllGrades));
  flags.gate.plan.filters.subjects = subject_files_or_those_here(flags.configs);
  flags.gate.plan.corpora = flags.corpora.empty() ? standard_corpora() : flags.corpora;
  return run_gate(flags.gate);
}

void add_quick(CLI::App& verb, bool& quick) {
  verb.add_flag("--quick", quick, "Do not try what more the function keeps");
}

void add_identify(CLI::App& verb, IdentifyOptions& identify) {
  verb.add_option("function", identify.entry, "FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION")
      ->required();
  verb.add_option("--python", identify.interpreter, "An interpreter that has torch");
  verb.add_option("--out", identify.out, "The file to write");
  add_names(verb, "--loss", identify.losses, "Only these losses");
  verb.add_flag("--overwrite", identify.overwrite, "Even if there is one");
  add_quick(verb, identify.quick);
}

void add_report(CLI::App& verb, ReportOptions& report) {
  verb.add_option("runs", report.runs, "run.json files or their folders, the newest last")
      ->required();
  verb.add_option("--benchmarks", report.benchmarks,
                  "JSON of Google Benchmark, benchmarks.json beside a record unless said");
  verb.add_option("--out", report.out, "Folder to write to, that of the last run unless said");
}

/// The command as CLI11 sees it; `chosen` becomes what its verb does.
void describe_command(CLI::App& app, Flags& flags, std::function<int()>& chosen) {
  app.set_version_flag("--version", version() + " (" + commit() + ")");
  app.require_subcommand(1);
  // What is said later wins, so that a flag file can be overridden.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.footer(
      "Exit status: 0 nothing red; 1 something red, or a faulty implementation survived; 2 flags "
      "or\n"
      "input; 3 the harness or the machine failed; 130 interrupted. @FILE stands for the flags in\n"
      "FILE, such as @ci/profiles/gate.args.");
  const auto verb = [&](const char* name, const char* text, std::function<int()> action) {
    CLI::App* added = app.add_subcommand(name, text);
    added->callback([&chosen, action = std::move(action)] { chosen = action; });
    return added;
  };
  add_gate(
      *verb("gate", "Check implementations on stored and drawn cases", [&] { return gate(flags); }),
      flags);
  add_fuzz(*verb("fuzz", "Search implementations until a budget is spent",
                 [&] { return run_fuzz(fuzz_options(flags.fuzz)); }),
           flags.fuzz);
  MergeOptions& merge = flags.fuzz.merge;
  add_merge(*verb("merge", "Put the folders of several campaigns together",
                  [&] { return run_merge(merge); }),
            merge);
  add_file_verbs(verb, flags.files);
  verb("list", "List losses, implementations, properties or profiles", [&] {
    return run_list(flags.list);
  })->add_option("what", flags.list, "losses, implementations, properties or profiles");
  verb("describe", "Explain a loss, a property, a cause, a verdict, a rule or an implementation",
       [&] { return run_describe(flags.describe); })
      ->add_option("name", flags.describe, "Such as grpo, finite_backward or B4")
      ->required();
  add_identify(
      *verb("identify",
            "Find out which loss or operation a Python function is, and write lossgate.toml",
            [&] { return run_identify(flags.identify); }),
      flags.identify);
  CLI::App* check = verb("check", "Show how the subjects of lossgate.toml will be asked", [&] {
    if (flags.configs.empty()) flags.configs = {"lossgate.toml"};
    return run_check(flags.configs, flags.quick);
  });
  add_configs(*check, flags.configs);
  add_quick(*check, flags.quick);
  CLI::App* init = verb("init", "Write a lossgate.toml and a function to fill in",
                        [&] { return run_init(flags.init); });
  init->add_option("loss", flags.init.loss, "Such as grpo")->required();
  init->add_option("--folder", flags.init.folder, "Where to write");
  CLI::App* baseline = verb("baseline", "Accept the findings of a run as they are",
                            [&] { return run_baseline(flags.baseline); });
  baseline->add_option("record", flags.baseline.record,
                       "The run.json, or its folder; run/run.json unless said");
  baseline->add_option("--out", flags.baseline.out,
                       "File to write, for --baseline of gate and fuzz");
  baseline->add_flag("--overwrite", flags.baseline.overwrite, "Even if there is one");
  add_report(*verb("report", "Show runs as a page, and as SARIF, JUnit XML and Markdown",
                   [&] { return run_report(flags.report); }),
             flags.report);
  verb("worker", "", run_worker)->group("");            // for gate alone
  verb("fuzz-worker", "", run_fuzz_worker)->group("");  // for fuzz alone
  verb("library-worker", "", impl::serve_library)->group("");
}

/// Whether the message has the word, and not only within another.
bool speaks_of(std::string_view message, std::string_view word) {
  constexpr std::string_view kBefore = " '(", kAfter = " '),;:";
  for (auto at = message.find(word); at != message.npos; at = message.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || kBefore.find(message[at - 1]) != kBefore.npos;
    const bool ends = end == message.size() || kAfter.find(message[end]) != kAfter.npos;
    if (begins && ends) return true;
  }
  return false;
}

/// "ci/profiles/gate.args:3: " where the message speaks of a word from there: of a flag, which
/// counts as it was said last, or else of what is no flag's number.
std::string origin_of(const std::vector<Word>& words, std::string_view message) {
  const auto told = [](const Word& word) { return word.origin.empty() ? "" : word.origin + ": "; };
  for (const bool flags : {true, false}) {
    for (auto word = words.rbegin(); word != words.rend(); ++word) {
      const std::string_view text = word->text;
      const bool number = text.find_first_not_of("0123456789.") == text.npos;
      if (text.starts_with("--") != flags || number) continue;
      if (speaks_of(message, flags ? text.substr(0, text.find('=')) : text)) return told(*word);
    }
  }
  return "";
}

/// A verb that is misspelt is told those that there are; processes of our own are in no group.
void check_verb(const CLI::App& app, const Word& word) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) {
    if (verb->get_name() == word.text) return;
    if (!verb->get_group().empty()) verbs.push_back(verb->get_name());
  }
  const std::string origin = word.origin.empty() ? "" : word.origin + ": ";
  throw InputError(origin + unknown_name("command", word.text, verbs));
}

/// `help`, and `help VERB`, as flags.
std::vector<Word> with_help_flag(std::vector<Word> words) {
  if (words.empty() || words[0].text != "help") return words;
  while (words.size() > 1 && words[1].text == "help") words.erase(words.begin());
  words.erase(words.begin());
  words.insert(words.begin() + std::min<std::ptrdiff_t>(1, std::ssize(words)), {"--help", ""});
  return words;
}

/// What cannot be read, in one line.
std::string complaint_about(const CLI::App& app, const CLI::ParseError& error) {
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  const std::vector<std::string> words = app.remaining(true);
  if (!is_extra || verbs.empty() || words.empty()) return error.what();
  return unexpected_text(*verbs[0], words);
}

int parse_and_run(const std::vector<Word>& words) {
  Flags flags;
  std::function<int()> chosen;
  CLI::App app(
      "Finds the inputs on which a loss and its gradient stop meaning what the formula says",
      "lossgate");
  describe_command(app, flags, chosen);
  if (!words.empty() && !words[0].text.starts_with("-")) check_verb(app, words[0]);
  std::vector<std::string> reversed;
  for (auto word = words.rbegin(); word != words.rend(); ++word) reversed.push_back(word->text);
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // help or version
    throw InputError(origin_of(words, error.what()) + complaint_about(app, error));
  }
  try {
    return chosen();
  } catch (const InputError& error) {
    throw InputError(origin_of(words, error.what()) + error.what());
  }
}

int complain(const char* what, Exit status) {
  fmt::print(stderr, "lossgate: {}\n", what);
  return static_cast<int>(status);
}

}  // namespace

int run_command(const std::vector<std::string>& words) {
  try {
    return parse_and_run(with_help_flag(expanded(words)));
  } catch (const InputError& error) {
    return complain(error.what(), Exit::usage);
  } catch (const corpora::FormatError& error) {
    return complain(error.what(), Exit::usage);
  } catch (const report::RecordError& error) {
    return complain(error.what(), Exit::usage);
  } catch (const std::exception& error) {
    return complain(error.what(), Exit::broken);
  }
}

}  // namespace lossgate::ci
