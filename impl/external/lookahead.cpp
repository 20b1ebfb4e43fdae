// SPDX-License-Identifier: Apache-2.0
#include "impl/external/lookahead.h"

#include <algorithm>
#include <utility>

namespace lossgate::impl {

void Lookahead::begin(Process& process, double seconds) {
  hear(process, sent_.end(), seconds);
  sent_.clear();
  room_ = process.room();
}

bool Lookahead::send(Process& process, std::vector<std::byte> frame, double seconds) {
  room_ -= Process::pages_of(frame.size());
  if (room_ < 0) return false;
  process.tell(frame, seconds);
  sent_.push_back({std::move(frame), std::nullopt});
  return true;
}

bool Lookahead::waits() const {
  return std::ranges::any_of(sent_, [](const Sent& sent) { return !sent.answer; });
}

std::vector<std::byte> Lookahead::ask(Process& process, std::span<const std::byte> frame,
                                      double seconds) {
  const auto at = std::ranges::find_if(
      sent_, [&](const Sent& sent) { return std::ranges::equal(sent.frame, frame); });
  const bool foreseen = at != sent_.end();
  hear(process, foreseen ? at + 1 : at, seconds);
  if (!foreseen) return process.ask(frame, seconds);
  std::vector<std::byte> answer = std::move(*at->answer);
  sent_.erase(at);  // the same question asked twice is two questions
  return answer;
}

void Lookahead::hear(Process& process, std::vector<Sent>::iterator until, double seconds) {
  for (auto sent = sent_.begin(); sent != until; ++sent) {
    if (!sent->answer) sent->answer = process.hear(seconds);
  }
}

}  // namespace lossgate::impl
