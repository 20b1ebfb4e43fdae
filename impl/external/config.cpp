// SPDX-License-Identifier: Apache-2.0
#include "impl/external/config.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "corpora/files.h"
#include "impl/external/config_arithmetic.h"
#include "impl/external/config_axes.h"
#include "impl/external/config_contract.h"
#include "impl/external/config_options.h"
#include "impl/external/config_reader.h"
#include "impl/external/own_signature.h"

namespace lossgate::impl {
namespace {

namespace fs = std::filesystem;

Combination combination(const Reader& reader, std::string_view key) {
  return reader.one_of<Combination>(key, Combination::none,
                                    {{"none", Combination::none},
                                     {"sum", Combination::sum},
                                     {"mean", Combination::mean},
                                     {"token_weighted", Combination::token_weighted}});
}

std::vector<std::pair<std::string, std::string>> pairs(const Reader& reader, const char* key) {
  std::vector<std::pair<std::string, std::string>> list;
  const toml::table* table = reader.table(key);
  if (!table) return list;
  for (const auto& [name, value] : *table) {
    const auto text = value.value_exact<std::string>();
    if (!text) reader.fail(value.source(), in_quotes(name.str()) + " must be a string");
    list.emplace_back(name.str(), *text);
  }
  return list;
}

void read_wide(const Reader& reader, const LossSignature& loss, Subject& subject) {
  const auto fail = [&](const auto& text) { reader.fail(reader.find("wide")->source(), text); };
  subject.wide = reader.texts("wide");
  std::vector<std::string> numbers, narrow;
  for (const Field& field : loss.fields) {
    if (!field.dtypes.empty()) continue;
    numbers.push_back(field.name);
    if (std::ranges::count(subject.wide, field.name) == 0) narrow.push_back(field.name);
  }
  for (const std::string& field : subject.wide) {
    if (std::ranges::count(numbers, field) == 0)
      fail(loss.id + " has no numbers " + in_quotes(field) + "; it has " + listed(numbers));
  }
  const bool asked = std::ranges::any_of(subject.dtypes, [](Dtype d) { return size_of(d) == 2; });
  if (subject.wide.empty() || (asked && !narrow.empty())) return;
  fail(asked ? "'wide' leaves no field in 16 bits" : "'wide' needs 16 bits, which 'dtypes' lacks");
}

/// As PyTorch and others call it, which is too far from its name here for a slip of the pen.
std::string_view by_another_name(std::string_view dtype) {
  if (dtype.starts_with("torch.")) dtype.remove_prefix(6);
  for (const auto& [other, own] :
       std::initializer_list<std::pair<std::string_view, Dtype>>{{"float64", Dtype::f64},
                                                                 {"double", Dtype::f64},
                                                                 {"float32", Dtype::f32},
                                                                 {"float", Dtype::f32},
                                                                 {"float16", Dtype::f16},
                                                                 {"half", Dtype::f16},
                                                                 {"bfloat16", Dtype::bf16}}) {
    if (dtype == other) return name(own);
  }
  return dtype;
}

void read_names(const Reader& reader, const LossSignature& loss, Subject& subject) {
  for (const std::string& text : reader.texts("reductions")) {
    const auto reduction = parse_reduction(text);
    if (!reduction || std::ranges::find(loss.reductions, *reduction) == loss.reductions.end()) {
      std::vector<std::string_view> known;
      for (const Reduction each : loss.reductions) known.push_back(name(each));
      reader.fail(reader.find("reductions")->source(),
                  loss.id + " has no reduction " + in_quotes(text) + "; it has " + listed(known));
    }
    subject.reductions.push_back(*reduction);
  }
  if (reader.find("dtypes")) subject.dtypes.clear();
  for (const std::string& text : reader.texts("dtypes")) {
    const auto dtype = parse_dtype(text);
    if (!dtype || !is_float(*dtype)) {
      reader.fail(reader.find("dtypes")->source(),
                  "dtypes are f64, f32, f16, bf16" +
                      corpora::meant_text(by_another_name(text), {"f64", "f32", "f16", "bf16"}));
    }
    subject.dtypes.push_back(*dtype);
  }
  if (subject.dtypes.empty()) reader.fail(reader.find("dtypes")->source(), "'dtypes' names none");
  read_wide(reader, loss, subject);
  subject.outputs = reader.texts("outputs");
  for (const std::string& output : subject.outputs) {
    if (std::ranges::count(loss.outputs, output, &OutputField::name) > 0) continue;
    reader.fail(reader.find("outputs")->source(), loss.id + " has no output " + in_quotes(output));
  }
}

/// What the loss is made of. Outputs that nobody lists are all that are weighed.
void read_returns(const Reader& reader, const LossSignature& loss, Subject& subject) {
  enum class Returns { loss, per_token, outputs };
  const auto returns = reader.one_of<Returns>(
      "returns", Returns::loss,
      {{"loss", Returns::loss}, {"per_token", Returns::per_token}, {"outputs", Returns::outputs}});
  subject.per_token = returns == Returns::per_token;
  subject.weighed_outputs = returns == Returns::outputs;
  if (!subject.weighed_outputs) return;
  std::vector<std::string> weighed;
  for (const Field& field : loss.fields) {
    if (const OutputField* output = weighed_output(loss, field)) weighed.push_back(output->name);
  }
  if (weighed.empty()) {
    reader.fail(reader.find("returns")->source(),
                "no field of " + loss.id + " weighs an output: its functions return the loss, or " +
                    "per_token");
  }
  if (subject.outputs.empty()) subject.outputs = weighed;
  for (const std::string& output : subject.outputs) {
    if (std::ranges::count(weighed, output) > 0) continue;
    reader.fail(reader.find("outputs")->source(),
                "no field of " + loss.id + " weighs " + in_quotes(output) +
                    "; those that are weighed are " + listed(weighed));
  }
}

/// Keys that mean nothing to a function which is called as it is, in host memory.
void refuse_python(const Reader& reader) {
  for (const char* key : {"interpreter", "path", "device", "threads", "arguments", "returns"}) {
    const toml::node* node = reader.find(key);
    if (!node) continue;
    reader.fail(node->source(), in_quotes(key) +
                                    " is for a function in Python; a shared library is called as "
                                    "it is, with the variables of 'environment'");
  }
}

/// The loss, in the catalog or by a signature of its own. The latter is asked in f64, too, where
/// its splits and the like can be judged.
const LossSignature* read_loss(const Reader& reader, const fs::path& folder, FindSignature find,
                               const std::vector<std::string>& known, Subject& subject) {
  if (const toml::node* node = reader.find("signature")) {
    if (reader.find("loss")) reader.fail(node->source(), "a loss has its name or a signature");
    const std::string file = reader.text("signature");
    try {
      subject.own = std::make_shared<LossSignature>(
          parse_signature(corpora::read_text(folder / file), file, find));
    } catch (const corpora::FormatError& error) {
      reader.fail(node->source(), error.what());
    }
    subject.loss = subject.own->id;
    subject.dtypes = {Dtype::f32, Dtype::f64};
    return subject.own.get();
  }
  subject.loss = reader.required("loss", "\"grpo\"");
  const LossSignature* loss = find(subject.loss);
  if (loss) return loss;
  reader.fail(reader.find("loss")->source(),
              "there is no loss " + in_quotes(subject.loss) +
                  "; see `lossgate list losses`, or write a signature = \"FILE.toml\"" +
                  corpora::meant_text(subject.loss, known));
}

/// One subject for each of its devices.
std::vector<Subject> read_devices(const Reader& reader, Subject subject) {
  const toml::node* node = reader.find("device");
  if (!node || !node->is_array()) {
    subject.device = reader.text("device", subject.device);
    return {subject};
  }
  const std::vector<std::string> devices = reader.texts("device");
  if (devices.empty()) reader.fail(node->source(), "'device' has none in its list");
  std::vector<Subject> subjects;
  for (const std::string& device : devices) {
    subjects.push_back(subject);
    subjects.back().device = device;
    subjects.back().name = on_device(subject.name, device);
  }
  return subjects;
}

/// 0, which is none, where there is no such key.
std::int64_t limit(const Reader& reader, std::string_view key) {
  const auto most = reader.value<std::int64_t>(key, 0, "a whole number");
  if (most < 0) {
    reader.fail(reader.find(key)->source(), "'" + std::string(key) + "' must not be negative");
  }
  return most;
}

/// Beyond it is a slip of the pen.
constexpr std::int64_t kMostThreads = 4096;

/// What a call has, which cannot do without any.
double seconds(const Reader& reader, double standard) {
  const auto time = reader.value<double>("seconds", standard, "a number of seconds");
  if (!(time > 0.0 && std::isfinite(time))) {
    reader.fail(reader.find("seconds")->source(), "'seconds' must be more than 0, and a number");
  }
  return time;
}

int threads(const Reader& reader) {
  const auto count = reader.value<std::int64_t>("threads", 1, "a whole number");
  if (count < 1 || count > kMostThreads) {
    reader.fail(reader.find("threads")->source(),
                "'threads' must be from 1 to " + std::to_string(kMostThreads));
  }
  return static_cast<int>(count);
}

std::vector<Subject> read_subject(const toml::table& table, const std::string& file,
                                  const fs::path& folder, FindSignature find,
                                  const std::vector<std::string>& known) {
  const Reader reader(table, file, "[[subject]]");
  reader.allow({"name",          "loss",      "signature",   "entry",    "interpreter",
                "folder",        "path",      "environment", "device",   "threads",
                "reductions",    "options",   "outputs",     "dtypes",   "arguments",
                "micro_batches", "ranks",     "arithmetic",  "contract", "seconds",
                "axes",          "megabytes", "most_cases",  "returns",  "wide",
                "scale"});
  Subject subject;
  const LossSignature* loss = read_loss(reader, folder, find, known, subject);
  subject.entry = reader.required("entry", "\"py:FILE.py:FUNCTION\"");
  const std::size_t last = subject.entry.rfind(':');
  const bool library = subject.entry.starts_with("so:");
  if (!(library || subject.entry.starts_with("py:") || subject.entry.starts_with("fd:")) ||
      last < 4 || last + 1 == subject.entry.size()) {
    reader.fail(reader.find("entry")->source(),
                "'entry' must be py:FILE.py:FUNCTION, py:PACKAGE.MODULE:FUNCTION or "
                "so:LIBRARY.so:FUNCTION");
  }
  if (library) refuse_python(reader);
  subject.name = reader.name("name", subject.entry.substr(last + 1));
  subject.interpreter = reader.text("interpreter", subject.interpreter);
  subject.folder = folder / reader.text("folder");
  subject.path = reader.texts("path");
  subject.environment = pairs(reader, "environment");
  subject.threads = threads(reader);
  subject.arguments = pairs(reader, "arguments");
  subject.micro_batches = combination(reader, "micro_batches");
  subject.ranks = combination(reader, "ranks");
  subject.seconds = seconds(reader, subject.seconds);
  subject.megabytes = limit(reader, "megabytes");
  subject.most_cases = limit(reader, "most_cases");
  read_names(reader, *loss, subject);
  read_returns(reader, *loss, subject);
  read_options(reader, *loss, subject);
  read_scale(reader, *loss, subject);
  subject.axes = read_axes(reader, *loss);
  if (const toml::table* arithmetic = reader.table("arithmetic")) {
    subject.arithmetic = read_arithmetic(*arithmetic, file, *loss);
  }
  if (const toml::table* contract = reader.table("contract")) {
    read_contract(*contract, file, *loss, subject);
  }
  return read_devices(reader, std::move(subject));
}

}  // namespace

std::string on_device(const std::string& name, const std::string& device) {
  return name + "@" + device;
}

std::vector<Subject> parse_config(std::string_view text, const std::string& file,
                                  const fs::path& folder, FindSignature find,
                                  const std::vector<std::string>& known) {
  const toml::table root = parse_toml(text, file);
  const Reader reader(root, file, "the file");
  reader.allow({"subject"});
  if (const toml::node* one = reader.find("subject"); one && one->is_table()) {
    reader.fail(one->source(), "[subject] is one table; did you mean '[[subject]]'?");
  }
  const toml::array* tables = root["subject"].as_array();
  if (!tables || tables->empty() || !tables->is_homogeneous<toml::table>()) {
    throw ConfigError(file + ": no [[subject]] in it; `lossgate init LOSS` writes one to fill in");
  }
  std::vector<Subject> subjects;
  std::set<std::string> names;
  for (const toml::node& node : *tables) {
    for (Subject& subject : read_subject(*node.as_table(), file, folder, find, known)) {
      if (!names.insert(subject.name).second) {
        reader.fail(node.source(), "two subjects are called " + in_quotes(subject.name));
      }
      subjects.push_back(std::move(subject));
    }
  }
  return subjects;
}

}  // namespace lossgate::impl
