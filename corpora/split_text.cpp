// SPDX-License-Identifier: Apache-2.0
#include "corpora/split_text.h"

#include <algorithm>
#include <optional>

#include "corpora/element_text.h"

namespace lossgate::corpora {
namespace {

constexpr std::int64_t kMaxWorld = 1 << 16;

/// Cuts the text before the separator off and returns it, without the spaces around it.
std::string_view next_item(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  std::string_view item = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  while (item.starts_with(' ')) item.remove_prefix(1);
  while (item.ends_with(' ')) item.remove_suffix(1);
  return item;
}

/// "tokens 3" gives 3 where the word is "tokens".
std::optional<std::int64_t> number_after(std::string_view item, std::string_view word) {
  if (!item.starts_with(word)) return std::nullopt;
  item.remove_prefix(word.size());
  if (!item.starts_with(' ')) return std::nullopt;
  while (item.starts_with(' ')) item.remove_prefix(1);
  return parse_integer(item);
}

bool uses(const LossSignature& signature, Axis axis, bool fields_only) {
  const auto has = [axis](const OutputField& output) { return contains(output.axes, axis); };
  return signature.has_axis(axis) || (!fields_only && std::ranges::any_of(signature.outputs, has));
}

Axis read_axis(const Header& header, const LossSignature& signature, std::string_view item,
               std::int64_t& extent) {
  std::vector<std::string_view> names;
  for (Axis axis : kAllAxes) {
    if (!uses(signature, axis, false)) continue;
    names.push_back(name(axis));
    const std::optional<std::int64_t> number = number_after(item, name(axis));
    if (!number) continue;
    if (*number < 0 || *number > kMaxExtent) break;
    extent = *number;
    return axis;
  }
  header.fail("shape", "expected the name of an axis (" + listed(names) +
                           ") and its length from 0 to " + std::to_string(kMaxExtent) + ", found " +
                           in_quotes(item));
}

std::optional<Split::Part> read_part(std::string_view item, int world, std::int64_t sequences,
                                     std::vector<bool>& dealt) {
  const std::size_t colon = item.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view rest = item.substr(colon + 1);
  const std::optional<std::int64_t> rank = number_after(item.substr(0, colon), "rank");
  if (!rank || *rank < 0 || *rank >= world) return std::nullopt;
  Split::Part part{.rank = static_cast<int>(*rank), .sequences = {}};
  while (!rest.empty()) {
    const std::string_view word = next_item(rest, ' ');
    if (word.empty()) continue;
    const std::optional<std::int64_t> sequence = parse_integer(word);
    if (!sequence || *sequence < 0 || *sequence >= sequences) return std::nullopt;
    if (dealt[static_cast<std::size_t>(*sequence)]) return std::nullopt;
    dealt[static_cast<std::size_t>(*sequence)] = true;
    part.sequences.push_back(*sequence);
  }
  return part;
}

}  // namespace

std::string write_shape(const Shape& shape) {
  std::string text;
  for (Axis axis : kAllAxes) {
    if (shape[axis] == -1) continue;
    if (!text.empty()) text += ", ";
    text += std::string(name(axis)) + " " + std::to_string(shape[axis]);
  }
  return text.empty() ? "scalar" : text;
}

Shape read_shape(const Header& header, const LossSignature& signature, const Shape& known) {
  Shape shape;
  std::string_view rest = header.require("shape");
  if (rest == "scalar")
    rest = "";
  else if (rest.empty())
    header.fail("shape", "expected axes and their lengths, or scalar");
  while (!rest.empty()) {
    std::int64_t extent = 0;
    const bool more = rest.find(',') != std::string_view::npos;
    const Axis axis = read_axis(header, signature, next_item(rest, ','), extent);
    const std::string axis_name(name(axis));
    if (shape[axis] != -1) header.fail("shape", "expected the axis " + axis_name + " only once");
    if (known[axis] != -1 && known[axis] != extent) {
      header.fail("shape", "expected " + axis_name + " " + std::to_string(known[axis]) +
                               " as the tensors have it, found " + std::to_string(extent));
    }
    if (more && rest.empty()) header.fail("shape", "expected an axis after the last comma");
    shape[axis] = extent;
  }
  for (Axis axis : kAllAxes) {
    if (shape[axis] == -1 && uses(signature, axis, true)) {
      header.fail("shape", "expected the axis " + std::string(name(axis)) + ", found no such axis");
    }
  }
  return shape;
}

void check_empty_axes(const Header& header, const LossSignature& signature, const Shape& shape) {
  for (Axis axis : kAllAxes) {
    if (shape[axis] <= kMaxEmptyExtent) continue;
    const auto has_elements = [&](const Field& field) {
      const auto empty = [&](Axis other) { return shape[other] == 0; };
      return contains(field.axes, axis) && std::ranges::none_of(field.axes, empty);
    };
    if (std::ranges::any_of(signature.fields, has_elements)) continue;
    header.fail("shape", "expected at most " + std::to_string(kMaxEmptyExtent) + " " +
                             std::string(name(axis)) + " where no field has an element, found " +
                             std::to_string(shape[axis]));
  }
}

std::string write_split(const Split& split) {
  if (split.whole() && split.world == 1) return "whole";
  std::string text = "world " + std::to_string(split.world);
  for (const Split::Part& part : split.parts) {
    text += "; rank " + std::to_string(part.rank) + ":";
    for (std::int64_t sequence : part.sequences) text += " " + std::to_string(sequence);
  }
  return text;
}

Split read_split(const Header& header, std::string_view text, std::int64_t sequences) {
  if (text == "whole") return {};
  std::string_view rest = text;
  const std::string_view first = next_item(rest, ';');
  const std::optional<std::int64_t> world = number_after(first, "world");
  if (!world || *world < 1 || *world > kMaxWorld) {
    header.fail("split", "expected whole, or world N with N from 1 to " +
                             std::to_string(kMaxWorld) + ", found " + in_quotes(first));
  }
  Split split{.world = static_cast<int>(*world), .parts = {}};
  std::vector<bool> dealt(static_cast<std::size_t>(std::max<std::int64_t>(sequences, 0)), false);
  while (!rest.empty()) {
    const std::string_view item = next_item(rest, ';');
    std::optional<Split::Part> part = read_part(item, split.world, sequences, dealt);
    if (!part) {
      header.fail("split", "expected rank R: and sequences, R below " +
                               std::to_string(split.world) + ", each sequence below " +
                               std::to_string(sequences) + " and in one part only, found " +
                               in_quotes(item));
    }
    split.parts.push_back(std::move(*part));
  }
  const auto left = std::ranges::find(dealt, false);
  if (!split.whole() && left != dealt.end()) {
    header.fail("split", "expected every sequence in a part, found none with sequence " +
                             std::to_string(left - dealt.begin()));
  }
  return split;
}

}  // namespace lossgate::corpora
