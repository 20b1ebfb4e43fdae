// SPDX-License-Identifier: Apache-2.0
#include "impl/external/greeting.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

namespace lossgate::impl {
namespace {

using Json = nlohmann::json;
using corpora::TensorFile;

Json option_json(const OptionValue& value) {
  if (const double* number = std::get_if<double>(&value)) return *number;
  if (const std::string* word = std::get_if<std::string>(&value)) return *word;
  return nullptr;
}

/// Nothing where no option has such values.
std::optional<OptionValue> option_value(const Json& json) {
  if (json.is_null()) return None{};
  if (json.is_boolean()) return json.get<bool>() ? 1.0 : 0.0;
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return std::nullopt;
}

Json axes_json(const std::vector<Axis>& axes) {
  Json list = Json::array();
  for (const Axis axis : axes) list.push_back(name(axis));
  return list;
}

std::vector<std::pair<std::string, std::string>> pairs_of(const TensorFile& answer,
                                                          std::string_view key) {
  std::vector<std::pair<std::string, std::string>> list;
  const Json object = Json::parse(text_of(answer, key));
  for (const auto& [name, value] : object.items()) {
    list.emplace_back(name, value.get<std::string>());
  }
  return list;
}

/// Those of a tuple are in the order in which the subject says that it returns them.
std::vector<OutputField> listed_outputs(const Subject& subject, const LossSignature& loss) {
  if (!subject.weighed_outputs) return loss.outputs;
  std::vector<OutputField> list;
  for (const std::string& name : subject.outputs) {
    const auto output = std::ranges::find(loss.outputs, name, &OutputField::name);
    if (output != loss.outputs.end()) list.push_back(*output);
  }
  return list;
}

}  // namespace

std::string text_of(const TensorFile& message, std::string_view key) {
  const std::string* text = message.find_metadata(key);
  return text ? *text : "";
}

bool takes(const Greeting& greeting, const Field& field) {
  const std::string source = "field:" + field.name;
  return std::ranges::any_of(greeting.arguments, [&](const auto& argument) {
    return argument.second == source || argument.second.starts_with(source + " ");
  });
}

std::vector<std::string> optional_fields_not_taken(const Greeting& greeting,
                                                   const LossSignature& loss) {
  std::vector<std::string> fields;
  for (const Field& field : loss.fields) {
    if (field.optional && !takes(greeting, field)) fields.push_back(field.name);
  }
  return fields;
}

std::vector<std::pair<std::string, std::string>> tied_options(const Greeting& greeting,
                                                              const Subject& subject) {
  auto tied = greeting.tied;
  std::erase_if(tied, [&](const auto& pair) {
    return std::ranges::any_of(subject.options,
                               [&](const auto& own) { return own.first == pair.first; });
  });
  return tied;
}

void heed(const Greeting& greeting, const LossSignature& loss, Subject& subject) {
  subject.tied = tied_options(greeting, subject);
  subject.without = optional_fields_not_taken(greeting, loss);
  for (const auto& [parameter, source] : greeting.arguments) {
    if (is_converted(source, "size")) subject.contract.uneven_groups = false;
    if (is_converted(source, "lengths")) subject.contract.scattered_mask = false;
  }
}

std::vector<Axis> axes_of_outputs_alone(const LossSignature& loss) {
  std::vector<Axis> axes;
  for (const Axis axis : kAllAxes) {
    const bool of_output = std::ranges::any_of(
        loss.outputs, [&](const OutputField& output) { return contains(output.axes, axis); });
    if (of_output && !loss.has_axis(axis)) axes.push_back(axis);
  }
  return axes;
}

TensorFile hello(const Subject& subject, const LossSignature& loss) {
  Json fields = Json::array(), outputs = Json::array(), options = Json::array();
  Json reductions = Json::array();
  for (const Field& field : loss.fields) {
    fields.push_back({{"name", field.name},
                      {"role", name(field.role)},
                      {"quantity", name(field.quantity)},
                      {"axes", axes_json(field.axes)}});
  }
  for (const OutputField& output : listed_outputs(subject, loss)) {
    Json& json = outputs.emplace_back();
    json = {{"name", output.name}, {"axes", axes_json(output.axes)}};
    if (!output.dtypes.empty()) json["dtype"] = name(output.dtypes.front());
  }
  for (const Option& option : loss.options) {
    options.push_back({{"name", option.name},
                       {"kind", name(option.kind)},
                       {"standard", option_json(option.standard)}});
  }
  for (const Reduction reduction : loss.reductions) reductions.push_back(name(reduction));
  Json path = Json::array({"."});
  for (const std::string& folder : subject.path) path.push_back(folder);
  Json arguments = Json::object();
  for (const auto& [parameter, source] : subject.arguments) arguments[parameter] = source;
  return {.tensors = {},
          .metadata = {{"op", "hello"},
                       {"protocol", "1"},
                       {"subject", subject.name},
                       {"entry", subject.entry},
                       {"path", path.dump()},
                       {"device", subject.device},
                       {"threads", std::to_string(subject.threads)},
                       {"loss", loss.id},
                       {"fields", fields.dump()},
                       {"outputs", outputs.dump()},
                       {"options", options.dump()},
                       {"reductions", reductions.dump()},
                       {"returns", subject.per_token         ? "per_token"
                                   : subject.weighed_outputs ? "outputs"
                                                             : "loss"},
                       {"arguments", arguments.dump()}}};
}

Greeting greeting_of(const TensorFile& answer) {
  Greeting greeting;
  greeting.source.file = text_of(answer, "file");
  const std::string line = text_of(answer, "line");
  std::from_chars(line.data(), line.data() + line.size(), greeting.source.line);
  greeting.code = text_of(answer, "code");
  greeting.versions = pairs_of(answer, "versions");
  greeting.arguments = pairs_of(answer, "arguments");
  greeting.options = Json::parse(text_of(answer, "options")).get<std::vector<std::string>>();
  greeting.facts = Json::parse(text_of(answer, "facts")).get<std::vector<std::string>>();
  greeting.reduction = text_of(answer, "reduction") == "1";
  if (answer.find_metadata("tied")) greeting.tied = pairs_of(answer, "tied");
  if (answer.find_metadata("omissible")) {
    greeting.omissible = Json::parse(text_of(answer, "omissible")).get<std::vector<std::string>>();
  }
  if (answer.find_metadata("left")) greeting.left = pairs_of(answer, "left");
  if (answer.find_metadata("defaults")) {
    const Json defaults = Json::parse(text_of(answer, "defaults"));
    for (const auto& [option, json] : defaults.items()) {
      if (auto value = option_value(json)) greeting.defaults.emplace_back(option, *value);
    }
  }
  return greeting;
}

}  // namespace lossgate::impl
