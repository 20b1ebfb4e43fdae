// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "report/page/parts.h"
#include "report/plain_text.h"
#include "report/value_text.h"

namespace lossgate::report {
namespace {

constexpr std::int64_t kMostRows = 12, kMostColumns = 16;

/// A place as a record has it: "gradient.log_prob[0, 1] (sequence 0, token 1, masked)".
struct NamedPlace {
  std::string output;
  std::vector<std::int64_t> coordinates;
  std::int64_t sequence = -1, token = -1;
};

std::optional<std::int64_t> number_at(std::string_view text) {
  std::int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::int64_t number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  return at == std::string_view::npos ? -1 : number_at(text.substr(at + word.size())).value_or(-1);
}

NamedPlace read_place(std::string_view text) {
  NamedPlace place;
  place.sequence = number_after(text, "(sequence ");
  place.token = number_after(text, ", token ");
  const std::size_t end = text.find_first_of("[ ");
  place.output = text.substr(0, end);
  if (end == std::string_view::npos || text[end] != '[') return place;
  std::string_view rest = text.substr(end);
  while (!rest.empty() && rest[0] != ']') {
    rest.remove_prefix(rest[0] == '[' ? 1 : 2);  // "[" or ", "
    const auto number = number_at(rest);
    if (!number) break;
    place.coordinates.push_back(*number);
    rest.remove_prefix(std::min(rest.find_first_of(",]"), rest.size()));
  }
  return place;
}

/// How a field, or its gradient, lies on paper: the last axis across, all others down.
struct Sheet {
  std::string title, kind;
  const Field& field;
  const Tensor& tensor;
  std::int64_t rows = 1, columns = 1;

  Sheet(std::string heading, std::string what, const Field& f, const Tensor& t)
      : title(std::move(heading)), kind(std::move(what)), field(f), tensor(t) {
    // One number for each sequence stands in a column, as its sequences do elsewhere.
    const bool column = field.axes.size() == 1 && has_rows(field.axes);
    columns = tensor.extents.empty() || column ? 1 : tensor.extents.back();
    rows = columns == 0 ? 0 : tensor.size() / columns;
  }

  std::vector<std::int64_t> coordinates(std::int64_t index) const {
    std::vector<std::int64_t> at(tensor.extents.size());
    for (std::size_t i = at.size(); i-- > 0;) {
      at[i] = index % tensor.extents[i];
      index /= tensor.extents[i];
    }
    return at;
  }
  std::int64_t along(Axis axis, const std::vector<std::int64_t>& at) const {
    for (std::size_t i = 0; i < field.axes.size() && i < at.size(); ++i) {
      if (field.axes[i] == axis) return at[i];
    }
    return -1;
  }
};

class Drawing {
 public:
  Drawing(const StoredCase& stored, const RecordedFinding& finding)
      : stored_(stored), finding_(finding), place_(read_place(finding.place)) {
    valid_ = valid_positions(*stored.signature, stored.c);
  }

  std::string html() const {
    std::string fields;
    for (const Field& field : stored_.signature->fields) {
      const Tensor* tensor = stored_.c.batch.find(field.name);
      if (!tensor || field.quantity == Quantity::payload) continue;
      fields += figure({field.name, std::string(name(field.role)), field, *tensor});
      if (const auto gradient = gradient_of(field, *tensor)) {
        fields += figure({"gradient." + field.name, "as computed", field, *gradient});
      }
    }
    return fmt::format(
        "<div class=\"drawing\"><p class=\"quiet\">The case: {}</p><div class=\"fields\">{}</div>"
        "<p class=\"readout quiet\"></p></div>",
        report::html(case_line(*stored_.signature, stored_.c)), fields);
  }

 private:
  // As the implementation gave it on the undivided case, where the record has it.
  std::optional<Tensor> gradient_of(const Field& field, const Tensor& tensor) const {
    const auto found =
        std::ranges::find(finding_.outputs, "gradient." + field.name, &RecordedOutput::name);
    if (found == finding_.outputs.end() || found->extents != tensor.extents ||
        std::ssize(found->values) != tensor.size() || !is_float(tensor.dtype)) {
      return std::nullopt;
    }
    Tensor gradient = Tensor::zeros(tensor.dtype, tensor.extents);
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      gradient.set(i, found->values[static_cast<std::size_t>(i)]);
    }
    return gradient;
  }

  std::string figure(const Sheet& sheet) const {
    const std::int64_t rows = std::min(sheet.rows, kMostRows);
    const std::int64_t columns = std::min(sheet.columns, kMostColumns);
    std::string body;
    for (std::int64_t row = 0; row < rows; ++row) {
      body += "<tr>";
      for (std::int64_t column = 0; column < columns; ++column) {
        body += cell(sheet, row * sheet.columns + column);
      }
    }
    const bool cut = rows < sheet.rows || columns < sheet.columns;
    return fmt::format(
        "<figure><figcaption>{} <span class=\"quiet\">{}, {}{}</span></figcaption>"
        "<table class=\"grid\">{}</table></figure>",
        report::html(sheet.title), sheet.kind, name(sheet.tensor.dtype),
        cut ? fmt::format(", {} x {} of {} x {}", rows, columns, sheet.rows, sheet.columns)
        : sheet.tensor.size() == 0 ? ", empty"
                                   : "",
        body);
  }

  bool masked(const Sheet& sheet, const std::vector<std::int64_t>& at) const {
    if (!has_positions(sheet.field.axes)) return false;
    const std::int64_t position = sheet.along(Axis::sequences, at) * stored_.c.shape[Axis::tokens] +
                                  sheet.along(Axis::tokens, at);
    return position < std::ssize(valid_) && !valid_[static_cast<std::size_t>(position)];
  }

  // Whether the finding speaks of this entry: by name, or by its position.
  bool marked(const Sheet& sheet, const std::vector<std::int64_t>& at) const {
    if (place_.output == "gradient." + sheet.field.name) return at == place_.coordinates;
    if (sheet.title != sheet.field.name) return false;  // another field's gradient
    const std::int64_t sequence = sheet.along(Axis::sequences, at);
    const std::int64_t token = sheet.along(Axis::tokens, at);
    return place_.sequence >= 0 && place_.token >= 0 && sequence == place_.sequence &&
           token == place_.token;
  }

  std::string cell(const Sheet& sheet, std::int64_t index) const {
    const std::vector<std::int64_t> at = sheet.coordinates(index);
    const bool is_masked = masked(sheet, at), is_marked = marked(sheet, at);
    const std::byte* bits = sheet.tensor.element(index);
    std::string classes = shade(sheet, index), title;
    if (is_masked) classes += " m";
    if (is_marked) classes += " x";
    if (!at.empty()) title = fmt::format("[{}] ", fmt::join(at, ", "));
    title += with_bits(sheet.tensor.dtype, bits);
    if (is_masked) title += ", masked";
    if (is_marked) title += ", the place of the finding";
    const std::string shown = is_float(sheet.tensor.dtype)
                                  ? brief(sheet.tensor.at(index))
                                  : std::to_string(sheet.tensor.integer_at(index));
    return fmt::format("<td class=\"{}\" title=\"{}\">{}", classes, title, shown);
  }

  /// The style's letter for a value: sentinels by name, others by sign and order of magnitude.
  static std::string shade(const Sheet& sheet, std::int64_t index) {
    if (!is_float(sheet.tensor.dtype)) return "k";
    const double value = sheet.tensor.at(index);
    if (!std::isfinite(value)) return "q";
    if (value == 0.0) return "z";
    const double magnitude = std::fabs(value);
    const int step = magnitude < 0.01 ? 1 : magnitude < 1.0 ? 2 : magnitude < 30.0 ? 3 : 4;
    return fmt::format("{}{}", value < 0.0 ? "b" : "a", step);
  }

  const StoredCase& stored_;
  const RecordedFinding& finding_;
  NamedPlace place_;
  std::vector<bool> valid_;
};

}  // namespace

std::string drawing(const StoredCase& stored, const RecordedFinding& finding) {
  return Drawing(stored, finding).html();
}

}  // namespace lossgate::report
