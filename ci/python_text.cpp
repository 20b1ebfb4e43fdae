// SPDX-License-Identifier: Apache-2.0
#include "ci/python_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ci/errors.h"
#include "ci/python_import.h"
#include "ci/shifting.h"
#include "corpora/element_text.h"
#include "impl/trainer.h"

namespace lossgate::ci {
namespace {

/// A literal that Python takes for a float, not for an int.
std::string as_float(const std::string& text) {
  if (text == "inf" || text == "-inf" || text.starts_with("nan")) {
    return "float(\"" + text.substr(0, text.find('(')) + "\")";
  }
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string element_text(const Tensor& tensor, std::int64_t index) {
  std::string text;
  corpora::append_element(text, tensor.dtype, tensor.element(index));
  return is_float(tensor.dtype) ? as_float(text) : text;
}

std::string nested(const Tensor& tensor, std::size_t axis, std::int64_t& index) {
  if (axis == tensor.extents.size()) return element_text(tensor, index++);
  std::vector<std::string> parts;
  for (std::int64_t i = 0; i < tensor.extents[axis]; ++i) {
    parts.push_back(nested(tensor, axis + 1, index));
  }
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

/// Whether the bytes of a mask are such as bool has.
bool is_boolean(const Tensor& tensor) {
  return tensor.dtype == Dtype::u8 &&
         std::ranges::all_of(tensor.bytes, [](std::byte byte) { return byte <= std::byte{1}; });
}

bool uniform(const Tensor& tensor) {
  for (std::int64_t i = 1; i < tensor.size(); ++i) {
    if (!std::equal(tensor.element(0), tensor.element(1), tensor.element(i))) return false;
  }
  return tensor.size() > 0;
}

/// Text of a message, as bytes that can be read.
std::string message(const Tensor& tensor) {
  std::vector<std::string> rows;
  const std::int64_t width = tensor.extents.back();
  for (std::int64_t row = 0; row < tensor.size() / std::max<std::int64_t>(width, 1); ++row) {
    std::string text;
    for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
      const auto byte = static_cast<unsigned char>(tensor.integer_at(i));
      const bool plain = byte >= 0x20 && byte < 0x7f && byte != '\'' && byte != '\\';
      text += plain ? std::string(1, static_cast<char>(byte)) : fmt::format("\\x{:02x}", byte);
    }
    rows.push_back(fmt::format("list(b'{}')", text));
  }
  return fmt::format("torch.tensor([{}], dtype=torch.uint8)", fmt::join(rows, ", "));
}

std::string option_text(const Option& option, const OptionValue& value) {
  if (std::holds_alternative<None>(value)) return "None";
  if (const auto* word = std::get_if<std::string>(&value)) return '"' + *word + '"';
  const double number = std::get<double>(value);
  if (option.kind == Option::Kind::flag) return number != 0.0 ? "True" : "False";
  if (option.kind == Option::Kind::integer) return fmt::format("{:.0f}", number);
  return python_number(number);
}

std::string fact_text(const Brought& brought, const Case& c, const std::string& fact) {
  const impl::Totals totals = impl::count_totals(brought.loss.signature, c);
  const bool one_rank = c.split.whole() || c.split.world == 1;
  for (const auto& [kind, number] :
       {std::pair("tokens", totals.tokens), std::pair("sequences", totals.sequences),
        std::pair("rows", totals.rows)}) {
    if (fact == std::string("total_") + kind) return std::to_string(number);
    if (fact == std::string("rank_") + kind && one_rank) return std::to_string(number);
  }
  for (const Axis axis : impl::axes_of_outputs_alone(brought.loss.signature)) {
    if (fact == impl::extent_fact(axis)) return std::to_string(c.shape[axis]);
  }
  if (fact == "world") return std::to_string(c.split.world);
  if (fact == "rank" && one_rank) return "0";
  if (fact == "micro_batches" && one_rank) {
    return std::to_string(std::max<std::size_t>(1, c.split.parts.size()));
  }
  if (fact == "micro_batch" && c.split.whole()) return "0";
  throw InputError("no test is written for a function that is told fact:" + fact +
                   " of a step that is split");
}

/// The first valid entry of each row, as `as rows` hands it over.
std::string one_per_row(const Brought& brought, const Case& c, const Tensor& tensor) {
  const std::vector<bool> valid = valid_positions(brought.loss.signature, c);
  const std::int64_t tokens = tensor.extents.size() > 1 ? tensor.extents[1] : 1;
  std::vector<std::string> texts;
  for (std::int64_t row = 0; row < tensor.extents[0]; ++row) {
    std::int64_t first = 0;
    while (first < tokens && !valid[static_cast<std::size_t>(row * tokens + first)]) ++first;
    if (tokens > 0)
      texts.push_back(element_text(tensor, row * tokens + (first < tokens ? first : 0)));
  }
  return fmt::format("torch.tensor([{}], dtype={})", fmt::join(texts, ", "),
                     torch_name(tensor.dtype));
}

/// The field where each row has one number already, else that number for each of its positions.
std::string expanded(const Brought& brought, const Case& c, const std::string& text,
                     const Tensor& tensor) {
  const std::int64_t tokens = tensor.extents.size() > 1 ? tensor.extents[1] : 1;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const auto own = tensor.element(i), first = tensor.element(i - i % tokens);
    if (std::equal(own, own + size_of(tensor.dtype), first)) continue;
    return fmt::format("{}.unsqueeze(1).repeat(1, {})", one_per_row(brought, c, tensor), tokens);
  }
  return text;
}

std::string converted(std::string text, const std::string& word, const Field* field,
                      Dtype compute) {
  const bool label = field && field->role == Role::label;
  if (word == "float") return text + ".to(" + torch_name(compute) + ")";
  if (word == "valid") return "(" + text + (label ? " != -100)" : " != 0)");
  if (word == "padding") return "(" + text + (label ? " == -100)" : " == 0)");
  if (word == "lengths") return converted(std::move(text), "valid", field, compute) + ".sum(1)";
  if (word == "shifted") {
    if (is_of_token(*field)) {
      const char* first = field->role == Role::differentiable ? "[:, :1].detach()" : "[:, :1]";
      return fmt::format("torch.cat(({0}{1}, {0}), 1)", text, first);
    }
    return fmt::format("torch.nn.functional.pad({}, ({}0, 1), value={})", text,
                       field->axes.size() > 2 ? "0, 0, " : "", field->dtypes.empty() ? "0.5" : "0");
  }
  if (word == "ids") return text + ".clamp(min=0)";
  if (word == "tensor") return field ? text : "torch.tensor(" + text + ")";
  return text + ".to(torch." + word + ")";
}

std::string argument_text(const Brought& brought, const Case& c, const std::string& source,
                          bool rows) {
  const LossSignature& loss = brought.loss.signature;
  std::vector<std::string> words;
  std::string base = source;
  for (std::size_t at; (at = base.rfind(" as ")) != std::string::npos; base.resize(at)) {
    words.insert(words.begin(), base.substr(at + 4));
  }
  const std::size_t colon = base.find(':');
  const std::string kind = base.substr(0, colon);
  const std::string name = colon == std::string::npos ? "" : base.substr(colon + 1);
  const Field* field = kind == "field" ? loss.find_field(name) : nullptr;
  std::string text;
  if (field) {
    const bool sequences = has_rows(field->axes);
    text = name == "return" ? "return_" : name;
    if (std::erase(words, "rows") > 0) text = one_per_row(brought, c, c.batch.at(name));
    if (std::erase(words, impl::kExpanded) > 0) text = expanded(brought, c, text, c.batch.at(name));
    if (std::erase(words, "size") > 0) text = fmt::format("int(({0} == {0}[0]).sum())", text);
    if (rows && sequences) text += "[rows]";
  } else if (kind == "option") {
    text = option_text(*loss.find_option(name), *c.spec.find(name));
  } else if (kind == "fact") {
    text = fact_text(brought, c, name);
  } else if (kind == "reduction") {
    text = fmt::format("\"{}\"", lossgate::name(c.spec.reduction));
  } else {  // JSON, of which Python writes three words in another way
    text = name == "null" ? "None" : name == "true" ? "True" : name == "false" ? "False" : name;
  }
  if (!field && !words.empty() && words.front() != "tensor" && text != "None") {
    text = "torch.tensor(" + text + ", dtype=torch.float64)";
  }
  const bool numbers = field && field->dtypes.empty();
  const Dtype compute = numbers ? c.batch.at(name).dtype : float_dtype(loss, c);
  for (const std::string& word : words) text = converted(std::move(text), word, field, compute);
  return text;
}

}  // namespace

std::string torch_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return "torch.float64";
    case Dtype::f32:
      return "torch.float32";
    case Dtype::f16:
      return "torch.float16";
    case Dtype::bf16:
      return "torch.bfloat16";
    case Dtype::i64:
      return "torch.int64";
    case Dtype::i32:
      return "torch.int32";
    case Dtype::u8:
      return "torch.uint8";
    case Dtype::boolean:
      return "torch.bool";
  }
  return "torch.float32";
}

std::string python_number(double value) { return as_float(corpora::number_text(value)); }

std::string python_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter == '\n' ? ' ' : letter;
  }
  return quoted + '"';
}

std::string python_tensor(const Field& field, const Tensor& tensor) {
  if (field.quantity == Quantity::payload) return message(tensor);
  const bool leaf = field.role == Role::differentiable;
  Dtype dtype = tensor.dtype;
  if (field.role == Role::mask && is_boolean(tensor)) dtype = Dtype::boolean;  // as the worker does
  std::string more;
  if (dtype != Dtype::f32 && dtype != Dtype::i64) more += ", dtype=" + torch_name(dtype);
  if (leaf) more += ", requires_grad=True";
  constexpr std::int64_t kMostListed = 8;
  if (tensor.size() > kMostListed && uniform(tensor)) {
    return fmt::format("torch.full(({},), {}{})", fmt::join(tensor.extents, ", "),
                       element_text(tensor, 0), more);
  }
  if (tensor.size() == 0) {
    return fmt::format("torch.zeros(({},){})", fmt::join(tensor.extents, ", "), more);
  }
  std::int64_t index = 0;
  return fmt::format("torch.tensor({}{})", nested(tensor, 0, index), more);
}

std::string python_call(const Brought& brought, const Case& c, bool rows) {
  std::string text = python_name(brought) + "(";
  bool first = true;
  for (const auto& [parameter, source] : brought.greeting.arguments) {
    const bool keyword = parameter == "return" || parameter == "lambda";  // of **kwargs
    text += fmt::format("{}{}{}", first ? "" : ", ",
                        keyword ? "**{\"" + parameter + "\": " : parameter + "=",
                        argument_text(brought, c, source, rows));
    if (keyword) text += "}";
    first = false;
  }
  return text + ")";
}

}  // namespace lossgate::ci
