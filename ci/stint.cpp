// SPDX-License-Identifier: Apache-2.0
#include "ci/stint.h"

#include <nlohmann/json.hpp>

#include "ci/decoded_line.h"

namespace lossgate::ci {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kTrouble = "a campaign and its worker misunderstand each other";

}  // namespace

std::string encode(const Stint& stint) {
  Json shown = Json::object();
  for (const auto& [fingerprint, grade] : stint.shown) shown[fingerprint] = name(grade);
  return Json{{"loss", stint.loss},
              {"implementation", stint.implementation},
              {"seed", stint.seed},
              {"cases", stint.cases},
              {"by_cases", stint.by_cases},
              {"asked", stint.asked},
              {"long_from", stint.long_from},
              {"guided", stint.guided},
              {"memory_mib", stint.memory_mib},
              {"corpus", stint.corpus},
              {"seen", stint.seen},
              {"shown", std::move(shown)},
              {"again", stint.again}}
             .dump() +
         "\n";
}

Stint decode_stint(std::string_view line) {
  return decoded(line, kTrouble, [](const Json& json) {
    Stint stint;
    json.at("loss").get_to(stint.loss);
    json.at("implementation").get_to(stint.implementation);
    json.at("seed").get_to(stint.seed);
    json.at("cases").get_to(stint.cases);
    json.at("by_cases").get_to(stint.by_cases);
    json.at("asked").get_to(stint.asked);
    json.at("long_from").get_to(stint.long_from);
    json.at("guided").get_to(stint.guided);
    json.at("memory_mib").get_to(stint.memory_mib);
    json.at("corpus").get_to(stint.corpus);
    json.at("seen").get_to(stint.seen);
    json.at("again").get_to(stint.again);
    for (const auto& [fingerprint, grade] : json.at("shown").items()) {
      stint.shown[fingerprint] = properties::parse_grade(grade.get<std::string>()).value();
    }
    return stint;
  });
}

std::string encode(const Kept& kept) {
  return Json{{"text", kept.text}, {"features", kept.features}}.dump() + "\n";
}

Kept decode_kept(std::string_view line) {
  return decoded(line, kTrouble, [](const Json& json) {
    Kept kept;
    json.at("text").get_to(kept.text);
    json.at("features").get_to(kept.features);
    return kept;
  });
}

}  // namespace lossgate::ci
