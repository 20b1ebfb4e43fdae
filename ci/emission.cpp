// SPDX-License-Identifier: Apache-2.0
#include "ci/emission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/made_case.h"
#include "ci/python_import.h"
#include "ci/python_text.h"
#include "impl/external/scale.h"
#include "properties/causes.h"
#include "report/finding_text.h"
#include "report/plain_text.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

using Lines = std::vector<std::string>;
using impl::Combination;

const OutputInfo* scalar_loss(const std::vector<OutputInfo>& outputs) {
  const auto at = std::ranges::find(outputs, OutputKind::loss, &OutputInfo::kind);
  return at == outputs.end() ? nullptr : &*at;
}

Lines tensors(const Emission& e) {
  Lines lines;
  for (const Field& field : e.brought->loss.signature.fields) {
    const std::string name = field.name == "return" ? "return_" : field.name;
    const bool read = std::ranges::any_of(e.brought->greeting.arguments, [&](const auto& pair) {
      return pair.second == "field:" + field.name ||
             pair.second.starts_with("field:" + field.name + " as ");
    });
    const bool divides = e.property->name == "split_invariance" &&
                         e.brought->subject.micro_batches == Combination::token_weighted &&
                         (field.name == e.brought->loss.signature.mask ||
                          field.name == e.brought->loss.signature.ignore_label);
    if (!read && !divides) continue;
    lines.push_back(name + " = " + python_tensor(field, e.c.batch.at(field.name)));
  }
  return lines;
}

/// How the losses, or results, of the parts are put together.
std::string combined(Combination how, const std::string& list, const std::string& valid,
                     std::size_t of_all) {
  switch (how) {
    case Combination::mean:
      return fmt::format(
          "sum({}) / {}  # micro_batches = \"mean\": the trainer divides by their number", list,
          of_all);
    case Combination::token_weighted:
      return fmt::format(
          "sum(loss * ({0})[rows].sum() for loss, rows in zip({1}, parts)) / ({0}).sum()", valid,
          list);
    default:
      return fmt::format("sum({})", list);
  }
}

std::string valid_text(const LossSignature& loss) {
  if (!loss.mask.empty()) return loss.mask + " != 0";
  return loss.ignore_label.empty() ? "" : loss.ignore_label + " != -100";
}

/// What is returned in a tuple, by name: all that an operation returns, or a loss and a dict.
std::string by_name(const Emission& e, bool with_loss) {
  std::vector<std::string> names;
  for (const OutputField& output : e.brought->loss.signature.outputs) {
    names.push_back('"' + output.name + '"');
  }
  const std::string dictionary =
      with_loss ? "{\"loss\": result[0], **result[1]}"
                : fmt::format("dict(zip([{}], result if isinstance(result, tuple) else [result]))",
                              fmt::join(names, ", "));
  return "result = result if isinstance(result, dict) else " + dictionary;
}

/// The call of the whole case, or of its micro-batches one after the other.
Lines calls(const Emission& e, bool with_loss) {
  const std::string results = with_loss ? "losses" : "results";
  const bool split = e.property->name == "split_invariance" && !e.c.split.whole();
  const std::string call = python_call(*e.brought, e.c, split);
  if (!split && with_loss && e.brought->subject.outputs.empty()) {
    return {"loss = " + call + e.loss_in};
  }
  if (!split && with_loss) return {"result = " + call, by_name(e, true), "loss = result[\"loss\"]"};
  if (!split) return {"result = " + call, by_name(e, false)};
  std::vector<std::string> parts;
  for (const Split::Part& part : e.c.split.parts) {
    if (part.sequences.empty()) continue;  // no trainer makes a call for it
    parts.push_back(fmt::format("[{}]", fmt::join(part.sequences, ", ")));
  }
  const std::size_t empty = e.c.split.parts.size() - parts.size();
  Lines lines = {
      fmt::format("parts = [{}]  # micro-batches of one step{}", fmt::join(parts, ", "),
                  empty > 0 ? fmt::format(", {} of them empty and not called", empty) : ""),
      results + " = [" + call + (with_loss ? e.loss_in : "") + " for rows in parts]"};
  if (with_loss) {
    lines.push_back("loss = " + combined(e.brought->subject.micro_batches, "losses",
                                         valid_text(e.brought->loss.signature),
                                         e.c.split.parts.size()));
  } else {
    lines.push_back("result = torch.cat(results)[torch.tensor(sum(parts, [])).argsort()]");
    lines.push_back(by_name(e, false));
  }
  return lines;
}

std::string place_of(const Emission& e) {
  const properties::Place& place = e.violation.place;
  const std::string at =
      place.coordinates.empty() ? "" : fmt::format("[{}]", fmt::join(place.coordinates, ", "));
  constexpr std::string_view kGradient = "gradient.";
  if (place.output.starts_with(kGradient)) {
    const std::string field = place.output.substr(kGradient.size());
    return (field == "return" ? "return_" : field) + ".grad" + at;
  }
  if (place.output == "loss") return "loss";
  return "result[\"" + place.output + "\"]" + at;
}

/// Whether it is a number that the function returns beside its loss, or an operation does.
bool is_of_value(const Emission& e) {
  const properties::Place& place = e.violation.place;
  return e.violation.has_numbers() && !place.in_gradient() && place.output != "loss";
}

/// Behind what the function returns: the formula, where it returns a multiple of that.
std::string unscaled(const Emission& e) {
  const double scale = impl::scale_of(e.brought->subject, e.c.spec);
  if (scale == 1.0) return "";
  return " / " + python_number(scale) + "  # " + e.brought->subject.scaled_by +
         "^2, which the formula leaves to the caller";
}

/// Of a property of finiteness that is all that was compared.
bool wants_finite(const Emission& e) {
  return !is_of_made_case(*e.property) && !std::isfinite(e.violation.actual) &&
         std::isfinite(static_cast<double>(e.violation.expected));
}

/// Everything up to `actual`, the number in question.
Lines body(const Emission& e) {
  const auto outputs = outputs_of(e.brought->loss.signature, e.c);
  const bool with_loss = scalar_loss(outputs) != nullptr;
  Lines lines = tensors(e);
  for (std::string& line : calls(e, with_loss)) lines.push_back(std::move(line));
  const bool answers = e.violation.has_numbers(), of_value = is_of_value(e);
  const std::string formula = unscaled(e);
  if (with_loss && !of_value && !formula.empty()) lines.push_back("loss = loss" + formula);
  if (answers ? e.violation.place.in_gradient() : with_loss) {
    lines.push_back(e.c.upstream == 1.0 ? "loss.backward()"
                                        : "loss.backward(torch.tensor(" +
                                              python_number(e.c.upstream) + ", dtype=loss.dtype))");
  }
  std::string number = place_of(e);
  if (!e.violation.place.in_gradient()) number += ".detach()";
  if (of_value) number += formula;
  lines.push_back("actual = " + (answers ? number : with_loss ? "loss" : "result"));
  return lines;
}

std::string bound_text(const Emission& e) {
  return python_number(e.violation.allowed + e.violation.half_width);
}

std::string condition(const Emission& e) {
  if (!e.violation.has_numbers()) {  // it raised, or returned something else than a loss
    return scalar_loss(outputs_of(e.brought->loss.signature, e.c)) ? "actual.dim() == 0"
                                                                   : "len(actual) > 0";
  }
  if (wants_finite(e)) return "torch.isfinite(actual)";
  const double expected = static_cast<double>(e.violation.expected);
  if (!std::isfinite(expected)) return "float(actual) == " + python_number(expected);
  return fmt::format("abs(float(actual) - {}) <= {}", python_number(expected), bound_text(e));
}

std::string shown_place(const Emission& e) { return report::place_text(e.violation.place); }

std::string subject_text(const Emission& e) {
  const impl::Source& source = e.brought->greeting.source;
  return fmt::format("{}:{}", source.file,
                     e.brought->subject.entry.substr(e.brought->subject.entry.rfind(':') + 1));
}

/// As an identifier: names of subjects are free text.
std::string identifier(std::string name) {
  for (char& letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return name;
}

std::string indented(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += "    " + line + "\n";
  return text;
}

/// For input that must be refused: the call, and what it is to do.
Lines refusal(const Emission& e, const std::string& otherwise) {
  Lines lines = tensors(e);
  lines.push_back("try:");
  lines.push_back("    " + python_call(*e.brought, e.c, false));
  lines.push_back("except Exception as refused:");
  lines.push_back("    assert not isinstance(refused, NotImplementedError)");
  lines.push_back("else:");
  lines.push_back("    " + otherwise);
  return lines;
}

std::string header(const Emission& e, const std::string& folder, Written written) {
  return "import torch\n" + python_import(*e.brought, folder, written) + "\n\n";
}

std::string script(const Emission& e, const std::string& folder, Written written) {
  std::string text = header(e, folder, written);
  text.pop_back();
  Lines lines;
  if (e.property->name == "error_on_invalid") {
    lines = refusal(e, "raise SystemExit(" + python_string(e.violation.detail) + ")");
  } else {
    lines = body(e);
    if (e.violation.has_numbers()) {
      lines.push_back(fmt::format("print(f\"{}: {{actual}}, expected {}{}\")", shown_place(e),
                                  report::decimal(e.violation.expected),
                                  wants_finite(e) ? "" : " within " + bound_text(e)));
    }
    lines.push_back(fmt::format("raise SystemExit(0 if {} else 1)", condition(e)));
  }
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

std::string test_text(const Emission& e, const std::string& folder) {
  const std::string name = identifier(e.brought->subject.name + "_" + e.property->name);
  std::string text = fmt::format("\"\"\"{} of {}: {}.\"\"\"\n", e.property->name, subject_text(e),
                                 e.diagnosis.cause);
  text += header(e, folder, Written::as_file) + "\ndef test_" + name + "():\n";
  if (e.property->name == "error_on_invalid") {
    return text +
           indented(refusal(e, "raise AssertionError(" + python_string(e.violation.detail) + ")"));
  }
  Lines lines = body(e);
  lines.push_back(fmt::format("assert {}, f\"{} is {{actual}}\"", condition(e), shown_place(e)));
  return text + indented(lines);
}

std::string script_text(const Emission& e, const std::string& folder) {
  return script(e, folder, Written::as_file);
}

std::string issue_text(const Emission& e, const std::string& /*folder*/) {
  const properties::Cause* cause = properties::find_cause(e.diagnosis.cause);
  std::string text = fmt::format("# {}: {}\n\n", subject_text(e), e.diagnosis.cause);
  text += e.property->statement + " Here it does not hold.\n\n| | |\n|---|---|\n";
  const auto row = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += fmt::format("| {} | {} |\n", key, report::markdown_text(value));
  };
  row("place", shown_place(e));
  row("options",
      fmt::format("{}", fmt::join(report::options_of(e.brought->loss.signature, e.c), ", ")));
  if (e.violation.has_numbers()) {
    row("actual", report::decimal(e.violation.actual));
    row("expected", report::decimal(e.violation.expected));
    row("allowed difference", report::brief(e.violation.allowed + e.violation.half_width));
  }
  row("seen", e.violation.detail);
  row("line", e.code);
  if (cause) row("cause", std::string(cause->statement));
  if (cause) {
    row(report::fix_label(e.property->name, e.diagnosis.cause, e.diagnosis.confidence),
        std::string(cause->repair));
  }
  for (const auto& [name, version] : e.brought->greeting.versions) row(name, version);
  // Others read it, elsewhere: no path of this machine, but from the folder of the file.
  const std::string home = std::filesystem::path(e.brought->file).parent_path().string();
  text +=
      "\nTo see it, in the root of the repository (exit status 1 while it is "
      "there):\n\n```python\n" +
      script(e, home, Written::as_lines) + "```\n\n";
  return text + "Found by lossgate " + version() + ".\n";
}

}  // namespace lossgate::ci
