// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/first_failure.h"
#include "ci/stored_case.h"
#include "ci/target.h"
#include "ci/verbs.h"
#include "corpora/element_text.h"
#include "corpora/files.h"
#include "corpora/text_codec.h"
#include "fuzz/smaller.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

constexpr std::int64_t kTries = 2'000;

/// So many numbers are read one by one: a few screens.
constexpr std::int64_t kMostListed = 1'000;

namespace fs = std::filesystem;

/// Prints texts behind labels, of which some are as long as a field's name.
struct Listing {
  std::size_t width = 18;

  void print(std::string_view label, const std::string& text) const {
    for (const std::string& line : report::wrapped(text, 76)) {
      fmt::print("  {:<{}}  {}\n", label, width, line);
      label = "";
    }
  }
};

/// Every number of the field, as the file has it.
std::string numbers_text(const Tensor& tensor) {
  std::string text(name(tensor.dtype));
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    text += ' ';
    corpora::append_element(text, tensor.dtype, tensor.element(i));
  }
  return text;
}

/// Of more numbers than a person reads: how many, and between which.
std::string range_text(const Field& field, const Tensor& tensor) {
  std::int64_t low = -1, high = -1, nans = 0, infinities = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double value = tensor.at(i);
    nans += std::isnan(value);
    infinities += std::isinf(value);
    if (!std::isfinite(value)) continue;
    if (low < 0 || value < tensor.at(low)) low = i;
    if (high < 0 || value > tensor.at(high)) high = i;
  }
  std::string text = fmt::format("{}, {} numbers", name(tensor.dtype), tensor.size());
  if (low >= 0) {
    text += " from ";
    corpora::append_element(text, tensor.dtype, tensor.element(low));
    text += " to ";
    corpora::append_element(text, tensor.dtype, tensor.element(high));
  }
  if (infinities > 0) text += fmt::format(", {} infinite", infinities);
  if (nans > 0) text += fmt::format(", {} nan", nans);
  const auto unusual = fuzz::changed_by(fuzz::plainer(field), tensor).size();
  return text + fmt::format("; {} are not {}", unusual, field.role == Role::mask ? 1 : 0);
}

std::string split_text(const Split& split, bool brief) {
  if (split.whole()) return "whole";
  if (brief) return fmt::format("world {}, {} parts", split.world, split.parts.size());
  std::vector<std::string> parts;
  for (const Split::Part& part : split.parts) {
    parts.push_back(fmt::format("rank {}: {}", part.rank, fmt::join(part.sequences, " ")));
  }
  return fmt::format("world {}; {}", split.world, fmt::join(parts, "; "));
}

/// What the file has, field by field: every number, or ranges where they are too many to read.
void print_contents(const LossSignature& signature, const Case& c, const fs::path& file) {
  std::vector<std::string> options, axes;
  for (const auto& [name, value] : c.spec.options) {
    options.push_back(name + " " + report::option_text(value));
  }
  for (const Axis axis : kAllAxes) {
    if (c.shape[axis] >= 0) axes.push_back(fmt::format("{} {}", name(axis), c.shape[axis]));
  }
  Listing listing;
  for (const Field& field : signature.fields) {
    listing.width = std::max(listing.width, field.name.size());
  }
  listing.print("loss", fmt::format("{}, {}", c.spec.loss, name(c.spec.reduction)));
  listing.print("options", fmt::format("{}", fmt::join(options, ", ")));
  listing.print("shape", fmt::format("{}", fmt::join(axes, ", ")));
  std::int64_t numbers = 0;
  for (const auto& [name, tensor] : c.batch.fields) numbers += tensor.size();
  listing.print("split", split_text(c.split, numbers > kMostListed));
  listing.print("upstream", report::decimal(c.upstream));
  for (const Field& field : signature.fields) {
    const Tensor& tensor = c.batch.at(field.name);
    listing.print(field.name,
                  numbers > kMostListed ? range_text(field, tensor) : numbers_text(tensor));
  }
  if (numbers <= kMostListed) return;
  fmt::print(
      "{} numbers are too many to list: {} has each, as text (--out FILE for another name)\n",
      numbers, file.string());
}

fs::path target_of(const ShareOptions& options) {
  if (!options.out.empty()) return options.out;
  fs::path path = options.file;
  return path.replace_extension(".share.case");
}

}  // namespace

int run_share(const ShareOptions& options) {
  check_environment(options.filters.subjects.empty());
  const fs::path target = target_of(options);
  check_target(target, options.overwrite ? Present::overwrite : Present::refuse);
  const Selection selection = select(options.filters);
  Case c = read_case(options.file, selection);
  check_computed(selection, c, options.file);
  if (const std::string why = why_unasked(selection, c); !why.empty()) {
    fmt::print("{}", why);
    return static_cast<int>(Exit::broken);
  }
  const LossSignature& signature = *selection.find_signature(c.spec.loss);
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
  print_contents(signature, c, target);
  return static_cast<int>(Exit::green);
}

}  // namespace lossgate::ci
