// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/first_failure.h"
#include "ci/verbs.h"
#include "corpora/element_text.h"
#include "corpora/files.h"
#include "corpora/text_codec.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

constexpr std::int64_t kTries = 2'000;

namespace fs = std::filesystem;

void print_entry(std::string_view label, const std::string& text) {
  for (const std::string& line : report::wrapped(text, 76)) {
    fmt::print("  {:<20}{}\n", label, line);
    label = "";
  }
}

/// Every number of the file, field by field, as the file has it.
void print_contents(const LossSignature& signature, const Case& c) {
  std::vector<std::string> options, axes;
  for (const auto& [name, value] : c.spec.options) {
    options.push_back(name + " " + report::option_text(value));
  }
  for (const Axis axis : kAllAxes) {
    if (c.shape[axis] >= 0) axes.push_back(fmt::format("{} {}", name(axis), c.shape[axis]));
  }
  print_entry("loss", fmt::format("{}, {}", c.spec.loss, name(c.spec.reduction)));
  print_entry("options", fmt::format("{}", fmt::join(options, ", ")));
  print_entry("shape", fmt::format("{}", fmt::join(axes, ", ")));
  std::vector<std::string> parts;
  for (const Split::Part& part : c.split.parts) {
    parts.push_back(fmt::format("rank {}: {}", part.rank, fmt::join(part.sequences, " ")));
  }
  print_entry("split", parts.empty()
                           ? "whole"
                           : fmt::format("world {}; {}", c.split.world, fmt::join(parts, "; ")));
  print_entry("upstream", report::decimal(c.upstream));
  for (const Field& field : signature.fields) {
    const Tensor& tensor = c.batch.at(field.name);
    std::string text(name(tensor.dtype));
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      text += ' ';
      corpora::append_element(text, tensor.dtype, tensor.element(i));
    }
    print_entry(field.name, text);
  }
}

fs::path target_of(const ShareOptions& options) {
  if (!options.out.empty()) return options.out;
  fs::path path = options.file;
  return path.replace_extension(".share.case");
}

}  // namespace

int run_share(const ShareOptions& options) {
  check_environment();
  const fs::path target = target_of(options);
  if (fs::exists(target) && !options.overwrite) {
    throw InputError(target.string() + " is there already; say --overwrite, or --out FILE");
  }
  const Selection selection = select(options.filters);
  const auto find = [&](std::string_view loss) { return selection.find_signature(loss); };
  Case c = corpora::read_case_file(options.file, find);
  const LossSignature& signature = *find(c.spec.loss);
  const bool named = !options.filters.implementations.empty();
  const auto failure =
      first_failure(selection, c, [&](const impl::Implementation& i, const properties::Property&) {
        return named || !i.fault;
      });
  if (failure) {
    const fuzz::Minimised small = fuzz::minimise(*failure, c, {.tries = kTries});
    c = small.c;
    fmt::print("{} violates {}; {}\n", failure->implementation().name, failure->property().name,
               small.complete
                   ? "made as small as it goes"
                   : fmt::format("not as small as it goes: {} tries were not enough; lossgate "
                                 "minimise takes --tries",
                                 kTries));
  } else {
    fmt::print("nothing fails, so no number can be left out: --config or --impl names what does\n");
  }
  c.provenance = {};
  corpora::write_file(target, corpora::encode(c, signature));
  fmt::print("wrote {}, which contains this and nothing else:\n", target.string());
  print_contents(signature, c);
  return static_cast<int>(Exit::green);
}

}  // namespace lossgate::ci
