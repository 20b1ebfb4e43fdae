// SPDX-License-Identifier: Apache-2.0
#include "ci/emit.h"

#include <fmt/format.h>

#include <filesystem>

#include "ci/emission.h"
#include "ci/errors.h"
#include "ci/first_failure.h"
#include "ci/made_case.h"
#include "ci/target.h"
#include "corpora/files.h"
#include "regressions/replay.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;
using properties::Property;

/// The failure on its smallest case, with all that replay finds out of it.
Emission emission_of(const Brought& brought, const Property& property, Case c) {
  const auto replay =
      regressions::replay(brought.loss, c, {&brought.implementation}, {&property}, {});
  const auto& answers = replay.replies.at(0).answers;
  if (answers.empty() || !answers[0].outcome.violation || !answers[0].finding) {
    throw InputError(
        brought.implementation.name +
        " fails on it only now and then, which no test can show: lossgate describe determinism");
  }
  const regressions::Answer& answer = answers[0];
  if (is_of_made_case(property)) {
    auto made =
        made_case(brought.loss, brought.implementation, property, c, *answer.outcome.violation);
    if (!made) {
      throw InputError("no test is written: it fails no more the same way on the case that " +
                       property.name + " makes of this one");
    }
    c = *std::move(made);
  }
  Emission emission{.brought = &brought,
                    .property = &property,
                    .c = std::move(c),
                    .violation = *answer.outcome.violation,
                    .diagnosis = answer.finding->diagnosis,
                    .code = "",
                    .loss_in = brought.session->loss_in()};
  if (property.name.starts_with("finite_")) {
    const auto origin = brought.implementation.origin(brought.loss.signature, emission.c);
    if (origin) emission.code = origin->text;
  }
  return emission;
}

void write(const std::string& path, const Emission& emission,
           std::string (*text)(const Emission&, const std::string&)) {
  if (path.empty()) return;
  corpora::write_file(path, text(emission, fs::path(path).parent_path().string()));
  fmt::print("wrote {}\n", path);
}

}  // namespace

void check_targets(const EmitOptions& options) {
  const auto check = [&](const std::string& path, const char* flag) {
    if (path.empty()) return;
    check_target(path, options.overwrite ? Present::overwrite : Present::refuse, flag);
  };
  check(options.test, "--emit-test");
  check(options.script, "--emit-py");
  check(options.issue, "--emit-issue");
}

void emit(const EmitOptions& options, const Selection& selection, const Case& c) {
  if (selection.brought.empty()) {
    throw InputError(
        "a test is written for a function in Python: bring it with --config lossgate.toml; the "
        "implementations of the catalog are part of lossgate itself");
  }
  std::string why;
  const auto failing = [&](bool on_made_case) {
    return first_failure(
        selection, c, [&](const impl::Implementation& i, const Property& property) {
          const std::string reason = cannot_emit({.brought = brought_as(selection, i),
                                                  .property = &property,
                                                  .c = c,
                                                  .violation = {},
                                                  .diagnosis = {},
                                                  .code = "",
                                                  .loss_in = ""});
          if (!reason.empty()) why = reason;
          return reason.empty() && is_of_made_case(property) == on_made_case;
        });
  };
  auto failure = failing(false);  // the case was kept for what is seen on itself
  if (!failure) failure = failing(true);
  if (!failure) {
    if (!why_unasked(selection, c).empty()) {
      throw InputError("no test is written: nothing was asked");
    }
    throw InputError(first_failure(selection, c) ? "no test is written: it " + why
                                                 : "no test is written: nothing fails");
  }
  const fuzz::Minimised small = fuzz::minimise(
      *failure, c, {.tries = 2'000});  // a message of hundreds of bytes has as many steps
  const Emission emission =
      emission_of(*brought_as(selection, failure->implementation()), failure->property(), small.c);
  if (const std::string reason = cannot_say(emission); !reason.empty()) {
    throw InputError("no test is written: it " + reason);
  }
  write(options.test, emission, test_text);
  write(options.script, emission, script_text);
  write(options.issue, emission, issue_text);
}

}  // namespace lossgate::ci
