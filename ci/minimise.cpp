// SPDX-License-Identifier: Apache-2.0
#include "fuzz/minimise.h"

#include <fmt/format.h>

#include <filesystem>

#include "ci/crash.h"
#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/first_failure.h"
#include "ci/live_line.h"
#include "ci/stored_case.h"
#include "ci/target.h"
#include "ci/variant.h"
#include "ci/verbs.h"
#include "corpora/case_id.h"
#include "corpora/files.h"
#include "corpora/text_codec.h"
#include "fuzz/smaller.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;
using fuzz::Failure;

std::string size_text(const LossSignature& signature, const Case& c) {
  std::string text;
  for (Axis axis : kAllAxes) {
    if (c.shape[axis] >= 0) text += fmt::format("{} {}, ", name(axis), c.shape[axis]);
  }
  return text + fmt::format("unusual numbers {}", fuzz::unusual_numbers(signature, c));
}

fs::path target_of(const MinimiseOptions& options) {
  if (!options.out.empty()) return options.out;
  fs::path path = options.file;
  return path.replace_extension(".min.case");
}

/// What fails, and how to know that it still does.
struct Failing {
  const LossSignature* signature = nullptr;
  fuzz::StillFails still_fails;
};

fuzz::Minimised searched(const Failing& failing, const Case& c, std::int64_t tries) {
  LiveLine line;
  std::int64_t tried = 0;
  const auto still_fails = [&](const Case& simpler) {
    ++tried;
    const bool fails = failing.still_fails(simpler);
    if (fails && line.due()) {
      line.show(fmt::format("{} tried: {}", tried, size_text(*failing.signature, simpler)));
    }
    return fails;
  };
  return fuzz::minimise(*failing.signature, c, still_fails, {.tries = tries});
}

void write_simplest(const Failing& failing, const Case& c, const fs::path& target,
                    std::int64_t tries) {
  const LossSignature& signature = *failing.signature;
  fuzz::Minimised small = searched(failing, c, tries);
  fmt::print("  from    {}\n  to      {}\n", size_text(signature, c),
             size_text(signature, small.c));
  fmt::print("  tried   {} cases{}\n", small.tried,
             small.complete ? "" : ", which is all that it may; --tries N for more");
  if (small.steps == 0) {  // its story is still its own
    fmt::print("  nothing simpler {}fails the same way; written as it was\n",
               small.complete ? "" : "was found that ");
  } else {
    small.c.provenance.story = "minimised from case " + corpora::case_id(c);
    small.c.provenance.expect.clear();
  }
  corpora::write_file(target, corpora::encode(small.c, signature));
  fmt::print("  wrote   {}\n", target.string());
}

/// A subject that ends its process on the case. Whatever it says otherwise, it is asked again.
/// False where it is no crash, or not met again.
bool minimise_crash(const MinimiseOptions& options, const Selection& selection,
                    const impl::Implementation& declared, const Case& c, const fs::path& target) {
  const Brought* brought = brought_as(selection, declared);
  if (!brought) return false;
  const impl::Implementation subject =
      guarded(declared, [brought] { brought->session->forgive({}); });
  const auto crash = Crash::on(brought->loss, subject, selection.properties, c);
  if (!crash) return false;
  fmt::print("{} violates does_not_crash: {}\n", subject.name, crash->how());
  const auto ends = [&](const Case& simpler) { return crash->seen_on(simpler).has_value(); };
  write_simplest({&brought->loss.signature, ends}, c, target, options.tries);
  return true;
}

}  // namespace

int run_minimise(const MinimiseOptions& options) {
  check_environment(options.filters.subjects.empty());
  const fs::path target = target_of(options);
  check_target(target, options.overwrite ? Present::overwrite : Present::refuse);
  const Selection selection = select(options.filters);
  const Case c = read_case(options.file, selection);
  check_computed(selection, c, options.file);
  std::optional<Failure> failure;
  try {
    failure = first_failure(selection, c);
  } catch (const DoesNotReturn& error) {
    if (!minimise_crash(options, selection, *error.implementation, c, target)) throw;
    return static_cast<int>(Exit::green);
  }
  if (!failure) {
    if (const std::string why = why_unasked(selection, c); !why.empty()) {
      fmt::print("{}", why);
      return static_cast<int>(Exit::broken);
    }
    fmt::print("nothing to minimise: {} holds\n", options.file);
    return static_cast<int>(Exit::green);
  }
  fmt::print("{} violates {}: {}\n", failure->implementation().name, failure->property().name,
             failure->cause());
  fmt::print("{}", also_violated(selection, *failure, c));
  const auto shows = [&](const Case& simpler) { return failure->shows_on(simpler); };
  write_simplest({&failure->loss().signature, shows}, c, target, options.tries);
  return static_cast<int>(Exit::green);
}

}  // namespace lossgate::ci
