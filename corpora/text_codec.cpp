// SPDX-License-Identifier: Apache-2.0
#include "corpora/text_codec.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "corpora/case_check.h"
#include "corpora/element_text.h"
#include "corpora/prose.h"
#include "corpora/utf8.h"

namespace lossgate::corpora {
namespace {

constexpr std::string_view kFirstKey = "lossgate-case";

// ---------------------------------------------------------------- writing

void write_entry(std::string& text, const std::string& key, const std::string& value) {
  const bool prose = key == "title" || key == "story" || key == "found_by" || key == "expect";
  if (prose) return append_prose(text, key, value);
  text += key + ": " + value + "\n";
}

void write_field(std::string& text, const Field& field, const Tensor& tensor) {
  text.append("\nfield ").append(field.name).append(" ").append(name(tensor.dtype)).append("\n");
  const std::int64_t row = tensor.extents.empty() ? 1 : tensor.extents.back();
  const std::int64_t matrix = tensor.extents.size() < 3 ? 0 : row * tensor.extents.end()[-2];
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (matrix > 0 && i > 0 && i % matrix == 0) text += '\n';
    text += i % row == 0 ? kIndent : " ";
    append_element(text, tensor.dtype, tensor.element(i));
    if ((i + 1) % row == 0) text += '\n';
  }
}

// ---------------------------------------------------------------- reading

struct Line {
  std::string_view text;
  int number = 0;
};

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == line.npos; }
bool is_field(std::string_view line) { return line == "field" || line.starts_with("field "); }

/// Checks what is true of every text file, before anything is read out of it.
void check_text(std::string_view text, std::string_view file) {
  const auto line_of = [text](std::size_t at) {
    return 1 + static_cast<int>(std::ranges::count(text.substr(0, at), '\n'));
  };
  if (text.empty()) throw FormatError(file, 0, "", "expected a case, found an empty file");
  if (text.starts_with("\xef\xbb\xbf")) {
    throw FormatError(file, 1, "", "expected no byte order mark before the first line");
  }
  if (const std::size_t good = valid_utf8_prefix(text); good != text.size()) {
    throw FormatError(file, line_of(good), "", "expected UTF-8 text, found a byte that is not");
  }
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f;
  };
  if (const auto at = std::ranges::find_if(text, is_control); at != text.end()) {
    throw FormatError(file, line_of(static_cast<std::size_t>(at - text.begin())), "",
                      "expected text, found a control character");
  }
  if (!text.ends_with('\n')) {
    throw FormatError(file, line_of(text.size()), "",
                      "expected a line end after the last line: the file is cut off");
  }
}

/// All lines but comments.
std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with('#')) lines.push_back({line, number});
    text.remove_prefix(end + 1);
  }
  return lines;
}

Entry read_entry(const Line& line, std::string_view file) {
  const std::size_t colon = line.text.find(':');
  const std::string_view rest = line.text.substr(std::min(colon, line.text.size() - 1) + 1);
  const bool named =
      colon != 0 && colon != line.text.npos && line.text[0] != '\t' && line.text[0] != ' ';
  if (!named || (!rest.empty() && rest[0] != ' ')) {
    throw FormatError(file, line.number, "",
                      "expected 'key: value', two spaces before a continued value, or 'field NAME "
                      "DTYPE', found " +
                          in_quotes(line.text));
  }
  std::string_view value = rest;
  while (value.starts_with(' ')) value.remove_prefix(1);
  while (value.ends_with(' ')) value.remove_suffix(1);
  return {std::string(line.text.substr(0, colon)), std::string(value), line.number};
}

/// Reads entries up to the first field; `at` is then its index.
Header read_header(const std::vector<Line>& lines, std::string_view file, std::size_t& at) {
  std::vector<Entry> entries;
  std::vector<std::string> value;  // of the last entry, line by line
  std::size_t blanks = 0;
  const auto close = [&] {
    if (!entries.empty()) entries.back().value = tidy(unfold(value));
    value.clear();
    blanks = 0;
  };
  for (; at < lines.size() && !is_field(lines[at].text); ++at) {
    const Line& line = lines[at];
    if (is_blank(line.text)) {
      ++blanks;
    } else if (line.text.starts_with(kIndent) && !entries.empty()) {
      value.insert(value.end(), blanks, std::string());
      blanks = 0;
      value.emplace_back(line.text.substr(kIndent.size()));
    } else {
      close();
      entries.push_back(read_entry(line, file));
      if (!entries.back().value.empty()) value.push_back(entries.back().value);
    }
    if (entries.size() == 1 && (entries[0].key != kFirstKey || entries[0].value != "1")) {
      throw FormatError(
          file, entries[0].line, kFirstKey,
          "expected the file to start with 'lossgate-case: 1', found " + in_quotes(line.text));
    }
  }
  close();
  if (entries.empty()) {
    throw FormatError(file, 1, kFirstKey, "expected the file to start with 'lossgate-case: 1'");
  }
  return Header(file, std::move(entries));
}

std::string_view next_word(std::string_view& rest) {
  const std::size_t start = std::min(rest.find_first_not_of(" \t"), rest.size());
  rest.remove_prefix(start);
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

/// Reads the fields of one text into one case.
class FieldReader {
 public:
  FieldReader(const std::vector<Line>& lines, std::size_t at, std::size_t text_size,
              const Header& header, const LossSignature& signature, Case& c)
      : lines_(lines),
        at_(at),
        text_size_(text_size),
        header_(header),
        signature_(signature),
        case_(c) {}

  void read_all() {
    std::vector<std::optional<Tensor>> tensors(signature_.fields.size());
    while (at_ < lines_.size()) read_field(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string& field = signature_.fields[i].name;
      if (!tensors[i]) {
        throw FormatError(header_.file(), 0, "field " + field, "expected this field, found none");
      }
      case_.batch.fields.emplace_back(field, std::move(*tensors[i]));
    }
  }

 private:
  [[noreturn]] void fail(int line, const std::string& expected) const {
    throw FormatError(header_.file(), line, key_, expected);
  }

  void read_field(std::vector<std::optional<Tensor>>& tensors) {
    const Line line = lines_[at_++];
    std::string_view rest = line.text.substr(std::string_view("field").size());
    const std::string_view field_name = next_word(rest);
    const std::string_view dtype_name = next_word(rest);
    key_ = "field " + in_quotes(field_name);
    const Field* field = signature_.find_field(field_name);
    if (!field) {
      fail(line.number, "expected a field that the loss " + signature_.id + " has");
    }
    key_ = "field " + field->name;
    const std::optional<Dtype> dtype = parse_dtype(dtype_name);
    if (!dtype || !is_blank(rest)) {
      fail(line.number,
           "expected 'field NAME DTYPE', DTYPE being f64, f32, f16, bf16, i64, i32, u8 "
           "or bool, found " +
               in_quotes(line.text));
    }
    const std::string wrong = wrong_dtype(*field, *dtype, shared_);
    if (!wrong.empty()) fail(line.number, wrong);
    auto& slot = tensors[static_cast<std::size_t>(field - signature_.fields.data())];
    if (slot) fail(line.number, "expected each field only once");
    slot = read_rows(*field, *dtype, line.number);
  }

  Tensor read_rows(const Field& field, Dtype dtype, int line) {
    const Extents extents = case_.shape.of(field.axes);
    const std::optional<std::int64_t> count = checked_count(extents);
    // Each value takes a character and what parts it from the next.
    if (!count || *count > static_cast<std::int64_t>(text_size_ / 2)) {
      fail(line, "expected a shape whose values this file can hold, found " +
                     shape_text(field.axes, case_.shape));
    }
    Tensor tensor = Tensor::zeros(dtype, extents);
    const std::int64_t width = extents.empty() ? 1 : extents.back();
    std::int64_t filled = 0;
    for (; at_ < lines_.size() && !is_field(lines_[at_].text); ++at_) {
      if (is_blank(lines_[at_].text)) continue;
      if (filled == *count) fail(lines_[at_].number, "expected no more rows, " + all(field));
      read_row(lines_[at_], tensor, filled, width);
      filled += width;
    }
    if (filled < *count) {
      fail(line, "expected " + std::to_string(*count / width) + " rows, " + all(field) +
                     ", found " + std::to_string(filled / width));
    }
    return tensor;
  }

  void read_row(const Line& line, Tensor& tensor, std::int64_t filled, std::int64_t width) {
    std::string_view rest = line.text;
    std::int64_t found = 0;
    for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest), ++found) {
      if (found >= width) continue;
      if (parse_element(tensor.dtype, word, tensor.element(filled + found))) continue;
      fail(line.number, "expected " + expected_element(tensor.dtype) + ", found " +
                            in_quotes(word) + " (value " + std::to_string(found + 1) +
                            " of the row)");
    }
    if (found != width) {
      fail(line.number, "expected " + std::to_string(width) + " values in a row, found " +
                            std::to_string(found));
    }
  }

  std::string all(const Field& field) const {
    return "the shape being " + shape_text(field.axes, case_.shape);
  }

  const std::vector<Line>& lines_;
  std::size_t at_;
  std::size_t text_size_;
  const Header& header_;
  const LossSignature& signature_;
  Case& case_;
  std::optional<Dtype> shared_;
  std::string key_;
};

}  // namespace

std::string encode(const Case& c, const LossSignature& signature) {
  check_case(c, signature, "case");
  std::string text;
  for (const auto& [key, value] : describe(c)) write_entry(text, key, value);
  for (const Field& field : signature.fields) write_field(text, field, c.batch.at(field.name));
  return text;
}

Case decode(std::string_view text, std::string_view file_name, const Lookup& lookup) {
  check_text(text, file_name);
  const std::vector<Line> lines = lines_of(text);
  std::size_t at = 0;
  const Header header = read_header(lines, file_name, at);
  const LossSignature& signature = read_loss(header, lookup);
  Case c;
  read_description(header, signature, Missing::error, Shape(), c);
  FieldReader(lines, at, text.size(), header, signature, c).read_all();
  return c;
}

}  // namespace lossgate::corpora
