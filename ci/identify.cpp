// SPDX-License-Identifier: Apache-2.0
#include "ci/identify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "ci/candidates.h"
#include "ci/errors.h"
#include "ci/selection.h"
#include "ci/suggestion.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

impl::Subject subject_of(const IdentifyOptions& options) {
  const std::size_t colon = options.entry.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == options.entry.size()) {
    throw InputError(options.entry + ": name a function as FILE.py:FUNCTION or " +
                     "PACKAGE.MODULE:FUNCTION");
  }
  impl::Subject subject;
  subject.name = options.entry.substr(colon + 1);
  subject.entry = (options.entry.starts_with("py:") ? "" : "py:") + options.entry;
  subject.interpreter = options.interpreter;
  subject.folder = fs::current_path();
  return subject;
}

std::string value_text(const OptionValue& value, bool quoted) {
  const std::string quote = quoted ? "\"" : "";
  if (const double* number = std::get_if<double>(&value)) return report::decimal(*number);
  if (const std::string* word = std::get_if<std::string>(&value)) return quote + *word + quote;
  return quote + "none" + quote;
}

std::string options_text(const Candidate& candidate, const char* equals, bool quoted) {
  std::string text;
  for (const auto& [name, value] : candidate.options) {
    text += (text.empty() ? "" : ", ") + name + equals + value_text(value, quoted);
  }
  return text;
}

std::string name_of(const Candidate& candidate) {
  return fmt::format("{}({})", candidate.loss->signature.id, name(candidate.reduction));
}

/// A loss whose every needed parameter has a source, and how its candidates compare.
struct Match {
  const reference::Loss* loss;
  impl::Greeting greeting;
  std::vector<Likeness> likenesses;

  int equal() const { return likenesses.empty() ? 0 : likenesses.front().equal; }
  bool whole() const { return equal() > 0 && equal() == likenesses.front().cases; }
};

/// In f64, where a slip in the formula stands far above rounding, else in f32.
std::vector<Likeness> liken(const reference::Loss& loss, const impl::Subject& subject,
                            const std::shared_ptr<impl::Session>& session) {
  const auto all = candidates(loss, session->greeting());
  auto likenesses = compare(all, subject, session, Dtype::f64);
  const bool answered = !likenesses.empty() && likenesses.front().equal > 0;
  return answered ? likenesses : compare(all, subject, session, Dtype::f32);
}

std::vector<Match> matches_of(const IdentifyOptions& options, std::string& complaint) {
  const impl::Subject subject = subject_of(options);
  std::vector<Match> matches;
  std::shared_ptr<impl::Session> session;
  for (const reference::Loss& loss : reference::catalog()) {
    const auto& reductions = loss.signature.reductions;
    const bool wanted =
        options.losses.empty() ||
        std::ranges::find(options.losses, loss.signature.id) != options.losses.end();
    if (!wanted || reductions.empty() || reductions.front() == Reduction::none) continue;
    if (!session) {
      session = std::make_shared<impl::Session>(subject, loss.signature);
    } else {
      session->become(subject, loss.signature);
    }
    try {
      impl::Subject asked = subject;
      asked.loss = loss.signature.id;
      const impl::Greeting greeting = session->greeting();
      matches.push_back({&loss, greeting, liken(loss, asked, session)});
    } catch (const impl::SubjectError& error) {
      complaint = error.what();  // its parameters are not those of this loss, or it is not there
    } catch (const impl::ProcessEnded& error) {
      complaint = std::string("the function ") + error.what();
    }
  }
  const auto rank = [](const Match& match) { return std::pair(-match.equal(), match.loss); };
  std::ranges::sort(matches, {}, rank);
  return matches;
}

void print_function(const impl::Greeting& greeting) {
  fmt::print("{}:{}: {}\n", greeting.source.file, greeting.source.line, greeting.code);
  for (const auto& [parameter, source] : greeting.arguments) {
    fmt::print("  {:<24}<- {}\n", parameter, source);
  }
}

void print_nearest(const Match& match) {
  const Likeness& nearest = match.likenesses.front();
  const std::string name = name_of(nearest.candidate);
  if (nearest.by_positions) {
    fmt::print(
        "  = {:.6g} x {} x valid / all positions on all cases: it divides by all positions, "
        "padding included\n",
        nearest.factor, name);
  } else if (nearest.factor != 0.0) {
    fmt::print("  = {:.6g} x {} on all {} cases: a constant factor, or another divisor\n",
               nearest.factor, name, nearest.cases);
  } else {
    fmt::print("  nearest {}: equal on {} of {} cases\n", name, nearest.equal, nearest.cases);
  }
  if (!nearest.candidate.options.empty()) {
    fmt::print("  with {}\n", options_text(nearest.candidate, " ", false));
  }
}

void print_match(const Match& match) {
  const Likeness& best = match.likenesses.front();
  fmt::print("  = {}: loss and gradients equal on {} of {} cases\n", name_of(best.candidate),
             best.equal, best.cases);
  if (!best.candidate.options.empty()) {
    fmt::print("  with {}\n", options_text(best.candidate, " ", false));
  }
  const auto also = std::ranges::count_if(match.likenesses, [&](const Likeness& other) {
    return other.equal == best.equal && other.hostile == best.hostile;
  });
  if (also > 1) {
    fmt::print("  {} other choices are equal on these cases; the plainest is taken\n", also - 1);
  }
}

std::string config_text(const IdentifyOptions& options, const Match& match) {
  const Likeness& best = match.likenesses.front();
  const impl::Subject subject = subject_of(options);
  std::string text = "# Written by `lossgate identify " + options.entry + "`.\n[[subject]]\n";
  text += fmt::format("name = \"{}\"\nloss = \"{}\"\nentry = \"{}\"\ninterpreter = \"{}\"\n",
                      subject.name, match.loss->signature.id, subject.entry, options.interpreter);
  if (!match.greeting.reduction) {
    text += fmt::format("reductions = [\"{}\"]\n", name(best.candidate.reduction));
  }
  if (!best.candidate.options.empty()) {
    text += "options = { " + options_text(best.candidate, " = ", true) + " }\n";
  }
  const bool told = !match.greeting.facts.empty();
  text += fmt::format(
      "micro_batches = \"{}\"  # what the trainer does with the losses of "
      "micro-batches: sum, mean, token_weighted, none (not asked)\n",
      told ? "sum" : "none");
  return text;
}

}  // namespace

int run_identify(const IdentifyOptions& options) {
  for (const std::string& loss : options.losses) {
    const auto known = loss_names();
    if (std::ranges::find(known, loss) == known.end()) {
      throw InputError(unknown_name("loss", loss, known));
    }
  }
  if (!options.overwrite && fs::exists(options.out)) {
    throw InputError(options.out + " is there already; name another with --out, or --overwrite");
  }
  std::string complaint;
  const auto matches = matches_of(options, complaint);
  if (matches.empty()) throw InputError(complaint);
  print_function(matches.front().greeting);
  if (!matches.front().whole()) {
    fmt::print("no loss of the catalog, as it stands\n");
    for (const Match& match : matches) {
      if (!match.likenesses.empty()) print_nearest(match);
    }
    return static_cast<int>(Exit::red);
  }
  print_match(matches.front());
  std::ofstream file(options.out);
  file << config_text(options, matches.front());
  if (!file.flush()) throw MachineError(options.out + " cannot be written");
  fmt::print("wrote {0}; next: lossgate gate --config {0}\n", options.out);
  return static_cast<int>(Exit::green);
}

}  // namespace lossgate::ci
