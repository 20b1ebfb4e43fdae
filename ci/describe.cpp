// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "ci/errors.h"
#include "ci/python_text.h"
#include "ci/rules.h"
#include "ci/tasks.h"
#include "ci/verbs.h"
#include "corpora/nearest_name.h"
#include "impl/catalog.h"
#include "properties/causes.h"
#include "report/finding_text.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

std::string axes_text(const std::vector<Axis>& axes) {
  std::string text;
  for (const Axis axis : axes) text += (text.empty() ? "" : ", ") + std::string(name(axis));
  return "[" + text + "]";
}

std::string_view word(Infinity infinity) {
  switch (infinity) {
    case Infinity::legal:
      return "infinity legal";
    case Infinity::surfaces:
      return "infinity must show";
    case Infinity::refused:
      return "infinity refused";
  }
  return "";
}

std::string infinity_text(const Field& field) {
  std::string text(word(field.infinity));
  if (!field.infinite_where) return text;
  const auto& [option, value] = *field.infinite_where;
  return text + fmt::format(", legal where {} = {}", option, report::decimal(value));
}

/// What it is made of where that is not the case's numbers. A mask of bytes is handed over as one
/// of bools.
std::string dtypes_text(const std::vector<Dtype>& dtypes) {
  if (std::ranges::count(dtypes, Dtype::boolean) > 0) return torch_name(Dtype::boolean);
  std::vector<std::string> names;
  for (const Dtype dtype : dtypes) names.push_back(torch_name(dtype));
  return fmt::format("{}", fmt::join(names, " or "));
}

std::string range_text(const Option& option) {
  if (option.kind == Option::Kind::choice) {
    return fmt::format("one of {}", fmt::join(option.choices, ", "));
  }
  if (option.kind == Option::Kind::flag) return "0 or 1";
  return fmt::format("{} from {} to {}{}",
                     option.kind == Option::Kind::integer ? "an integer" : "a number",
                     report::decimal(option.low), report::decimal(option.high),
                     option.nullable ? ", or none" : "");
}

/// What a gate says in one word.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"held", "A verdict: the property was asked of the case, and is true of the answer."},
    {"violated", "A verdict: the property is not true of the answer. It becomes a finding."},
    {"vacuous",
     "A verdict: nothing could have been wrong on this case, because it lacks what the property is "
     "about (no trigger), or because its bound leaves no digit (no digit), or because no case of "
     "its loss has it (does not apply)."},
    {"skipped",
     "A verdict: the property was not asked, for the reason that stands beside it: the contract "
     "excuses it, the implementation does not compute the case, or another property comes first."},
    {"note", "A verdict: something differs where the declared contract promises nothing."},
    {"relaxed",
     "By contract: how many questions were skipped because the contract in lossgate.toml excuses "
     "them: what is "
     "green for that reason has not been looked at."},
    {"ordinary", "A grade (rule E5): ordinary training batches show it, or it ends its process."},
    {"rare", "A grade (rule E5): only hostile batches show it."},
    {"adversarial", "A grade (rule E5): it needs non-finite data behind the mask."},
    {"error ratio",
     "How far a number is from the formula's, divided by the bound that the rules give this "
     "arithmetic on this case (rule B3): up to 1 is its rounding, up to 2 is allowed, beyond that "
     "nothing explains it. inf where a number is none."},
    {"red", "A state: a finding that fails the gate."},
    {"tolerated", "A state: a finding whose grade --fail-on does not ask for."},
    {"waived", "A state: a finding that a waiver accepts until it expires."},
    {"known", "A state: a finding that the baseline has."},
};

void describe_loss(const LossSignature& s) {
  fmt::print("{}: {}\n", s.id, s.title);
  fmt::print("  formula     {}\n  source      {}\n", s.formula, s.source);
  if (!s.forms.empty())
    fmt::print("  forms       {} (the first is stable)\n", fmt::join(s.forms, "; "));
  if (!s.reductions.empty()) fmt::print("  reductions ");
  for (const Reduction reduction : s.reductions) fmt::print(" {}", name(reduction));
  fmt::print("{}  fields\n", s.reductions.empty() ? "" : "\n");
  for (const Field& field : s.fields) {
    fmt::print(
        "    {:<22}{:<16}{:<30}{}\n", field.name, name(field.role), axes_text(field.axes),
        fmt::format("{} ({})", field.doc,
                    field.dtypes.empty() ? infinity_text(field) : dtypes_text(field.dtypes)));
  }
  if (!s.outputs.empty())
    fmt::print("  outputs besides the loss and a gradient per differentiable field\n");
  for (const OutputField& output : s.outputs) {
    fmt::print("    {:<22}{:<16}{:<30}{}\n", output.name, "", axes_text(output.axes),
               output.dtypes.empty()
                   ? output.doc
                   : fmt::format("{} ({})", output.doc, dtypes_text(output.dtypes)));
  }
  if (!s.options.empty()) fmt::print("  options\n");
  for (const Option& option : s.options) {
    fmt::print("    {:<22}default {:<11}{}{}\n", option.name, report::option_text(option.standard),
               range_text(option), option.doc.empty() ? "" : "; " + option.doc);
  }
}

void describe_property(const report::PropertyEntry& property, std::string_view rules) {
  fmt::print("{} ({})\n", property.name, property.tier);
  for (const std::string& line : report::wrapped(property.statement, 96)) {
    fmt::print("  {}\n", line);
  }
  if (!rules.empty()) fmt::print("  rules       {}\n", rules);
  fmt::print("  usual fix   {}\n", report::usual_fix(property.name));
}

void describe_text(std::string_view name, std::string_view text) {
  fmt::print("{}\n", name);
  for (const std::string& line : report::wrapped(std::string(text), 96)) fmt::print("  {}\n", line);
}

void describe_implementation(const impl::Implementation& i) {
  fmt::print("{}: {} on {}\n  code        {}:{}\n", i.name, i.loss, i.device, i.source.file,
             i.source.line);
  if (!i.fault) return;
  fmt::print(
      "  wrong on purpose, twin of {}\n  cause       {}\n  trigger     {}\n  thread      {}\n"
      "  violates    {}\n",
      i.fault->twin, i.fault->cause, i.fault->trigger, i.fault->thread,
      fmt::join(i.fault->killers, ", "));
}

void describe_cause(const properties::Cause& cause) {
  describe_text(cause.name, cause.statement);
  if (!cause.repair.empty()) fmt::print("  usual fix   {}\n", cause.repair);
}

bool describe_any(const std::string& name) {
  if (const LossSignature* signature = reference::find_signature(name)) {
    describe_loss(*signature);
    return true;
  }
  if (const properties::Property* property = properties::find_property(name)) {
    describe_property(
        {property->name, std::string(properties::name(property->tier)), property->statement},
        property->rules);
    return true;
  }
  for (const report::PropertyEntry& property : run_properties()) {
    if (property.name != name) continue;
    describe_property(property, "");
    return true;
  }
  if (const properties::Cause* cause = properties::find_cause(name)) {
    describe_cause(*cause);
    return true;
  }
  for (const auto& [word, meaning] : kWords) {
    if (word != name) continue;
    describe_text(word, meaning);
    return true;
  }
  if (const auto rule = find_rule(rules_text(), name)) {
    fmt::print("{}", *rule);
    return true;
  }
  bool found = false;
  for (const bool with_torch : {false, true}) {  // the library is opened for its own alone
    for (const impl::Implementation& implementation : impl::catalog(with_torch)) {
      if (implementation.name != name) continue;
      describe_implementation(implementation);
      found = true;
    }
    if (found) return true;
  }
  return false;
}

}  // namespace

int run_describe(const std::string& name) {
  if (describe_any(name)) return static_cast<int>(Exit::green);
  std::vector<std::string> known = loss_names();
  for (const auto& names : {property_names(), rule_numbers(rules_text()), implementation_names()}) {
    known.insert(known.end(), names.begin(), names.end());
  }
  for (const report::PropertyEntry& property : run_properties()) known.push_back(property.name);
  for (const properties::Cause& cause : properties::causes()) known.emplace_back(cause.name);
  for (const auto& [word, meaning] : kWords) known.emplace_back(word);
  const std::string meant = corpora::meant_text(name, known);
  throw InputError("'" + name.substr(0, 64) +
                   "' is no loss, property, cause, verdict, grade, rule or implementation" +
                   (meant.empty() ? "; see lossgate list" : meant));
}

}  // namespace lossgate::ci
