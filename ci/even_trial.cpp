// SPDX-License-Identifier: Apache-2.0
#include "ci/even_trial.h"

#include <algorithm>
#include <utility>

#include "ci/asked_under.h"

namespace lossgate::ci {
namespace {

bool averages(const Brought& brought, impl::Combination combination, const char* count) {
  const auto& facts = brought.greeting.facts;
  return combination == impl::Combination::mean ||
         (combination != impl::Combination::none && std::ranges::find(facts, count) != facts.end());
}

}  // namespace

std::vector<std::string> EvenParts::lines() const {
  std::vector<std::string> lines;
  if (parts) lines.emplace_back("uneven_parts = false");
  if (ranks) lines.emplace_back("uneven_ranks = false");
  return lines;
}

std::string EvenParts::price() const {
  if (!parts && !ranks) return "";
  std::string who = parts ? "micro-batches of a rank hold equally many sequences that count" : "";
  if (ranks) who += parts ? ", and ranks do" : "ranks hold equally many sequences that count";
  return who + ": it is an average of averages, wrong where they differ";
}

std::optional<impl::Subject> EvenParts::promised(impl::Subject subject) const {
  if (parts && !std::exchange(subject.contract.uneven_parts, false)) return std::nullopt;
  if (ranks && !std::exchange(subject.contract.uneven_ranks, false)) return std::nullopt;
  return subject;
}

std::vector<EvenParts> even_parts_of(const Brought& brought) {
  const impl::Subject& subject = brought.subject;
  const bool parts = averages(brought, subject.micro_batches, "micro_batches"),
             ranks = averages(brought, subject.ranks, "world");
  std::vector<EvenParts> all;
  if (parts) all.push_back({.parts = true});
  if (ranks) all.push_back({.ranks = true});
  if (parts && ranks) all.push_back({.parts = true, .ranks = true});
  return all;
}

bool is_right_of(const Brought& brought, const impl::Subject& promised, const EvenParts& even,
                 const properties::Property& property) {
  bool any_parts = false, any_ranks = false;
  const bool right = always_holds(brought, promised, property, [&](const Case& c) {
    any_parts = any_parts || std::ssize(c.split.parts) > c.split.world;
    any_ranks = any_ranks || c.split.world > 1;
  });
  return right && (any_parts || !even.parts) && (any_ranks || !even.ranks);
}

}  // namespace lossgate::ci
