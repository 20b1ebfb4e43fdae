// SPDX-License-Identifier: Apache-2.0
#include "regressions/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "ci/benign_cases.h"
#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/findings.h"
#include "ci/first_failure.h"
#include "ci/live_line.h"
#include "ci/plan.h"
#include "ci/stored_case.h"
#include "ci/variant.h"
#include "ci/verbs.h"
#include "corpora/case_id.h"
#include "corpora/story.h"
#include "impl/catalog.h"
#include "properties/another_formula.h"
#include "properties/diagnosis.h"
#include "report/finding_text.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

using properties::Verdict;
using regressions::Answer;
using regressions::Reply;

void print_case(const LossSignature& signature, const Case& c) {
  fmt::print("case {}\n", corpora::case_id(c));
  if (!c.provenance.title.empty()) fmt::print("  {}\n", c.provenance.title);
  for (const std::string& line : report::wrapped(report::case_line(signature, c), 98)) {
    fmt::print("  {}\n", line);
  }
  for (const std::string& paragraph : corpora::paragraphs_of(c.provenance.story)) {
    for (const std::string& line : report::wrapped(paragraph, 98)) fmt::print("  | {}\n", line);
  }
}

std::string word(const Reply& reply, const Answer& answer) {
  const bool violated = answer.outcome.verdict == Verdict::violated;
  if (answer.expected) return violated ? "violated, as expected" : "NOT VIOLATED, though expected";
  if (violated) return reply.implementation->fault ? "violated (faulty on purpose)" : "VIOLATED";
  return std::string(name(answer.outcome.verdict));
}

void print_violation(const LossSignature& signature, const Case& c, const Reply& reply,
                     const Answer& answer) {
  const properties::Violation& violation = *answer.outcome.violation;
  const auto line = [](std::string_view label, const std::string& text) {
    if (!text.empty()) fmt::print("      {:<10}{}\n", label, text);
  };
  const auto origin = origin_of(*reply.implementation, signature, c, violation.actual);
  if (origin) line("code", origin->text);
  line("place", report::place_text(violation.place));
  line("", violation.detail);
  line("inputs",
       fmt::format("{}", fmt::join(report::inputs_at(signature, c, violation.place), ", ")));
  line("options", fmt::format("{}", fmt::join(report::options_of(signature, c), ", ")));
  if (violation.has_numbers()) {
    const auto outputs = outputs_of(signature, c);
    const auto output = std::ranges::find(outputs, violation.place.output, &OutputInfo::name);
    const Dtype dtype = output == outputs.end() ? float_dtype(signature, c) : output->dtype;
    line("actual", report::with_bits(dtype, violation.actual));
    line("expected", report::decimal(violation.expected) +
                         report::branch_text(violation.half_width, violation.allowed));
    line("ulp error",
         report::brief(regressions::ulp_error(dtype, violation.actual, violation.expected)));
    line("bound", fmt::format("{} (error ratio {})", report::brief(violation.allowed),
                              report::brief(violation.error_ratio)));
    if (regressions::allclose(violation.actual, violation.expected)) {
      line("", "torch.allclose would have passed");
    }
  }
  const std::string& cause = answer.finding ? answer.finding->diagnosis.cause : violation.cause;
  // Nobody looks for what is wrong with what is wrong on purpose.
  const double confidence =
      answer.finding ? answer.finding->diagnosis.confidence : properties::kSure;
  const std::string& property = answer.property->name;
  line("cause", report::cause_text(property, cause, confidence));
  if (answer.finding) line("", report::because_text(answer.finding->diagnosis));
  line(report::fix_label(property, cause, confidence),
       std::string(report::usual_fix(property, cause)));
  if (answer.finding) {
    line("grade", std::string(name(answer.finding->grade)) +
                      (answer.finding->reach.empty() ? "" : "; " + answer.finding->reach));
  }
}

// One property: a line per implementation, in full where it is violated.
void print_property(const LossSignature& signature, const Case& c,
                    const regressions::Replay& replay, std::size_t index) {
  bool named = false;
  for (const Reply& reply : replay.replies) {
    if (index >= reply.answers.size()) continue;
    const Answer& answer = reply.answers[index];
    if (!named) fmt::print("\n{}: {}\n", answer.property->name, answer.property->statement);
    named = true;
    const std::string& reason = answer.outcome.reason;
    std::string remark = report::is_red_already(reason) ? "red already" : reason;
    if (answer.outcome.compared > 0) {
      remark += fmt::format("{}error ratio {}", remark.empty() ? "" : ", ",
                            report::brief(answer.outcome.worst_ratio));
    }
    fmt::print("  {:<36}{}{}\n", reply.implementation->name, word(reply, answer),
               remark.empty() ? "" : " (" + remark + ")");
    if (answer.outcome.violation) print_violation(signature, c, reply, answer);
  }
}

void print_spot(const regressions::Spot& spot) {
  fmt::print("\nall implementations {} at {}\n",
             spot.split ? "accumulated over the split" : "on the whole, unsplit case",
             report::place_text(spot.place));
  fmt::print("  {:<36}{}\n", "expected", report::decimal(spot.expected));
  for (const regressions::Sight& sight : spot.sights) {
    fmt::print("  {:<36}{}, ulp error {}, bound {}, allclose {}\n", sight.implementation->name,
               report::with_bits(spot.dtype, sight.bits.data()), report::brief(sight.ulp_error),
               report::brief(sight.bound),
               regressions::allclose(sight.actual, spot.expected) ? "passes" : "fails");
  }
}

// Sound implementations and those that the case speaks of, or those that were named.
std::vector<const impl::Implementation*> chosen(
    const ReplayOptions& options, const Selection& selection, const Case& c,
    const std::vector<regressions::Expectation>& expected) {
  std::vector<const impl::Implementation*> implementations;
  for (const impl::Implementation* i : selection.implementations) {
    const bool spoken_of =
        std::ranges::find(expected, i->name, &regressions::Expectation::implementation) !=
        expected.end();
    const bool named = !options.filters.implementations.empty();
    if (i->loss == c.spec.loss && (named || spoken_of || !i->fault)) implementations.push_back(i);
  }
  return implementations;
}

/// Grade and name of what a gate would report, as it gives them (rules E5, E7).
void weigh(const reference::Loss& loss, const Case& c, BenignCases& benign, Reply& reply) {
  if (reply.implementation->fault) return;
  const impl::Implementation subject = guarded(*reply.implementation);
  try {
    for (Answer& answer : reply.answers) {
      if (!answer.finding) continue;
      const properties::Violation& violation = *answer.outcome.violation;
      if (benign.show(loss, subject, *answer.property, c, violation.cause)) {
        answer.finding->grade = properties::Grade::ordinary;
      }
      if (benign.another_formula(loss, subject, *answer.property, violation)) {
        name_another_formula(*answer.finding, c.spec.reduction);
      }
    }
  } catch (const ImplementationThrew&) {  // on another case: what was found stands without
  } catch (const impl::SubjectError&) {
  }
}

enum class Seen { nothing, holds, fails };

/// How often it held of several times.
void print_times(const regressions::Replays& replays, std::int64_t times) {
  if (times == 1) return;
  fmt::print("held {} of {} times", replays.held, times);
  if (const std::int64_t first = replays.first_failure; first > 0) {
    fmt::print("; failed first at time {}, shown above", first);
  }
  fmt::print("\n");
}

/// Everything that the implementations show on the case, asked so often.
Seen show(const reference::Loss& loss, const Case& c, const Selection& selection,
          const std::vector<const impl::Implementation*>& implementations,
          const std::vector<regressions::Expectation>& expected, std::int64_t times) {
  LiveLine line;
  regressions::Replays replays = regressions::replays(times, [&](std::int64_t time) {
    return regressions::replay(
        loss, c, implementations, selection.properties, expected,
        [&](const impl::Implementation& implementation, const properties::Property& property) {
          if (!line.due()) return;
          const std::string which = times > 1 ? fmt::format("time {} of {}, ", time, times) : "";
          line.show(which + implementation.name + ": " + property.name);
        });
  });
  regressions::Replay& replay = replays.shown;
  BenignCases benign(selection);
  for (Reply& reply : replay.replies) weigh(loss, c, benign, reply);
  line.clear();
  print_case(loss.signature, c);
  if (replay.refusal) {
    fmt::print("\nmust be refused: {}: {}\n", replay.refusal->argument, replay.refusal->message);
  }
  for (std::size_t i = 0; i < selection.properties.size(); ++i) {
    print_property(loss.signature, c, replay, i);
  }
  if (replay.spot) print_spot(*replay.spot);
  fmt::print("\n");
  for (const Reply& reply : replay.replies) {
    if (!reply.unsupported.empty()) {
      fmt::print("{} was not asked: {}\n", reply.implementation->name, reply.unsupported);
    }
    if (!reply.failure.empty()) {
      fmt::print("{} FAILED: {}\n", reply.implementation->name, reply.failure);
    }
  }
  if (!replay.failed() && !replay.answered()) return Seen::nothing;
  print_times(replays, times);
  return replay.failed() ? Seen::fails : Seen::holds;
}

/// Each brought subject is asked under its own signature.
Seen show_brought(const Case& c, const Selection& selection, std::int64_t times) {
  Seen all = Seen::nothing;
  for (const auto& brought : selection.brought) {
    const LossSignature& signature = brought->loss.signature;
    if (signature.id != c.spec.loss) continue;
    const Case own = as_its_callers_have_it(signature, c);
    all = std::max(all, show(brought->loss, own, selection, {&brought->implementation}, {}, times));
    if (!is_outside_contract(*brought, own)) continue;
    fmt::print("the case is outside the contract of {}: a gate does not ask it\n",
               brought->implementation.name);
  }
  return all;
}

/// Whether a finding that the case was stored for, "PROPERTY violated by NAME; ...", is among what
/// was asked.
bool is_asked(std::string_view finding, const Selection& selection,
              const std::vector<const impl::Implementation*>& implementations) {
  constexpr std::string_view kBy = " violated by ";
  const std::size_t by = finding.find(kBy);
  if (by == finding.npos) return false;
  const std::string_view property = finding.substr(0, by), rest = finding.substr(by + kBy.size()),
                         name = rest.substr(0, rest.find(';'));
  return std::ranges::find(implementations, name, &impl::Implementation::name) !=
             implementations.end() &&
         std::ranges::find(selection.properties, property, &properties::Property::name) !=
             selection.properties.end();
}

/// Whether one of those that a gate stored the case for is.
bool is_what_was_asked(const Case& c, const Selection& selection,
                       const std::vector<const impl::Implementation*>& implementations) {
  if (c.provenance.found_by != kFoundByGate) return false;
  return std::ranges::any_of(
      corpora::paragraphs_of(c.provenance.story),
      [&](const std::string& finding) { return is_asked(finding, selection, implementations); });
}

}  // namespace

int run_replay(const ReplayOptions& options) {
  check_environment(options.filters.subjects.empty());
  check_targets(options.emit);
  const Selection selection = select(options.filters);
  const Case c = read_case(options.file, selection);
  check_computed(selection, c, options.file);
  const auto expected = expectations_of(c, options.file);
  const auto implementations = chosen(options, selection, c, expected);
  const Seen shown = selection.brought.empty()
                         ? show(*reference::find_loss(c.spec.loss), c, selection, implementations,
                                expected, options.times)
                         : show_brought(c, selection, options.times);
  if (options.emit.any()) emit(options.emit, selection, c);
  switch (shown) {
    case Seen::nothing:
      break;
    case Seen::holds:
      fmt::print("holds\n");
      if (is_what_was_asked(c, selection, implementations)) {
        fmt::print(
            "what it was stored for is mended, or comes and goes with what was asked before\n");
      }
      return static_cast<int>(Exit::green);
    case Seen::fails:
      fmt::print("still fails\n");
      return static_cast<int>(Exit::red);
  }
  fmt::print("nothing was asked\n");
  return static_cast<int>(Exit::broken);
}

}  // namespace lossgate::ci
