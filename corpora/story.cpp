// SPDX-License-Identifier: Apache-2.0
#include "corpora/story.h"

#include <algorithm>

#include "corpora/prose.h"

namespace lossgate::corpora {
namespace {

constexpr std::string_view kKey = "story";

/// Where a text says its story: from its key to the next one.
struct Place {
  std::size_t begin = std::string_view::npos, end = std::string_view::npos;
  bool found() const { return begin != std::string_view::npos; }
};

std::string_view line_at(std::string_view text, std::size_t at) {
  return text.substr(at, text.find('\n', at) - at);
}

/// Whether a line goes on with the value of the key above it.
bool goes_on(std::string_view line) { return line.empty() || line.starts_with(kIndent); }

Place story_in(std::string_view text) {
  const std::string mark = "\n" + std::string(kKey) + ":";
  const std::size_t fields = std::min(text.find("\nfield "), text.size());
  const std::size_t at = text.find(mark);
  if (at >= fields) return {};
  Place place{.begin = at + 1, .end = at + 1};
  do {
    place.end += line_at(text, place.end).size() + 1;
  } while (place.end < fields && goes_on(line_at(text, place.end)));
  return {place.begin, std::min(place.end, text.size())};
}

/// What is said there.
std::string story_at(std::string_view text, const Place& place) {
  std::vector<std::string> lines;
  std::size_t at = place.begin;
  std::string_view line = line_at(text, at);
  std::string_view value = line.substr(kKey.size() + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  if (!value.empty()) lines.emplace_back(value);
  for (at += line.size() + 1; at < place.end; at += line.size() + 1) {
    line = line_at(text, at);
    lines.emplace_back(line.substr(std::min(line.size(), kIndent.size())));
  }
  return tidy(unfold(lines));
}

}  // namespace

std::vector<std::string> paragraphs_of(std::string_view story) {
  std::vector<std::string> paragraphs;
  while (!story.empty()) {
    const std::string_view paragraph = line_at(story, 0);
    if (!paragraph.empty()) paragraphs.emplace_back(paragraph);
    story.remove_prefix(std::min(story.size(), paragraph.size() + 1));
  }
  return paragraphs;
}

std::string with_story_of(std::string_view text, std::string_view other) {
  const Place place = story_in(text), beside = story_in(other);
  if (!place.found()) return std::string(other);
  if (!beside.found()) return std::string(text);
  std::string story = story_at(text, place);
  std::vector<std::string> said = paragraphs_of(story);
  for (const std::string& paragraph : paragraphs_of(story_at(other, beside))) {
    if (std::ranges::find(said, paragraph) != said.end()) continue;
    said.push_back(paragraph);
    story += (story.empty() ? "" : "\n") + paragraph;
  }
  std::string whole(text.substr(0, place.begin));
  append_prose(whole, kKey, story);
  return whole.append(text.substr(place.end));
}

}  // namespace lossgate::corpora
