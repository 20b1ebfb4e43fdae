// SPDX-License-Identifier: Apache-2.0
#include "fuzz/minimise.h"

#include <fmt/format.h>

#include <filesystem>

#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/first_failure.h"
#include "ci/live_line.h"
#include "ci/target.h"
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

}  // namespace

int run_minimise(const MinimiseOptions& options) {
  check_environment();
  const fs::path target = target_of(options);
  check_target(target, options.overwrite ? Present::overwrite : Present::refuse);
  const Selection selection = select(options.filters);
  const Case c = corpora::read_case_file(
      options.file, [&](std::string_view loss) { return selection.find_signature(loss); });
  const std::optional<Failure> failure = first_failure(selection, c);
  if (!failure) {
    fmt::print("nothing to minimise: {} holds\n", options.file);
    return static_cast<int>(Exit::green);
  }
  const LossSignature& signature = failure->loss().signature;
  fmt::print("{} violates {}: {}\n", failure->implementation().name, failure->property().name,
             failure->cause());
  fmt::print("{}", also_violated(selection, *failure, c));
  fuzz::Minimised small;
  {
    LiveLine line;
    small = fuzz::minimise(
        *failure, c, {.tries = options.tries}, [&](const Case& at, std::int64_t tried) {
          if (!line.due()) return;
          line.show(fmt::format("{} tried: {}", tried, size_text(signature, at)));
        });
  }
  fmt::print("  from    {}\n  to      {}\n", size_text(signature, c),
             size_text(signature, small.c));
  fmt::print("  tried   {} cases{}\n", small.tried,
             small.complete ? "" : ", which is all that it may; --tries N for more");
  if (small.steps == 0) {
    fmt::print("  nothing simpler {}fails the same way; written as it was\n",
               small.complete ? "" : "was found that ");
  }
  small.c.provenance.story = "minimised from case " + corpora::case_id(c);
  small.c.provenance.expect.clear();
  corpora::write_file(target, corpora::encode(small.c, signature));
  fmt::print("  wrote   {}\n", target.string());
  return static_cast<int>(Exit::green);
}

}  // namespace lossgate::ci
