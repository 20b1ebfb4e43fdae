// SPDX-License-Identifier: Apache-2.0
#include "ci/protocol.h"

#include <nlohmann/json.hpp>

#include "ci/decoded_line.h"
#include "ci/errors.h"
#include "report/record_file.h"

namespace lossgate::ci {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kTrouble = "a worker was told what it does not understand";

// What is encoded is taken apart by structured bindings: a member that is added does not compile
// before workers are told of it, too.

Json as_json(const impl::Greeting& greeting) {
  const auto& [source, code, versions, arguments, options, facts, reduction, tied, defaults,
               omissible, left] = greeting;  // defaults and what is left are for who reads a check
  const auto& [file, line, flags] = source;
  return {file, line, flags, code, versions, arguments, options, facts, reduction, tied, omissible};
}

impl::Greeting greeting_of(const Json& json) {
  impl::Greeting greeting;
  auto& [source, code, versions, arguments, options, facts, reduction, tied, defaults, omissible,
         left] = greeting;
  auto& [file, line, flags] = source;
  std::size_t at = 0;
  const auto read = [&](auto&... member) { (json.at(at++).get_to(member), ...); };
  read(file, line, flags, code, versions, arguments, options, facts, reduction, tied, omissible);
  return greeting;
}

Json as_json(const std::vector<SubjectFile>& subjects) {
  Json all = Json::array();
  for (const auto& [text, name, folder, greetings, hosts] : subjects) {  // hosts are of one process
    Json said = Json::object();
    for (const auto& [subject, greeting] : greetings) said[subject] = as_json(greeting);
    all.push_back({text, name, folder, std::move(said)});
  }
  return all;
}

}  // namespace

std::string encode(const PlanOptions& options) {
  const auto& [filters, profile, seed, cases, corpora, causes] = options;
  const auto& [losses, implementations, properties, dtypes, hardening, subjects] = filters;
  return Json{{"losses", losses},
              {"subjects", as_json(subjects)},
              {"implementations", implementations},
              {"properties", properties},
              {"dtypes", dtypes},
              {"hardening", hardening},
              {"profile", name(profile)},
              {"seed", seed},
              {"cases", cases},
              {"corpora", corpora},
              {"causes", causes}}
             .dump() +
         "\n";
}

PlanOptions decode_plan(std::string_view line) {
  return decoded(line, kTrouble, [](const Json& json) {
    PlanOptions options;
    json.at("losses").get_to(options.filters.losses);
    json.at("implementations").get_to(options.filters.implementations);
    json.at("properties").get_to(options.filters.properties);
    json.at("dtypes").get_to(options.filters.dtypes);
    for (const Json& file : json.at("subjects")) {
      SubjectFile& subjects =
          options.filters.subjects.emplace_back(SubjectFile{file.at(0), file.at(1), file.at(2)});
      for (const auto& [name, said] : file.at(3).items()) {
        subjects.greetings.emplace(name, greeting_of(said));
      }
    }
    json.at("hardening").get_to(options.filters.hardening);
    options.profile = fuzz::parse_profile(json.at("profile").get<std::string>()).value();
    json.at("seed").get_to(options.seed);
    json.at("cases").get_to(options.cases);
    json.at("corpora").get_to(options.corpora);
    json.at("causes").get_to(options.causes);
    return options;
  });
}

std::string encode(const Task& task) {
  const auto& [begin, end, loss, variant, skips] = task;
  return Json{
             {"begin", begin}, {"end", end}, {"loss", loss}, {"variant", variant}, {"skips", skips}}
             .dump() +
         "\n";
}

Task decode_task(std::string_view line) {
  return decoded(line, kTrouble, [](const Json& json) {
    Task task;
    json.at("begin").get_to(task.begin);
    json.at("end").get_to(task.end);
    json.at("loss").get_to(task.loss);
    json.at("variant").get_to(task.variant);
    json.at("skips").get_to(task.skips);
    return task;
  });
}

report::RunRecord decode_record(std::string_view json) {
  try {
    return report::from_json(json, "a worker's answer");
  } catch (const report::RecordError& error) {
    throw MachineError(error.what());
  }
}

}  // namespace lossgate::ci
