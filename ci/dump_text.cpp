// SPDX-License-Identifier: Apache-2.0
#include "ci/dump_text.h"

#include <fmt/format.h>

#include <cmath>

#include "report/value_text.h"

namespace lossgate::ci {

using corpora::Dump;

std::string observed_text(const Dump& dump) {
  std::string text =
      dump.observed ? "loss " + report::with_bits(dump.observed->dtype, dump.observed->element(0))
                    : "no loss";
  for (const auto& [field, gradient] : dump.gradients) {
    std::int64_t bad = 0;
    for (std::int64_t i = 0; i < gradient.size(); ++i) bad += !std::isfinite(gradient.at(i));
    text +=
        fmt::format("; gradient of {}: {} of {} entries not finite", field, bad, gradient.size());
  }
  return text;
}

std::string run_text(const Dump& dump) {
  std::string text = fmt::format("step {}, rank {} of {}, {}, torch {}", dump.run_fact("step"),
                                 dump.run_fact("rank"), dump.run_fact("world"),
                                 dump.run_fact("device"), dump.run_fact("torch"));
  if (const std::string type = dump.run_fact("autocast"); !type.empty())
    text += ", autocast " + type;
  if (dump.upstream != 1.0) text += fmt::format(", upstream gradient {:.6g}", dump.upstream);
  if (dump.run_fact("changed") != "[]" && !dump.run_fact("changed").empty()) {
    text += ", written into meanwhile: " + dump.run_fact("changed");
  }
  return text;
}

}  // namespace lossgate::ci
