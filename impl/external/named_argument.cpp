// SPDX-License-Identifier: Apache-2.0
#include "impl/external/named_argument.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace lossgate::impl {
namespace {

bool is_letter(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Where the word first stands in the text.
std::size_t find_word(std::string_view text, std::string_view word) {
  for (std::size_t at = 0; (at = text.find(word, at)) != text.npos; ++at) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_letter(text[at - 1])) && (end == text.size() || !is_letter(text[end]))) {
      return at;
    }
  }
  return text.npos;
}

}  // namespace

std::vector<std::string> named_arguments(std::string_view message, const LossSignature& loss,
                                         const Greeting& greeting) {
  std::map<std::string, std::size_t> places;
  const auto look = [&](std::string_view word, std::string_view argument) {
    const std::size_t at = find_word(message, word);
    if (at == message.npos) return;
    const auto [known, is_new] = places.emplace(argument, at);
    if (!is_new) known->second = std::min(known->second, at);
  };
  for (const Field& field : loss.fields) look(field.name, field.name);
  for (const Option& option : loss.options) look(option.name, option.name);
  look("reduction", "reduction");
  for (const auto& [parameter, source] : greeting.arguments) {
    const std::string_view plain = std::string_view(source).substr(0, source.find(' '));
    const std::size_t colon = plain.find(':');
    const bool input = plain.starts_with("field:") || plain.starts_with("option:");
    if (input || plain == "reduction") look(parameter, input ? plain.substr(colon + 1) : plain);
  }
  std::vector<std::string> names;
  for (const auto& [name, at] : places) names.push_back(name);
  std::ranges::sort(names, {}, [&](const std::string& name) { return places.at(name); });
  return names;
}

}  // namespace lossgate::impl
