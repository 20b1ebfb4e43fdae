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

}  // namespace

std::string encode(const PlanOptions& options) {
  Json subjects = Json::array();
  for (const SubjectFile& file : options.filters.subjects) {
    Json greetings = Json::object();
    for (const auto& [name, greeting] : file.greetings) {
      greetings[name] = {greeting.source.file, greeting.source.line, greeting.options,
                         greeting.reduction, greeting.arguments};
    }
    subjects.push_back({file.text, file.name, file.folder, std::move(greetings)});
  }
  return Json{{"losses", options.filters.losses},
              {"subjects", std::move(subjects)},
              {"implementations", options.filters.implementations},
              {"properties", options.filters.properties},
              {"dtypes", options.filters.dtypes},
              {"hardening", options.filters.hardening},
              {"profile", name(options.profile)},
              {"seed", options.seed},
              {"cases", options.cases},
              {"corpora", options.corpora}}
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
        impl::Greeting& greeting = subjects.greetings[name];
        said.at(0).get_to(greeting.source.file);
        said.at(1).get_to(greeting.source.line);
        said.at(2).get_to(greeting.options);
        said.at(3).get_to(greeting.reduction);
        said.at(4).get_to(greeting.arguments);
      }
    }
    json.at("hardening").get_to(options.filters.hardening);
    options.profile = fuzz::parse_profile(json.at("profile").get<std::string>()).value();
    json.at("seed").get_to(options.seed);
    json.at("cases").get_to(options.cases);
    json.at("corpora").get_to(options.corpora);
    return options;
  });
}

std::string encode(const Task& task) {
  return Json{{"begin", task.begin},
              {"end", task.end},
              {"loss", task.loss},
              {"variant", task.variant},
              {"skips", task.skips}}
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
