// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace lossgate::ci::evidence {

/// How much is asked: `quick` is for every change, the other for a night.
struct Effort {
  std::uint64_t seed = 1;
  bool quick = true;
  std::string config = {};  ///< a lossgate.toml, for the kind that asks what is brought
  std::vector<std::string> losses = {};  ///< of `alarms`; all where it is empty
  std::int64_t cases = 0;  ///< of `alarms`, of each loss and dtype, at least; 0: as ever

  std::int64_t of(std::int64_t few, std::int64_t many) const { return quick ? few : many; }
};

/// A piece of the work that is done or not: what it counted goes into the record under its name.
struct Unit {
  std::string name;
  std::function<nlohmann::json()> run;
};

/// One kind of evidence. Its units depend on nothing but the effort, so a run that was stopped goes
/// on where it was.
struct Kind {
  std::string name;
  std::string statement;  ///< what is asked, one sentence for the page
  std::vector<Unit> (*units)(const Effort&);
};

std::vector<Unit> alarms(const Effort& effort);
std::vector<Unit> bias(const Effort& effort);
std::vector<Unit> bounds(const Effort& effort);
std::vector<Unit> buckets(const Effort& effort);
std::vector<Unit> filter(const Effort& effort);
std::vector<Unit> gated(const Effort& effort);
std::vector<Unit> null_answers(const Effort& effort);
std::vector<Unit> recall(const Effort& effort);
std::vector<Unit> sensitivity(const Effort& effort);

const std::vector<Kind>& kinds();

}  // namespace lossgate::ci::evidence
