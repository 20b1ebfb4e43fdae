// SPDX-License-Identifier: Apache-2.0
#include "properties/spoilt_messages.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lossgate::properties {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Json> read_messages(const Tensor& payload) {
  std::vector<Json> messages;
  const auto width = static_cast<std::size_t>(payload.extents.back());
  const auto* text = reinterpret_cast<const char*>(payload.bytes.data());
  for (std::int64_t row = 0; row < payload.extents.front(); ++row, text += width) {
    messages.push_back(Json::parse(text, text + width, nullptr, false));
  }
  return messages;
}

/// As wide as the longest.
void write_messages(const std::vector<Json>& messages, Case& c, Tensor& payload) {
  std::vector<std::string> texts;
  std::size_t width = 1;
  for (const Json& message : messages) {
    texts.push_back(message.dump());
    width = std::max(width, texts.back().size());
  }
  c.shape[Axis::bytes] = static_cast<std::int64_t>(width);
  payload.extents.back() = c.shape[Axis::bytes];
  payload.bytes.assign(width * texts.size(), std::byte{' '});
  auto* row = reinterpret_cast<char*>(payload.bytes.data());
  for (const std::string& text : texts) {
    std::ranges::copy(text, row);
    row += width;
  }
}

/// Spoils one of the messages that `spoil` can spoil.
template <class Spoil>
bool spoil_one(const LossSignature& signature, Case& c, std::uint64_t pick, Spoil spoil) {
  for (const Field& field : signature.fields) {
    if (field.quantity != Quantity::payload) continue;
    Tensor& payload = c.batch.at(field.name);
    std::vector<Json> messages = read_messages(payload);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      Json& message = messages[(i + pick) % messages.size()];
      if (!message.is_object() || !spoil(message)) continue;
      write_messages(messages, c, payload);
      return true;
    }
  }
  return false;
}

/// The index-th list that is not empty of a list of lists, null where all are.
Json* list_with_items(Json& lists, std::uint64_t pick) {
  for (std::size_t i = 0; i < lists.size(); ++i) {
    Json& list = lists[(i + pick) % lists.size()];
    if (list.is_array() && !list.empty()) return &list;
  }
  return nullptr;
}

/// A list of one token's entries in the JSON form, null where nothing has entries.
Json* entries(Json& message, const char* key, std::uint64_t pick) {
  if (!message.contains(key)) return nullptr;
  Json* sequence = list_with_items(message[key], pick);
  return sequence ? list_with_items(*sequence, pick >> 8) : nullptr;
}

/// Whether something is said of its sequences at all.
bool says_something(const Json& message) {
  const auto lengths = message.find("sequence_lengths");
  return lengths != message.end() && !lengths->empty();
}

}  // namespace

bool drop_array(const LossSignature& signature, Case& c, std::uint64_t pick) {
  if (c.shape[Axis::responses] < 2) return false;
  return spoil_one(signature, c, pick, [&](Json& message) {
    std::vector<std::string> optional;
    for (const auto& [key, value] : message.items()) {
      if (key.starts_with("actual_")) optional.push_back(key);
    }
    return !optional.empty() && message.erase(optional[(pick >> 8) % optional.size()]) > 0;
  });
}

bool drop_completion(const LossSignature& signature, Case& c, std::uint64_t pick) {
  return spoil_one(signature, c, pick, [&](Json& message) {
    if (!says_something(message)) return false;
    Json& lengths = message["sequence_lengths"];
    const std::size_t sequence = (pick >> 8) % lengths.size();
    lengths[sequence] = message["prompt_lengths"][sequence];
    for (auto& [key, value] : message.items()) {
      if (key == "completion_lengths") value[sequence] = 0;
      const bool nested = value.is_array() && sequence < value.size() && value[sequence].is_array();
      if (nested) value[sequence] = Json::array();
    }
    return true;
  });
}

bool put_nan(const LossSignature& signature, Case& c, std::uint64_t pick) {
  return spoil_one(signature, c, pick, [&](Json& message) {
    Json* list = entries(message, "logprobs", pick);
    if (list) (*list)[(pick >> 16) % list->size()] = nullptr;
    return list != nullptr;
  });
}

bool shorten_list(const LossSignature& signature, Case& c, std::uint64_t pick) {
  return spoil_one(signature, c, pick, [&](Json& message) {
    Json* list = entries(message, "logprob_token_ids", pick);
    if (list) list->erase(list->size() - 1);
    return list != nullptr;
  });
}

bool cut_text(const LossSignature& signature, Case& c, std::uint64_t pick) {
  return spoil_one(signature, c, pick, [&](Json& message) {
    std::vector<std::string> texts;
    for (const auto& [key, value] : message.items()) {
      if (value.is_string() && value != "") texts.push_back(key);
    }
    if (texts.empty()) return false;
    std::string text = message[texts[(pick >> 8) % texts.size()]];
    text.resize(text.size() - std::min<std::size_t>(text.size(), 4));
    message[texts[(pick >> 8) % texts.size()]] = text;
    return true;
  });
}

}  // namespace lossgate::properties
