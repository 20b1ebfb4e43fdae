// SPDX-License-Identifier: Apache-2.0
#include "corpora/dump.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "corpora/element_text.h"

namespace lossgate::corpora {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kVersionKey = "lossgate-dump", kVersion = "1";
constexpr std::string_view kLoss = "observed.loss", kGradient = "observed.gradient.";
constexpr std::string_view kGiven = "given.", kRun = "run.", kKept = "kept.";

template <class Pairs>
auto* second_of(Pairs& pairs, std::string_view key) {
  const auto at = std::ranges::find_if(pairs, [&](const auto& pair) { return pair.first == key; });
  return at == pairs.end() ? nullptr : &at->second;
}

/// The metadata of a dump: what is wrong with one is said with its key.
class Facts {
 public:
  Facts(const TensorFile& file, std::string_view name) : file_(file), name_(name) {}

  std::string_view text(std::string_view key) const {
    const std::string* text = file_.find_metadata(key);
    return text ? std::string_view(*text) : "";
  }

  Json json(std::string_view key, const Json& standard) const {
    const std::string* text = file_.find_metadata(key);
    if (!text) return standard;
    Json json = Json::parse(*text, nullptr, false);
    if (json.is_discarded()) fail(key, "expected JSON", *text);
    return json;
  }

  std::vector<std::int64_t> numbers(std::string_view key) const {
    const Json list = json(key, Json::array());
    const auto whole = [](const Json& each) { return each.is_number_integer(); };
    if (!list.is_array() || !std::ranges::all_of(list, whole)) {
      fail(key, "expected a list of integers", text(key));
    }
    return list.get<std::vector<std::int64_t>>();
  }

  std::vector<std::string> names(std::string_view key) const {
    const Json list = json(key, Json::array());
    const auto word = [](const Json& each) { return each.is_string(); };
    if (!list.is_array() || !std::ranges::all_of(list, word)) {
      fail(key, "expected a list of names", text(key));
    }
    return list.get<std::vector<std::string>>();
  }

  std::map<std::string, std::int64_t> counts(std::string_view key) const {
    const Json object = json(key, Json::object());
    const auto whole = [](const Json& each) { return each.is_number_integer(); };
    if (!object.is_object() || !std::ranges::all_of(object, whole)) {
      fail(key, "expected integers by name", text(key));
    }
    return object.get<std::map<std::string, std::int64_t>>();
  }

  [[noreturn]] void fail(std::string_view key, std::string_view expected,
                         std::string_view found) const {
    throw FormatError(name_, 0, key, std::string(expected) + ", found " + in_quotes(found));
  }

 private:
  const TensorFile& file_;
  std::string_view name_;
};

/// What JSON has no word for, as Python's json and float() write it.
std::optional<double> not_finite(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "Infinity" || text == "\"inf\"") return kInfinity;
  if (text == "-Infinity" || text == "\"-inf\"") return -kInfinity;
  if (text == "NaN" || text == "\"nan\"") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

Dump::Given given_of(std::string name, const Facts& facts, std::string_view key) {
  Dump::Given given{.name = std::move(name), .kind = Option::Kind::real, .value = None{}};
  if (const auto number = not_finite(facts.text(key))) {
    given.value = *number;
    return given;
  }
  const Json json = facts.json(key, nullptr);
  if (json.is_boolean()) {
    given.kind = Option::Kind::flag;
    given.value = json.get<bool>() ? 1.0 : 0.0;
  } else if (json.is_number()) {
    given.kind = json.is_number_integer() ? Option::Kind::integer : Option::Kind::real;
    given.value = json.get<double>();
  } else if (!json.is_null()) {
    given.kind = Option::Kind::choice;
    given.value = json.is_string() ? json.get<std::string>() : std::string(facts.text(key));
  }
  return given;
}

void check_version(const TensorFile& file, std::string_view name) {
  const std::string& version = *file.find_metadata(kVersionKey);
  if (version == kVersion) return;
  throw FormatError(name, 0, kVersionKey,
                    "expected " + std::string(kVersion) + ", found " + in_quotes(version) +
                        ": written by another version of watch; read it with the lossgate that "
                        "this watch.py came with");
}

}  // namespace

const Tensor* Dump::find_field(std::string_view name) const { return second_of(fields, name); }

const Tensor* Dump::find_gradient(std::string_view field) const {
  return second_of(gradients, field);
}

const Dump::Given* Dump::find_given(std::string_view name) const {
  const auto at = std::ranges::find(given, name, &Given::name);
  return at == given.end() ? nullptr : &*at;
}

std::string Dump::run_fact(std::string_view key) const {
  const std::string* text = second_of(run, key);
  return text ? *text : "";
}

bool is_dump(const TensorFile& file) { return file.find_metadata(kVersionKey) != nullptr; }

Dump dump_of(TensorFile file, std::string_view file_name) {
  check_version(file, file_name);
  const Facts facts(file, file_name);
  Dump dump;
  if (const std::string* loss = file.find_metadata("loss")) dump.loss = *loss;
  if (const std::string* upstream = file.find_metadata("upstream")) {
    const std::optional<double> number = parse_number(*upstream);
    if (!number) facts.fail("upstream", "expected a number", *upstream);
    dump.upstream = *number;
  }
  dump.rows = facts.numbers("kept.rows");
  dump.tokens = facts.numbers("kept.tokens");
  dump.whole = facts.numbers("kept.of");
  dump.counts = facts.counts("kept.counts");
  dump.differentiable = facts.names("run.differentiable");
  for (const auto& [key, value] : file.metadata) {
    if (key.starts_with(kGiven)) {
      dump.given.push_back(given_of(key.substr(kGiven.size()), facts, key));
    } else if (key.starts_with(kRun)) {
      dump.run.emplace_back(key.substr(kRun.size()), value);
    } else if (key != kVersionKey && key != "loss" && key != "upstream" && key != "format" &&
               !key.starts_with(kKept)) {
      throw FormatError(file_name, 0, in_quotes(key), "expected a key that watch writes");
    }
  }
  for (auto& [name, tensor] : file.tensors) {
    if (name == kLoss) {
      dump.observed = std::move(tensor);
    } else if (name.starts_with(kGradient)) {
      dump.gradients.emplace_back(name.substr(kGradient.size()), std::move(tensor));
    } else {
      dump.fields.emplace_back(name, std::move(tensor));
    }
  }
  for (const auto& [field, gradient] : dump.gradients) {
    const Tensor* tensor = dump.find_field(field);
    if (!tensor || tensor->extents != gradient.extents) {
      throw FormatError(file_name, 0, std::string(kGradient) + field,
                        "expected the shape of the tensor " + in_quotes(field));
    }
  }
  if (dump.observed && dump.observed->size() != 1) {
    throw FormatError(file_name, 0, kLoss, "expected a single number");
  }
  return dump;
}

}  // namespace lossgate::corpora
