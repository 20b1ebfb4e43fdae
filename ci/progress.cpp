// SPDX-License-Identifier: Apache-2.0
#include "ci/progress.h"

#include <fmt/format.h>

#include <cmath>

#include "report/plain_text.h"

namespace lossgate::ci {

Progress::Progress(std::int64_t cases, std::int64_t variants, std::string noun,
                   std::chrono::seconds in_a_log)
    : cases_(cases), variants_(variants), noun_(std::move(noun)), line_(in_a_log) {}

void Progress::finish() {
  if (line_.in_a_log()) line_.show(text());
  line_.clear();
}

std::string Progress::text() const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  std::string text;
  if (variants_ > 0) text = fmt::format("faulty variants {}/{}, ", variants_done_, variants_);
  text += fmt::format("{} {}/{}", noun_, cases_done_, cases_);
  if (findings_ > 0) text += ", looking into " + report::counted(findings_, "finding");
  if (cases_done_ == 0 || elapsed <= 0.0) return text;
  const double rate = static_cast<double>(cases_done_) / elapsed;
  return text + fmt::format(", {:.{}f} a second, {} left", rate, rate < 10.0 ? 1 : 0,
                            duration_text(static_cast<double>(cases_ - cases_done_) / rate));
}

void Progress::show() {
  if (line_.due()) line_.show(text());
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(std::min(seconds, 1e9)));
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, rest)
                   : fmt::format("{}:{:02}", minutes, rest);
}

}  // namespace lossgate::ci
