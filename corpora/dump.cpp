// SPDX-License-Identifier: Apache-2.0
#include "corpora/dump.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "corpora/element_text.h"
#include "reference/spec/numbers.h"

namespace lossgate::corpora {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kVersionKey = "lossgate-dump", kVersion = "1";
constexpr std::string_view kLoss = "observed.loss", kGradient = "observed.gradient.";
constexpr std::string_view kGiven = "given.", kRun = "run.", kKept = "kept.";

template <class Pairs>
auto* second_of(Pairs& pairs, std::string_view key) {
  const auto at = std::ranges::find_if(pairs, [&](const auto& pair) { return pair.first == key; });
  return at == pairs.end() ? nullptr : &at->second;
}

/// The metadata of a dump: what is wrong with one is said with its key.
class Facts {
 public:
  Facts(const TensorFile& file, std::string_view name) : file_(file), name_(name) {}

  Json json(std::string_view key, const Json& standard) const {
    const std::string* text = file_.find_metadata(key);
    if (!text) return standard;
    Json json = Json::parse(*text, nullptr, false);
    if (json.is_discarded()) fail(key, "expected JSON", *text);
    return json;
  }

  std::vector<std::int64_t> numbers(std::string_view key) const {
    const Json list = json(key, Json::array());
    const auto whole = [](const Json& each) { return each.is_number_integer(); };
    if (!list.is_array() || !std::ranges::all_of(list, whole)) {
      fail(key, "expected a list of integers", list.dump());
    }
    return list.get<std::vector<std::int64_t>>();
  }

  std::vector<std::string> names(std::string_view key) const {
    const Json list = json(key, Json::array());
    const auto word = [](const Json& each) { return each.is_string(); };
    if (!list.is_array() || !std::ranges::all_of(list, word)) {
      fail(key, "expected a list of names", list.dump());
    }
    return list.get<std::vector<std::string>>();
  }

  std::map<std::string, std::int64_t> counts(std::string_view key) const {
    const Json object = json(key, Json::object());
    const auto whole = [](const Json& each) { return each.is_number_integer(); };
    if (!object.is_object() || !std::ranges::all_of(object, whole)) {
      fail(key, "expected integers by name", object.dump());
    }
    return object.get<std::map<std::string, std::int64_t>>();
  }

  [[noreturn]] void fail(std::string_view key, std::string_view expected,
                         std::string_view found) const {
    throw FormatError(name_, 0, key, std::string(expected) + ", found " + in_quotes(found));
  }

 private:
  const TensorFile& file_;
  std::string_view name_;
};

Dump::Given given_of(std::string name, const Json& json) {
  Dump::Given given{.name = std::move(name), .kind = Option::Kind::real, .value = None{}};
  if (json.is_boolean()) {
    given.kind = Option::Kind::flag;
    given.value = json.get<bool>() ? 1.0 : 0.0;
  } else if (json.is_number()) {
    given.kind = json.is_number_integer() ? Option::Kind::integer : Option::Kind::real;
    given.value = json.get<double>();
  } else if (!json.is_null()) {
    given.kind = Option::Kind::choice;
    given.value = json.is_string() ? json.get<std::string>() : json.dump();
  }
  return given;
}

std::string text_of(const OptionValue& value) {
  if (const double* number = std::get_if<double>(&value)) return number_text(*number);
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  return "none";
}

void check_version(const TensorFile& file, std::string_view name) {
  const std::string& version = *file.find_metadata(kVersionKey);
  if (version == kVersion) return;
  throw FormatError(name, 0, kVersionKey,
                    "expected " + std::string(kVersion) + ", found " + in_quotes(version) +
                        ": written by another version of watch; read it with the lossgate that "
                        "this watch.py came with");
}

/// The widest of the floating-point formats among the fields that are free in theirs: all of them
/// have one in a case that any function may be asked, and widening changes no value.
Dtype shared_dtype(const Dump& dump, const LossSignature& signature) {
  Dtype widest = Dtype::f16;
  bool any = false;
  for (const Field& field : signature.fields) {
    const Tensor* tensor = dump.find_field(field.name);
    if (!tensor || !field.dtypes.empty() || !is_float(tensor->dtype)) continue;
    const bool same = !any || tensor->dtype == widest;
    // Neither 16-bit format holds the numbers of the other.
    const bool mixed = !same && size_of(tensor->dtype) == size_of(widest);
    if (mixed) {
      widest = Dtype::f32;
    } else if (!any || size_of(tensor->dtype) > size_of(widest)) {
      widest = tensor->dtype;
    }
    any = true;
  }
  return any ? widest : Dtype::f32;
}

/// One number for each row, [S] or [S, 1], where the field has one for each position.
Tensor spread(const Tensor& tensor, const Extents& extents) {
  Tensor wide = Tensor::zeros(tensor.dtype, extents);
  const std::int64_t each = extents[0] > 0 ? wide.size() / extents[0] : 0;
  for (std::int64_t i = 0; i < wide.size(); ++i) {
    std::copy_n(tensor.element(i / each), size_of(tensor.dtype), wide.element(i));
  }
  return wide;
}

/// The lengths of the axes, as far as the dump tells them.
Shape shape_of(const Dump& dump, const LossSignature& signature) {
  Shape shape;
  for (const Field& field : signature.fields) {
    const Tensor* tensor = dump.find_field(field.name);
    if (!tensor || tensor->extents.size() != field.axes.size()) continue;
    for (std::size_t i = 0; i < field.axes.size(); ++i) {
      // The longest: one that stands for all is 1.
      shape[field.axes[i]] = std::max(shape[field.axes[i]], tensor->extents[i]);
    }
  }
  return shape;
}

[[noreturn]] void lacks(const Dump& dump, const LossSignature& signature, const Field& field,
                        std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [each, tensor] : dump.fields) names.push_back(each);
  throw FormatError(name, 0, "tensor " + field.name,
                    "expected watch(" + field.name + "=...), as the loss " + signature.id +
                        " names it; the dump has " + listed(names));
}

/// Takes the tensor out of the dump: large ones are not copied.
Tensor tensor_of(Dump& dump, const LossSignature& signature, const Field& field, const Shape& shape,
                 Dtype shared, std::string_view name) {
  Tensor* given = second_of(dump.fields, field.name);
  const Extents extents = shape.of(field.axes);
  const bool known = std::ranges::all_of(extents, [](std::int64_t n) { return n >= 0; });
  const bool needed = field.role == Role::differentiable || field.role == Role::label;
  if (!given && (needed || !known)) lacks(dump, signature, field, name);
  Dtype dtype = field.dtypes.empty() ? shared : field.dtypes.front();
  if (!given) {
    Tensor absent = Tensor::zeros(dtype, extents);
    for (std::int64_t i = 0; field.role == Role::mask && i < absent.size(); ++i) absent.set(i, 1.0);
    return absent;
  }
  const auto& dtypes = field.dtypes;
  if (std::ranges::find(dtypes, given->dtype) != dtypes.end()) dtype = given->dtype;
  const bool rows =
      known && extents.size() == 2 && given->size() == extents[0] && given->extents != extents;
  return as_dtype(rows ? spread(*given, extents) : std::move(*given), dtype);
}

}  // namespace

const Tensor* Dump::find_field(std::string_view name) const { return second_of(fields, name); }

const Tensor* Dump::find_gradient(std::string_view field) const {
  return second_of(gradients, field);
}

const Dump::Given* Dump::find_given(std::string_view name) const {
  const auto at = std::ranges::find(given, name, &Given::name);
  return at == given.end() ? nullptr : &*at;
}

std::string Dump::run_fact(std::string_view key) const {
  const std::string* text = second_of(run, key);
  return text ? *text : "";
}

bool is_dump(const TensorFile& file) { return file.find_metadata(kVersionKey) != nullptr; }

Dump dump_of(TensorFile file, std::string_view file_name) {
  check_version(file, file_name);
  const Facts facts(file, file_name);
  Dump dump;
  if (const std::string* loss = file.find_metadata("loss")) dump.loss = *loss;
  if (const std::string* upstream = file.find_metadata("upstream")) {
    const std::optional<double> number = parse_number(*upstream);
    if (!number) facts.fail("upstream", "expected a number", *upstream);
    dump.upstream = *number;
  }
  dump.rows = facts.numbers("kept.rows");
  dump.tokens = facts.numbers("kept.tokens");
  dump.whole = facts.numbers("kept.of");
  dump.counts = facts.counts("kept.counts");
  dump.differentiable = facts.names("run.differentiable");
  for (const auto& [key, value] : file.metadata) {
    if (key.starts_with(kGiven)) {
      dump.given.push_back(given_of(key.substr(kGiven.size()), facts.json(key, nullptr)));
    } else if (key.starts_with(kRun)) {
      dump.run.emplace_back(key.substr(kRun.size()), value);
    } else if (key != kVersionKey && key != "loss" && key != "upstream" && key != "format" &&
               !key.starts_with(kKept)) {
      throw FormatError(file_name, 0, in_quotes(key), "expected a key that watch writes");
    }
  }
  for (auto& [name, tensor] : file.tensors) {
    if (name == kLoss) {
      dump.observed = std::move(tensor);
    } else if (name.starts_with(kGradient)) {
      dump.gradients.emplace_back(name.substr(kGradient.size()), std::move(tensor));
    } else {
      dump.fields.emplace_back(name, std::move(tensor));
    }
  }
  for (const auto& [field, gradient] : dump.gradients) {
    const Tensor* tensor = dump.find_field(field);
    if (!tensor || tensor->extents != gradient.extents) {
      throw FormatError(file_name, 0, std::string(kGradient) + field,
                        "expected the shape of the tensor " + in_quotes(field));
    }
  }
  if (dump.observed && dump.observed->size() != 1) {
    throw FormatError(file_name, 0, kLoss, "expected a single number");
  }
  return dump;
}

TensorFile case_file_of(Dump dump, const LossSignature& signature, std::string_view file_name) {
  TensorFile file;
  file.metadata.emplace_back("loss", signature.id);
  const Dump::Given* reduction = dump.find_given("reduction");
  if (reduction) {
    file.metadata.emplace_back("reduction", text_of(reduction->value));
  } else if (signature.reductions.size() == 1) {
    file.metadata.emplace_back("reduction", name(signature.reductions.front()));
  } else {
    std::vector<std::string_view> names;
    for (const Reduction each : signature.reductions) names.push_back(name(each));
    throw FormatError(file_name, 0, "reduction",
                      "expected watch(reduction=...), one of " + listed(names));
  }
  for (const Option& option : signature.options) {
    const Dump::Given* given = dump.find_given(option.name);
    if (given) file.metadata.emplace_back("option." + option.name, text_of(given->value));
  }
  file.metadata.emplace_back("upstream", number_text(dump.upstream));
  const Dtype shared = shared_dtype(dump, signature);
  const Shape shape = shape_of(dump, signature);
  for (const Field& field : signature.fields) {
    file.tensors.emplace_back(field.name,
                              tensor_of(dump, signature, field, shape, shared, file_name));
  }
  return file;
}

}  // namespace lossgate::corpora
