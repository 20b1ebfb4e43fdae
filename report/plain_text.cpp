// SPDX-License-Identifier: Apache-2.0
#include "report/plain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace lossgate::report {
namespace {

constexpr std::uint32_t kNoCharacter = 0xFFFFFFFF;

// Takes one character off the front; a byte that begins none is taken alone.
std::uint32_t take(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t lead = byte(0);
  const std::size_t length = lead < 0x80              ? 1
                             : (lead >> 5) == 0b110   ? 2
                             : (lead >> 4) == 0b1110  ? 3
                             : (lead >> 3) == 0b11110 ? 4
                                                      : 0;
  std::uint32_t character = length == 1 ? lead : lead & (0xFFU >> (length + 1));
  bool whole = length > 0 && length <= text.size();
  for (std::size_t i = 1; whole && i < length; ++i) {
    whole = (byte(i) >> 6) == 0b10;
    character = character << 6 | (byte(i) & 0x3FU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  whole = whole && character >= kLeast[length] && character <= 0x10FFFF &&
          (character < 0xD800 || character > 0xDFFF);
  text.remove_prefix(whole ? length : 1);
  return whole ? character : kNoCharacter;
}

bool turns_direction(std::uint32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

// Characters that show nothing, or that no XML may hold.
bool unseen(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200D) || c == 0x2060 ||
         c == 0xFEFF || (c & 0xFFFE) == 0xFFFE || (c >= 0xFDD0 && c <= 0xFDEF);
}

bool is_space(std::uint32_t c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029;
}

bool is_alphanumeric(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0; }

// Whether the colon there is of an address, or ends a name such as :tada:, which would be drawn; of
// digits alone there are two.
bool means_something(std::string_view text, std::size_t colon) {
  if (text.substr(colon + 1).starts_with("//")) return true;
  std::size_t begin = colon;
  while (begin > 0 && (is_alphanumeric(text[begin - 1]) ||
                       std::string_view("_+-").find(text[begin - 1]) != std::string_view::npos)) {
    --begin;
  }
  const std::string_view name = text.substr(begin, colon - begin);
  if (name.empty() || begin == 0 || text[begin - 1] != ':') return false;
  const bool digits = name.find_first_not_of("0123456789") == name.npos;
  return !digits || name == "100" || name == "1234";
}

// Plain text with some of its characters written otherwise.
template <class Escape>
std::string escaped(std::string_view text, std::size_t most, Escape escape) {
  std::string result;
  for (const char letter : plain(text, most)) escape(result, letter);
  return result;
}

}  // namespace

std::string plain(std::string_view text, std::size_t most) {
  std::string result;
  std::string_view rest = text;
  while (!rest.empty() && result.size() < most) {
    if (rest[0] >= ' ' && rest[0] <= '~') {  // as nearly all are
      result += rest[0];
      rest.remove_prefix(1);
      continue;
    }
    const std::string_view before = rest;
    const std::uint32_t c = take(rest);
    if (c == kNoCharacter) {
      result += "\xEF\xBF\xBD";
    } else if (is_space(c)) {
      result += ' ';
    } else if (turns_direction(c) || unseen(c)) {
      result += fmt::format("{{{:04x}}}", c);
    } else {
      result += before.substr(0, before.size() - rest.size());
    }
  }
  if (!rest.empty()) result += fmt::format(" ... ({} bytes)", grouped(std::ssize(text)));
  return result;
}

std::string html(std::string_view text, std::size_t most) {
  return escaped(text, most, [](std::string& result, char letter) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += letter;
    }
  });
}

std::string markdown_text(std::string_view text, std::size_t most) {
  constexpr std::string_view kMeaning = "\\`*_[]<>#|~@&$", kAtABeginning = "+=";
  const std::string letters = plain(text, most);
  const auto in_word = [&](std::size_t i) {
    return i < letters.size() && is_alphanumeric(letters[i]);
  };
  std::string result;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const char letter = letters[i];
    const bool joins = letter == '_' && i > 0 && in_word(i - 1) && in_word(i + 1);
    const bool means = kMeaning.find(letter) != kMeaning.npos ||
                       (letter == ':' && means_something(letters, i)) ||
                       (i == 0 && kAtABeginning.find(letter) != kAtABeginning.npos);
    if (means && !joins) {
      result += fmt::format("&#{};", static_cast<int>(letter));
    } else {
      result += letter;
    }
  }
  return result;
}

std::string grouped(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::ptrdiff_t first = count < 0 ? 1 : 0;
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > first; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

std::string anchor(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace lossgate::report
