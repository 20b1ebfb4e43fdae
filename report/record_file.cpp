// SPDX-License-Identifier: Apache-2.0
#include "report/record_file.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "report/parsed_json.h"
#include "report/record_fields.h"

namespace lossgate::report {
namespace {

using Json = nlohmann::ordered_json;
using Verdicts = std::array<std::int64_t, 5>;

template <class T>
concept Struct = requires(T& value) {
  fields(value, [](const char*, auto&) {});
};

template <class T>
Json encode(const T& value);

// JSON has no infinity and no NaN.
Json encode(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json encode(const Verdicts& counts) {
  Json object = Json::object();
  for (const properties::Verdict verdict : properties::kAllVerdicts) {
    object[std::string(name(verdict))] = counts[static_cast<std::size_t>(verdict)];
  }
  return object;
}

template <class T>
Json encode(const std::vector<T>& list) {
  Json array = Json::array();
  for (const T& value : list) array.push_back(encode(value));
  return array;
}

template <class T>
Json encode(const T& value) {
  if constexpr (Struct<T>) {
    Json object = Json::object();
    // fields() takes a mutable object so that one list serves both directions; nothing is changed.
    fields(const_cast<T&>(value),
           [&](const char* key, const auto& member) { object[key] = encode(member); });
    return object;
  } else {
    return value;
  }
}

struct Reader {
  std::string_view file;

  [[noreturn]] void fail(const std::string& path, const std::string& expected) const {
    throw RecordError(std::string(file) + ": " + path + ": expected " + expected);
  }

  void read(const Json& json, double& value, const std::string& path) const {
    if (json.is_number()) {
      value = json.get<double>();
    } else if (json == "inf" || json == "-inf") {
      value = std::numeric_limits<double>::infinity() * (json == "inf" ? 1 : -1);
    } else if (json == "nan") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else {
      fail(path, "a number, \"inf\", \"-inf\" or \"nan\"");
    }
  }
  void read(const Json& json, bool& value, const std::string& path) const {
    if (!json.is_boolean()) fail(path, "true or false");
    value = json.get<bool>();
  }
  void read(const Json& json, std::string& value, const std::string& path) const {
    if (!json.is_string()) fail(path, "a string");
    value = json.get<std::string>();
  }
  void read(const Json& json, std::int64_t& value, const std::string& path) const {
    if (!json.is_number_integer()) fail(path, "an integer");
    if (json > kLargestCount || json < -kLargestCount) fail(path, "an integer below 2^48");
    value = json.get<std::int64_t>();
  }
  void read(const Json& json, std::uint64_t& value, const std::string& path) const {
    if (!json.is_number_unsigned()) fail(path, "an integer, 0 or more");
    value = json.get<std::uint64_t>();
  }
  void read(const Json& json, Verdicts& value, const std::string& path) const {
    for (const properties::Verdict verdict : properties::kAllVerdicts) {
      const std::string key(name(verdict));
      if (!json.is_object() || !json.contains(key)) fail(path + "." + key, "a count");
      read(json[key], value[static_cast<std::size_t>(verdict)], path + "." + key);
    }
  }
  void read(const Json& json, std::map<std::string, std::int64_t>& value,
            const std::string& path) const {
    if (!json.is_object()) fail(path, "an object");
    for (const auto& [key, count] : json.items()) read(count, value[key], path + "." + key);
  }
  template <class T>
  void read(const Json& json, std::vector<T>& list, const std::string& path) const {
    if (!json.is_array()) fail(path, "a list");
    for (std::size_t i = 0; i < json.size(); ++i) {
      read(json[i], list.emplace_back(), path + "[" + std::to_string(i) + "]");
    }
  }
  template <Struct T>
  void read(const Json& json, T& value, const std::string& path) const {
    if (!json.is_object()) fail(path.empty() ? "the file" : path, "an object");
    fields(value, [&](auto name, auto& member) {
      const char* key = name;
      const std::string inner = path.empty() ? key : path + "." + key;
      const auto found = json.find(key);
      if (found == json.end() && std::is_same_v<decltype(name), Later>) return;
      if (found == json.end()) fail(inner, "this key");
      read(*found, member, inner);
    });
  }
};

}  // namespace

std::string to_json(const RunRecord& record, int indent) {
  // Replacing what is not UTF-8: a message from elsewhere must not cost the record.
  return encode(record).dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

RunRecord from_json(std::string_view text, std::string_view file_name) {
  const Reader reader{file_name};
  const Json json = parsed_json(text, file_name, "the gate");
  RunRecord record;
  if (!json.is_object() || !json.contains("schema")) reader.fail("schema", "this key");
  reader.read(json["schema"], record.schema, "schema");
  if (record.schema != kSchemaVersion) {
    reader.fail("schema", "version " + std::to_string(kSchemaVersion) + ", not " +
                              std::to_string(record.schema));
  }
  reader.read(json, record, "");
  return record;
}

RunRecord read_record(const std::filesystem::path& file) {
  return from_json(read_text(file, "a run.json"), file.string());
}

}  // namespace lossgate::report
