// SPDX-License-Identifier: Apache-2.0
#include "ci/init.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

#include "ci/errors.h"
#include "ci/selection.h"
#include "ci/suggestion.h"
#include "ci/toml_text.h"
#include "impl/external/greeting.h"
#include "reference/reference.h"
#include "report/shell_word.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

/// The name as a parameter: a word that Python keeps to itself gets an underscore, which
/// binding does not look at.
std::string parameter_name(const std::string& name) {
  static const std::set<std::string_view> kKeywords = {
      "and",    "as",     "assert", "async",  "await",  "break",    "class", "continue", "def",
      "del",    "elif",   "else",   "except", "False",  "for",      "from",  "global",   "if",
      "import", "in",     "is",     "None",   "lambda", "nonlocal", "not",   "or",       "pass",
      "raise",  "return", "True",   "try",    "while",  "with",     "yield", "finally"};
  return name + (kKeywords.contains(name) ? "_" : "");
}

/// The parameters that a function needs for every field of the loss, and for the lengths of what it
/// returns where no field tells them.
std::string parameters_of(const LossSignature& loss) {
  std::string text;
  for (const Field& field : loss.fields)
    text += (text.empty() ? "" : ", ") + parameter_name(field.name);
  for (const Axis axis : impl::axes_of_outputs_alone(loss)) text += ", " + impl::extent_fact(axis);
  return text;
}

std::string python_text(const LossSignature& loss) {
  std::string text =
      fmt::format("\"\"\"{}\n\n{}\nSource: {}\n\"\"\"\nimport torch\n\n\ndef {}({}):\n", loss.title,
                  loss.formula, loss.source, loss.id, parameters_of(loss));
  for (const Field& field : loss.fields) {
    std::string axes;
    for (const Axis axis : field.axes) axes += (axes.empty() ? "" : ", ") + std::string(name(axis));
    text += fmt::format("    # {} [{}]: {}\n", parameter_name(field.name), axes,
                        field.doc.empty() ? std::string(name(field.role)) : field.doc);
  }
  for (const Axis axis : impl::axes_of_outputs_alone(loss)) {
    text += fmt::format("    # {}: how many {} the outputs have\n", impl::extent_fact(axis),
                        name(axis));
  }
  text += "    # Take options by these names, too, if the function has them:";
  for (const Option& option : loss.options) text += " " + parameter_name(option.name);
  std::string outputs;
  for (const OutputField& output : loss.outputs) {
    outputs += (outputs.empty() ? "" : ", ") + output.name;
  }
  text +=
      loss.reductions.empty()
          ? "\n    raise NotImplementedError(\"call your function here and return the tensors " +
                outputs + "\")\n"
          : "\n    raise NotImplementedError(\"call your loss here and return a scalar tensor\")\n";
  return text;
}

std::string toml_text(const LossSignature& loss) {
  std::string reductions;
  for (const Reduction reduction : loss.reductions) {
    reductions += (reductions.empty() ? "" : ", ") + std::string(name(reduction));
  }
  std::string text = fmt::format(
      "[[subject]]\nname = \"{0}\"\nloss = \"{0}\"\nentry = \"py:{0}_loss.py:{0}\"\n"
      "interpreter = \"python3\"  # one that has torch\n",
      loss.id);
  if (!loss.reductions.empty()) {
    text +=
        fmt::format("reductions = [\"{}\"]  # of {}\n", name(loss.reductions.front()), reductions);
  }
  text += "# dtypes = [\"f32\"]  # and f64, bf16, f16\n";
  if (loss.splittable) {
    text +=
        "# What the trainer does with the losses of micro-batches, and of ranks: \"sum\", "
        "\"mean\",\n"
        "# \"token_weighted\". Until it is said, no batch is split.\n"
        "# micro_batches = \"sum\"\n";
    if (loss.shardable) text += "# ranks = \"mean\"\n";
  }
  text +=
      "# What the function computes whatever is asked; options that it takes need not be here.\n"
      "[subject.options]\n";
  for (const Option& option : loss.options) {
    text += fmt::format("# {} = {}{}\n", option.name, toml_value(option.standard),
                        option.doc.empty() ? "" : "  # " + option.doc);
  }
  text +=
      "# What its callers leave at masked positions: \"any\", \"-inf\", \"finite\", \"ordinary\",\n"
      "# 0; by field.\n"
      "[subject.contract]\nmasked = { default = \"finite\" }\n"
      "# refuses_invalid = false\n# infinite_valid = false\n# autocast = false\n"
      "# empty = \"zero\"\n"
      "# empty_rows = \"skipped\"\n# largest = 1e6  # numbers that count, of either sign\n"
      "# How it computes, by which errors are allowed for: for instance, where it widens 16-bit\n"
      "# fields first.\n"
      "# [subject.arithmetic]\n# compute = \"f32\"\n";
  return text;
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw MachineError(path.string() + " cannot be written");
  fmt::print("wrote {}\n", path.lexically_normal().string());
}

}  // namespace

int run_init(const InitOptions& options) {
  const LossSignature* loss = reference::find_signature(options.loss);
  if (!loss) throw InputError(unknown_name("loss", options.loss, loss_names()));
  const fs::path folder = options.folder;
  const fs::path python = folder / (loss->id + "_loss.py"), toml = folder / "lossgate.toml";
  for (const fs::path& path : {toml, python}) {
    if (!fs::exists(path)) continue;
    throw InputError(path.lexically_normal().string() + " is there already");
  }
  std::error_code trouble;
  fs::create_directories(folder, trouble);  // what is in the way is said of the first file
  write(python, python_text(*loss));
  write(toml, toml_text(*loss));
  const std::string config = report::shell_word(toml.lexically_normal().string());
  fmt::print(
      "fill in the function, then: lossgate check --config {0}; lossgate gate --config {0}\n",
      config);
  return static_cast<int>(Exit::green);
}

}  // namespace lossgate::ci
