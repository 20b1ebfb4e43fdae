// SPDX-License-Identifier: Apache-2.0
#include "impl/external/c/call.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>

#include "impl/external/greeting.h"
#include "impl/external/subject.h"

namespace lossgate::impl {
namespace {

constexpr std::string_view kOption = "option.";

std::int32_t number_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return LOSSGATE_F64;
    case Dtype::f32:
      return LOSSGATE_F32;
    case Dtype::f16:
      return LOSSGATE_F16;
    case Dtype::bf16:
      return LOSSGATE_BF16;
    case Dtype::i64:
      return LOSSGATE_I64;
    case Dtype::i32:
      return LOSSGATE_I32;
    case Dtype::u8:
      return LOSSGATE_U8;
    case Dtype::boolean:
      return LOSSGATE_BOOL;
  }
  return -1;
}

Dtype widened(Dtype dtype) {
  return dtype == Dtype::f16 || dtype == Dtype::bf16 ? Dtype::f32 : dtype;
}

/// "[1, 2]", the place of an element.
std::string place_text(std::size_t index, const Extents& extents) {
  std::string text;
  for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent) {
    const auto length = static_cast<std::size_t>(*extent);
    text = std::to_string(index % length) + (text.empty() ? "" : ", ") + text;
    index /= length;
  }
  return "[" + text + "]";
}

}  // namespace

LibraryCall::LibraryCall(const LibraryFunction& function, const LibraryLoss& loss,
                         const std::set<std::string, std::less<>>& taken,
                         const corpora::TensorFile& step, FencedArrays& arrays)
    : function_(function), loss_(loss), taken_(taken), arrays_(arrays) {
  face_.array = array;
  face_.number = number;
  face_.word = word;
  std::memset(face_.message, 0, sizeof face_.message);
  face_.self = this;
  arrays.clear();
  const bool shifted = text_of(step, "layout") == name(Layout::offset);
  for (const auto& [field, tensor] : step.tensors) {
    lay({.name = field, .dtype = tensor.dtype, .extents = tensor.extents, .input = &tensor},
        shifted);
  }
  lay_outputs(step);
  for (const auto& [key, text] : step.metadata) {
    values_.emplace(key.starts_with(kOption) ? key.substr(kOption.size()) : key, text);
  }
  values_["loss"] = loss.id;
}

void LibraryCall::lay(Laid given, bool shifted) {
  Laid& laid = laid_.emplace_back(std::move(given));
  laid.data = arrays_.add(laid.name, laid.bytes(), shifted ? size_of(laid.dtype) : 0);
  if (laid.input) std::ranges::copy(laid.input->bytes, laid.data);
  laid.face = {.name = laid.name.c_str(),
               .dtype = number_of(laid.dtype),
               .ndim = static_cast<std::int32_t>(laid.extents.size()),
               .extents = laid.extents.data(),
               .data = laid.data};
}

Extents LibraryCall::extents_of(const LibraryLoss::Array& output,
                                const corpora::TensorFile& step) const {
  Extents extents;
  for (const Axis axis : output.axes) {
    std::optional<std::int64_t> extent;
    for (const LibraryLoss::Array& field : loss_.fields) {
      const Tensor* tensor = step.find_tensor(field.name);
      const auto at = std::ranges::find(field.axes, axis) - field.axes.begin();
      if (extent || !tensor || at >= static_cast<std::ptrdiff_t>(tensor->extents.size())) continue;
      extent = tensor->extents[static_cast<std::size_t>(at)];
    }
    if (!extent) {
      throw SubjectError("the size of '" + output.name + "' follows from no field of " + loss_.id +
                         "; a shared library cannot compute it");
    }
    extents.push_back(*extent);
  }
  return extents;
}

void LibraryCall::lay_outputs(const corpora::TensorFile& step) {
  Dtype common = Dtype::f32;
  for (auto field = loss_.fields.rbegin(); field != loss_.fields.rend(); ++field) {
    const Tensor* tensor = step.find_tensor(field->name);
    if (tensor && is_float(tensor->dtype)) common = tensor->dtype;
  }
  if (loss_.scalar) {
    lay({.name = "loss", .dtype = widened(common), .extents = {}, .required = true}, false);
  }
  for (const LibraryLoss::Array& output : loss_.outputs) {
    lay({.name = output.name,
         .dtype = output.dtype.value_or(widened(common)),
         .extents = extents_of(output, step)},
        false);
  }
  for (const LibraryLoss::Array& field : loss_.fields) {
    const Tensor* tensor = step.find_tensor(field.name);
    if (!field.differentiable || !tensor) continue;
    lay({.name = "gradient." + field.name,
         .dtype = tensor->dtype,
         .extents = tensor->extents,
         .required = true},
        false);
  }
}

const LibraryCall::Laid* LibraryCall::find(std::string_view name) const {
  const auto at = std::ranges::find(laid_, name, &Laid::name);
  return at == laid_.end() ? nullptr : &*at;
}

const std::string* LibraryCall::value(std::string_view name) {
  const auto at = values_.find(name);
  const bool known = taken_.contains(name) || name == "upstream" || name == "loss";
  if (at != values_.end() && known) return &at->second;
  complain("asks for '" + std::string(name) + "', which is no option, fact or reduction that it " +
           "takes: \"" + function_.takes + "\"");
  return nullptr;
}

void LibraryCall::complain(const std::string& what) {
  if (!complaint_.empty()) return;
  complaint_ = function_.name + " " + what;
  std::fprintf(stderr, "%s\n", complaint_.c_str());  // heard even if the next line is a crash
  std::fflush(stderr);
}

const lossgate_array* LibraryCall::array(const lossgate_call* call, const char* name) {
  LibraryCall& self = *static_cast<const Face*>(call)->self;
  const Laid* laid = name ? self.find(name) : nullptr;
  if (laid && (!laid->input || self.taken_.contains(laid->name))) return &laid->face;
  std::string outputs;
  for (const Laid& each : self.laid_) outputs += each.input ? "" : " " + each.name;
  self.complain("asks for the array '" + std::string(name ? name : "NULL") + "'; it takes \"" +
                self.function_.takes + "\" and fills" + outputs);
  return nullptr;
}

double LibraryCall::number(const lossgate_call* call, const char* name) {
  LibraryCall& self = *static_cast<const Face*>(call)->self;
  double number = std::numeric_limits<double>::quiet_NaN();
  const std::string* text = self.value(name ? name : "NULL");
  if (!text || *text == "none") return number;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) {
    self.complain("reads '" + std::string(name) + "' as a number, but it is the word '" + *text +
                  "': call->word(call, \"" + name + "\")");
  }
  return number;
}

const char* LibraryCall::word(const lossgate_call* call, const char* name) {
  LibraryCall& self = *static_cast<const Face*>(call)->self;
  const std::string* text = self.value(name ? name : "NULL");
  return text ? text->c_str() : "none";
}

std::string LibraryCall::message() const {
  return {face_.message, ::strnlen(face_.message, sizeof face_.message)};
}

std::vector<std::string> LibraryCall::mutated() const {
  std::vector<std::string> names;
  for (const Laid& laid : laid_) {
    const bool same =
        !laid.input || std::equal(laid.input->bytes.begin(), laid.input->bytes.end(), laid.data);
    if (!same) names.push_back(laid.name);
  }
  return names;
}

LibraryCall::Filled LibraryCall::filled() const {
  Filled filled;
  for (const Laid& laid : laid_) {
    if (laid.input) continue;
    Tensor tensor{laid.dtype, laid.extents, {laid.data, laid.data + laid.bytes()}};
    const Tensor blank = [&] {
      Tensor untouched = tensor;
      for (std::size_t i = 0; i < untouched.bytes.size(); ++i) {
        untouched.bytes[i] = static_cast<std::byte>(i % 2 ? kUnwritten >> 8 : kUnwritten & 0xff);
      }
      return untouched;
    }();
    if (!laid.required && laid.count() > 0 && tensor.bytes == blank.bytes) continue;
    const std::size_t width = size_of(laid.dtype);
    std::size_t left = 0, first = 0;
    for (std::size_t i = laid.count(); i-- > 0 && is_float(laid.dtype);) {
      if (std::memcmp(tensor.bytes.data() + i * width, blank.bytes.data() + i * width, width) !=
          0) {
        continue;
      }
      first = i;
      ++left;
    }
    if (left > 0 && filled.complaint.empty()) {
      filled.output = laid.name;
      filled.complaint = "'" + laid.name + "' is not written at " +
                         (laid.extents.empty() ? "all" : place_text(first, laid.extents)) +
                         (left > 1 ? " and " + std::to_string(left - 1) + " more places" : "") +
                         "; every element is to be filled, with 0 where it is masked";
    }
    filled.tensors.emplace_back(laid.name, std::move(tensor));
  }
  return filled;
}

}  // namespace lossgate::impl
