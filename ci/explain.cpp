// SPDX-License-Identifier: Apache-2.0
#include "ci/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "ci/brought.h"
#include "ci/dump_text.h"
#include "ci/dump_variants.h"
#include "ci/errors.h"
#include "ci/judgement.h"
#include "ci/selection.h"
#include "ci/shifting.h"
#include "ci/stored_case.h"
#include "ci/suggestion.h"
#include "ci/wrong_value.h"
#include "corpora/files.h"
#include "impl/external/process.h"
#include "properties/causes.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

using corpora::Dump;
using Word = Judgement::Word;

Dump read_dump(const std::string& path) {
  const auto bytes = corpora::read_file(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("lossgate-case")) {
    corpora::TensorFile file = corpora::read_tensors(bytes, path);
    if (corpora::is_dump(file)) return corpora::dump_of(std::move(file), path);
  }
  throw InputError(path +
                   ": explain reads what watch.py wrote, with what was observed; this is a case of "
                   "a loss: lossgate replay " +
                   path);
}

/// The function, and the lossgate.toml that has it, if one does.
struct Suspect {
  impl::Subject subject;
  std::optional<SubjectFile> file = {};
  std::shared_ptr<const Brought> twin = {};  ///< where it is one, which no file declares
};

/// The subject of the file whose callers leave fields out, if one has that name then.
std::optional<Suspect> twin_of(const SubjectFile& file, const std::string& named) {
  const std::vector<impl::Subject> declared = subjects_of(file);
  for (const impl::Subject& subject : declared) {
    const auto twins = omissions_in(declared, subject);
    if (std::ranges::find(twins, named, &impl::Omission::name) == twins.end()) continue;
    const auto twin = bring(file, {named}).at(0);
    return Suspect{twin->subject, file, twin};
  }
  return std::nullopt;
}

/// The one subject of the files, or that which was named.
Suspect configured(const ExplainOptions& options) {
  std::vector<Suspect> suspects;
  std::vector<std::string> names;
  for (const std::string& path : options.configs) {
    const SubjectFile file = read_subject_file(path);
    for (impl::Subject& subject : subjects_of(file)) {
      names.push_back(subject.name);
      suspects.push_back({std::move(subject), file});
    }
  }
  const std::string& named = options.implementation;
  for (Suspect& suspect : suspects) {
    if (named.empty() ? suspects.size() == 1 : suspect.subject.name == named) return suspect;
  }
  if (named.empty()) {
    throw InputError(
        fmt::format("say which function it was: --impl {}", fmt::join(names, " or --impl ")));
  }
  for (const std::string& path : options.configs) {
    if (auto twin = twin_of(read_subject_file(path), named)) return *std::move(twin);
  }
  throw InputError(unknown_name("subject", named, names));
}

Suspect suspect_of(const ExplainOptions& options) {
  if (!options.configs.empty()) return configured(options);
  impl::Subject subject = function_named(options.function);
  if (!options.interpreter.empty()) subject.interpreter = options.interpreter;
  if (!options.device.empty()) subject.device = options.device;
  return {std::move(subject)};
}

std::string versions_text(const impl::Greeting& greeting) {
  std::string text;
  for (const auto& [name, version] : greeting.versions) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, version);
  }
  return text;
}

/// Whether the place is in a field of numbers of tokens, and not in logits or what is made of them.
bool is_in_numbers(const Dump& dump, const Judgement& judgement) {
  const Tensor* field = dump.find_field(judgement.place.substr(0, judgement.place.find('[')));
  return field && field->extents.size() == 2;
}

/// What the fields hold at the token at fault; of rows of logits, the range. Beside logits a
/// function that shifts has the numbers of the next token.
std::string inputs_text(const Dump& dump, const Judgement& judgement, bool shifting) {
  const auto shape = positions_of(dump);
  const bool of_next = shifting && !is_in_numbers(dump, judgement);
  std::vector<std::string> texts;
  for (const auto& [name, tensor] : dump.fields) {
    const bool positional = shape.size() == 2 && tensor.extents.size() >= 2 &&
                            tensor.extents[0] == shape[0] && tensor.extents[1] == shape[1];
    if (!positional || judgement.row < 0 || judgement.token < 0) continue;
    const std::int64_t each = tensor.size() / (shape[0] * shape[1]);
    const bool next = of_next && tensor.extents.size() == 2 && judgement.token + 1 < shape[1];
    const std::int64_t token = judgement.token + (next ? 1 : 0);
    const std::int64_t begin = (judgement.row * shape[1] + token) * each;
    if (each == 1) {
      texts.push_back(name + (next ? " (next) " : " ") +
                      report::with_bits(tensor.dtype, tensor.element(begin)));
      continue;
    }
    double least = tensor.at(begin), most = least;
    for (std::int64_t i = begin; i < begin + each; ++i) {
      least = std::fmin(least, tensor.at(i));
      most = std::fmax(most, tensor.at(i));
    }
    texts.push_back(fmt::format("{} {} values from {} to {}", name, each, report::decimal(least),
                                report::decimal(most)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void print_line(const char* label, const std::string& text) {
  if (text.empty()) return;
  for (const std::string& part : report::wrapped(text, 100)) {
    fmt::print("  {:<10}{}\n", label, part);
    label = "";
  }
}

/// The first line of a statement that goes on in the next ones, as a whole: `f(x, g(...))`.
std::string statement_text(std::string line) {
  std::string open;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char letter = line[i];
    if (quote != 0) {
      if (letter == '\\') ++i;
      if (letter == quote) quote = 0;
    } else if (letter == '"' || letter == '\'') {
      quote = letter;
    } else if (letter == '#') {
      break;
    } else if (const auto at = std::string_view("([{").find(letter); at != std::string_view::npos) {
      open += ")]}"[at];
    } else if (!open.empty() && letter == open.back()) {
      open.pop_back();
    }
  }
  if (open.empty() || quote != 0) return line;
  line += "...";
  line.append(open.rbegin(), open.rend());
  return line;
}

/// What the function runs on now.
struct Here {
  std::string text;
  bool as_there = false;
};

std::string first_line(const Judgement& judgement, const Here& here) {
  if (judgement.word == Word::innocent) return "the loss is innocent (" + judgement.why + ")";
  if (judgement.word == Word::not_reproduced) {
    return here.as_there ? "not reproduced, though this is what it ran on"
                         : "not reproduced on this device";
  }
  const auto& line = judgement.line;
  const properties::Cause* cause = properties::find_cause(judgement.cause);
  return fmt::format("guilty ({}; {}; {}; {})",
                     line ? fmt::format("{}:{}: {}", line->source.file, line->source.line,
                                        statement_text(line->code))
                          : "no line of its own",
                     judgement.place.empty() ? "no single token" : judgement.place, judgement.cause,
                     cause && !cause->repair.empty() ? cause->repair : "compare with the formula");
}

void print(const Dump& dump, const Judgement& judgement, const Here& here, bool shifting) {
  fmt::print("{}\n", first_line(judgement, here));
  if (judgement.line) print_line("seen", judgement.line->text);
  if (const properties::Cause* cause = properties::find_cause(judgement.cause)) {
    print_line("cause", std::string(cause->statement));
  }
  print_line("because", judgement.because);
  print_line("inputs", inputs_text(dump, judgement, shifting));
  print_line("observed", observed_text(dump));
  if (!dump.whole.empty() && dump.rows.size() < static_cast<std::size_t>(dump.whole[0])) {
    print_line("kept", fmt::format("{} of {} rows", dump.rows.size(), dump.whole[0]));
  }
  print_line("there", run_text(dump));
  print_line("here", here.text);
  if (judgement.word == Word::not_reproduced) {
    print_line("next", std::string(here.as_there ? "nothing, if the function was repaired"
                                                 : "the same device and versions as there") +
                           "; or watch(rows=\"all\"), if another row had a part in it");
  }
}

/// With the function, in a process of its own; `here` becomes what it runs on.
Judgement judged(const Dump& dump, const Suspect& suspect, Here& here) {
  const auto& [subject, file, twin] = suspect;
  try {
    impl::Rerunner rerunner(subject, dump);
    here = {subject.device + ", " + versions_text(rerunner.greeting()),
            runs_as_there(dump, subject.device, rerunner.greeting())};
    return judge(
        dump, [&](const Dump& other, bool explain) { return rerunner.run(other, explain); },
        shifts(subject));
  } catch (const impl::SubjectError& error) {
    const std::string said = error.what();
    if (file || said.find("arguments.") == std::string::npos) throw InputError(said);
    throw InputError(said +
                     "; that is a line of a lossgate.toml, to be named by --config in place "
                     "of --fn: lossgate init writes one");
  } catch (const impl::ProcessEnded& error) {
    throw InputError(subject.name + " " + error.what());
  } catch (const impl::ProcessHung& error) {
    throw InputError(subject.name + " " + error.what());
  }
}

/// What is finite may be wrong: where the loss is one of the catalog, and its trainer known.
std::optional<Judgement> wrong(const Suspect& suspect, const std::string& file) {
  const auto brought =
      suspect.twin ? suspect.twin : bring(suspect.file.value(), {suspect.subject.name}).at(0);
  Selection selection;
  selection.brought = {brought};
  Case c = read_case(file, selection);
  if (!shifts(suspect.subject)) return judge_by_formula(*brought, std::move(c));
  const LossSignature& signature = whole_signature(suspect.subject);
  return judge_by_formula(*brought, paired_with_the_next(signature, std::move(c)));
}

/// What a lossgate.toml says of its subjects is said of a function by flags, and the other way
/// round.
void check_flags(const ExplainOptions& options) {
  if (options.configs.empty()) {
    if (!options.implementation.empty()) throw InputError("--impl names a subject of --config");
    return;
  }
  const std::pair<const char*, const std::string&> of_functions[] = {
      {"--fn", options.function}, {"--python", options.interpreter}, {"--device", options.device}};
  for (const auto& [flag, given] : of_functions) {
    if (given.empty()) continue;
    throw InputError(
        fmt::format("{} goes without --config, whose subjects say it themselves", flag));
  }
}

}  // namespace

int run_explain(const ExplainOptions& options) {
  check_flags(options);
  const Dump dump = read_dump(options.file);
  const bool asked = !options.function.empty() || !options.configs.empty();
  const bool finite = observed_finite(dump);
  if (!asked && !finite) {
    throw InputError(options.file +
                     ": say which function it was: --fn FILE.py:FUNCTION, or --config "
                     "lossgate.toml");
  }
  Judgement judgement;
  Here here;
  bool shifting = false;
  if (asked && !finite) {
    const Suspect suspect = suspect_of(options);
    shifting = shifts(suspect.subject);
    judgement = judged(dump, suspect, here);
  } else {
    judgement = judge(dump, nullptr);
    if (!options.configs.empty() && reference::find_signature(dump.loss)) {
      const Suspect suspect = suspect_of(options);
      shifting = shifts(suspect.subject);
      judgement = wrong(suspect, options.file).value_or(judgement);
    }
  }
  print(dump, judgement, here, shifting);
  return static_cast<int>(judgement.word == Word::guilty ? Exit::red : Exit::green);
}

}  // namespace lossgate::ci
