// SPDX-License-Identifier: Apache-2.0
#include "ci/config_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "ci/toml_text.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

/// What the words for micro-batches would mean: "right under token_weighted, not under sum, mean";
/// and beside which line for an empty batch, where that is said. Each is asked of all reductions,
/// of which one may need another word than the next.
std::string splits_text(const std::vector<Promise>& promises, bool says_empty, bool of_several) {
  std::string kept, others, beside, evened;
  for (const Promise& promise : promises) {
    if (!promise.of_trainer || promise.cases == 0) continue;
    if (says_empty && !promise.beside.empty())
      beside = ", where " + promise.beside + " stands below";
    const std::string word = promise.line.substr(promise.line.find('"'));
    if (!promise.needs.empty()) {  // kept, where nothing else is
      evened = fmt::format("; under {} with {} below it is right only if {}", word, promise.needs,
                           promise.price);
      continue;
    }
    std::string& list = promise.kept() ? kept : others;
    list += (list.empty() ? "" : ", ") + word;
  }
  if (kept.empty() && others.empty()) return "";
  if (others.empty()) return "; it is right under " + kept + beside;
  const bool none_of_all = of_several && kept.empty();
  return "; it is " + (kept.empty() ? "wrong under " : "right under " + kept + ", not under ") +
         others +
         (none_of_all ? " with all of its reductions, of which one alone may be right" : "") +
         beside + evened;
}

/// The lines of a table that the function keeps, and those that it does not as comments.
std::string lines_of(const std::vector<Promise>& promises, std::string_view table) {
  std::string text;
  for (const Promise& promise : promises) {
    if (promise.table != table || promise.of_trainer || promise.cases == 0) continue;
    if (promise.kept()) {
      text +=
          fmt::format("{}  # kept on {} cases: {}\n", promise.line, promise.cases, promise.asked);
      continue;
    }
    text += toml_comment(
        fmt::format("{}  # not kept: {}", promise.line, fmt::join(promise.failing, ", ")));
    text += '\n';
  }
  return text;
}

}  // namespace

std::string options_text(const OptionValues& options, const char* equals, bool quoted) {
  std::string text;
  for (const auto& [name, value] : options) {
    text += (text.empty() ? "" : ", ") + name + equals +
            (quoted ? toml_value(value) : report::option_text(value));
  }
  return text;
}

std::string reductions_text(const std::vector<Reduction>& reductions, const char* quote) {
  std::string text;
  for (const Reduction reduction : reductions) {
    text += (text.empty() ? "" : ", ") + (quote + std::string(name(reduction)) + quote);
  }
  return text;
}

std::string config_text(const IdentifyOptions& options, const Recognition& match,
                        const std::vector<Promise>& promises,
                        const std::vector<Proposal>& of_trainer) {
  const impl::Subject& subject = match.subject;
  std::string text = toml_comment(fmt::format("Written by `lossgate identify {}{}`.",
                                              options.quick ? "--quick " : "", options.entry));
  text += fmt::format("\n[[subject]]\nname = {}\nloss = {}\nentry = {}\ninterpreter = {}\n",
                      toml_string(subject.name), toml_string(match.loss->signature.id),
                      toml_string(subject.entry), toml_string(options.interpreter));
  // Paths begin where the file lies, and those of the command line here.
  const fs::path here = fs::current_path(), there = fs::absolute(options.out).parent_path();
  if (!fs::equivalent(here, there)) {
    text += "folder = " + toml_string(fs::relative(here, there).string()) + '\n';
  }
  std::string axes;
  for (const auto& [axis, extent] : subject.axes) {
    axes += fmt::format("{}{} = {}", axes.empty() ? "" : ", ", name(axis), extent);
  }
  if (subject.seconds != impl::Subject().seconds) {
    text += fmt::format("seconds = {}  # for one call: the first took long\n", subject.seconds);
  }
  if (subject.per_token) text += "returns = \"per_token\"\n";
  if (subject.weighed_outputs) {
    text += fmt::format("returns = \"outputs\"\noutputs = [\"{}\"]\n",
                        fmt::join(subject.outputs, "\", \""));
  }
  if (!subject.arguments.empty()) text += "arguments = " + toml_table(subject.arguments) + '\n';
  const LossSignature& loss = match.loss->signature;
  if (!loss.reductions.empty())
    text += "reductions = [" + reductions_text(subject.reductions, "\"") + "]\n";
  if (!subject.scaled_by.empty()) {
    text +=
        fmt::format("scale = \"{0}^2\"  # it returns {0}^2 times the formula\n", subject.scaled_by);
  }
  if (!axes.empty()) text += "axes = { " + axes + " }\n";
  for (const std::string& fault : match.faults) text += toml_comment("wrong: " + fault) + '\n';
  if (!match.let_go.empty()) {
    OptionValues all = match.let_go;
    all.insert(all.end(), subject.options.begin(), subject.options.end());
    text += fmt::format("# options = {{ {} }}  # right only if nobody calls it otherwise\n",
                        options_text(all, " = ", true));
  }
  for (const auto& [stays, other, value] : match.choices) {
    OptionValues all = subject.options;
    std::erase_if(all, [&](const auto& option) { return option.first == stays; });
    all.emplace_back(other, value);
    text +=
        fmt::format("# options = {{ {} }}  # in place of the options below: asks {} everywhere\n",
                    options_text(all, " = ", true), stays);
  }
  if (!subject.options.empty()) {
    text += "options = { " + options_text(subject.options, " = ", true) + " }\n";
  }
  const bool says_empty = std::ranges::any_of(of_trainer, [](const Proposal& proposal) {
    return proposal.line.find(" empty = ") != std::string::npos;
  });
  const bool told = !match.greeting.facts.empty() || subject.per_token || subject.weighed_outputs;
  if (loss.splittable) {
    text += fmt::format(
        "micro_batches = \"{}\"  # what the trainer does with the losses of "
        "micro-batches: sum, mean, token_weighted, none (not asked){}\n",
        told ? "sum" : "none", splits_text(promises, says_empty, subject.reductions.size() > 1));
  }
  text += lines_of(promises, kSubjectTable);
  std::string contract = lines_of(promises, kContractTable);
  const auto deny = [&](bool kept, const std::string& key) {  // once, whatever was promised
    const bool written = ("\n" + contract).find("\n" + key) != std::string::npos;
    if (!kept && !written) contract += key + " = false\n";
  };
  deny(subject.contract.non_contiguous, "non_contiguous");
  deny(subject.contract.scattered_mask, "scattered_mask");
  deny(subject.contract.masked_outputs, "masked_outputs");
  deny(subject.contract.uneven_groups, "uneven_groups");
  if (subject.contract.empty_rows == EmptyRows::counted) contract += "empty_rows = \"counted\"\n";
  const auto comment = [&](const std::string& line, const std::string& right) {
    contract += toml_comment(fmt::format("{}  # right only if {}", line, right)) + '\n';
  };
  for (const Proposal& proposal : of_trainer) {  // its to say
    for (const std::string& line : proposal.lines()) {
      comment(line.substr(kContractTable.size() + 1), proposal.right);
    }
  }
  for (const Promise& promise : promises) {
    if (!promise.needs.empty()) comment(promise.needs, promise.price);
  }
  return contract.empty() ? text : text + std::string(kContractTable) + "\n" + contract;
}

}  // namespace lossgate::ci
