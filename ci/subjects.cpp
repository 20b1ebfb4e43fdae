// SPDX-License-Identifier: Apache-2.0
#include "ci/subjects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ci/arithmetic_trial.h"
#include "ci/brought.h"
#include "ci/candidates.h"
#include "ci/errors.h"
#include "ci/promises.h"
#include "ci/toml_text.h"
#include "ci/variant.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

std::string_view words(Masked masked) {
  switch (masked) {
    case Masked::anything:
      return "anything";
    case Masked::minus_infinity:
      return "numbers of a healthy run and -inf";
    case Masked::finite:
      return "finite numbers";
    case Masked::ordinary:
      return "numbers of a healthy run";
    case Masked::zero:
      return "zeros";
  }
  return "";
}

void print_subject(const Brought& brought) {
  const impl::Greeting& greeting = brought.greeting;
  const LossSignature& signature = brought.loss.signature;
  fmt::print("{} computes {}\n  {}:{}: {}\n", brought.implementation.name, signature.id,
             greeting.source.file, greeting.source.line, greeting.code);
  if (brought.subject.own) {
    fmt::print("  the same function in f64 stands for a reference: what hangs on that is a note\n");
  }
  for (const auto& [parameter, source] : greeting.arguments) {
    const OptionValue* fixed = find_told(brought.subject.options, source);
    std::string value = fixed ? report::option_text(*fixed) : "";
    if (fixed) value = value == impl::kAnyNumber ? ", never none" : ", no other than " + value;
    fmt::print("  {:<24}<- {}{}\n", parameter, source, value);
  }
  fmt::print("{}", left_text(greeting));
  for (const std::string& name : brought.fixed) {
    fmt::print("  {} does not reach it and is not declared: taken as {}\n", name,
               toml_value(signature.find_option(name)->standard));
  }
  if (const std::string& scale = brought.subject.scaled_by; !scale.empty()) {
    fmt::print("  returns {0}^2 times the formula: asked where {0} is 1 or 2\n", scale);
  }
  for (const Dtype dtype : brought.dtypes) {
    const Dtype compute = brought.subject.arithmetic.compute.value_or(dtype);
    if (unit_roundoff(compute) <= unit_roundoff(dtype)) continue;
    fmt::print(
        "  computes in {}, with fewer digits than {} fields: any operation may round to it\n",
        name(compute), name(dtype));
  }
  for (const auto& [name, other] : brought.subject.tied) {
    fmt::print("  {} follows {}: one parameter stands for both\n", name, other);
  }
  for (const std::string& name : brought.subject.without) {
    fmt::print("  {} does not reach it: taken as {}\n", name,
               impl::in_place_of(*signature.find_field(name)));
  }
  if (const auto& omitted = brought.subject.omitted; !omitted.empty()) {
    fmt::print(
        "  its callers leave out {}; where none does: [subject.contract] omitted_fields = false\n",
        fmt::join(omitted, ", "));
  }
  std::string reductions;
  for (const Reduction reduction : signature.reductions) {
    reductions += (reductions.empty() ? "" : ", ") + std::string(name(reduction));
  }
  std::vector<std::string> asked;
  if (!reductions.empty()) asked.push_back("reductions " + reductions);
  if (whole_signature(brought.subject).splittable) {
    asked.push_back(!signature.splittable ? "splits are not asked"
                    : signature.shardable ? "splits into micro-batches and ranks"
                                          : "splits into micro-batches on one rank");
  }
  if (!asked.empty()) fmt::print("  {}\n", fmt::join(asked, "; "));
  for (const auto& [axis, extent] : signature.pinned) {
    fmt::print("  axis {} is {} wherever it is asked\n", name(axis), extent);
  }
  for (const auto& [axis, extent] : signature.longest) {
    fmt::print("  axis {} is {} at most\n", name(axis), extent);
  }
  for (const Field& field : signature.fields) {
    if (std::isinf(field.largest)) continue;
    fmt::print("  {} is {} at most where it counts, of either sign\n", field.name, field.largest);
  }
  if (signature.splittable && signature.even_parts) {
    fmt::print("  micro-batches of a rank hold equally many sequences that count\n");
  }
  if (signature.splittable && signature.shardable && signature.even_ranks) {
    fmt::print("  ranks hold equally many sequences that count\n");
  }
  if (signature.prefix_mask) fmt::print("  in each sequence the positions that count come first\n");
  if (!brought.subject.contract.masked_outputs) {
    fmt::print("  what it returns at masked positions is not looked at\n");
  }
  if (signature.empty_rows == EmptyRows::counted) {
    fmt::print("  sequences without a valid token are not asked of means over sequences\n");
  }
  for (const Field& field : signature.fields) {
    if (!is_positional(field) || field.role == Role::mask) continue;
    fmt::print("  {:<24}holds {} where masked{}\n", field.name, words(field.masked),
               field.one_per_sequence ? ", one number for each sequence" : "");
  }
}

/// What fails on a few cases, and the lines that would make of it what is not asked.
void print_trial(const ContractTrial& trial, const std::string& config) {
  std::string failing;
  for (const auto& [property, cases] : trial.failing) {
    failing += fmt::format("{}{} on {}", failing.empty() ? "fails " : ", ", property, cases);
  }
  std::string came = failing.empty() ? "nothing fails" : failing;
  if (const std::string& said = trial.found.said; trial.found.answered == 0) {
    came = fmt::format("it answers none of them{}{}", said.empty() ? "" : ": ", said);
  }
  fmt::print("  asked on {} cases: {}\n", trial.found.cases,
             trial.trouble.empty() ? came : trial.trouble);
  for (const Proposal& proposal : trial.proposals) print_proposal(proposal);
  for (const std::string& kind : trial.unexplained) {
    fmt::print("  no line of the contract explains {}\n", kind);
  }
  if (trial.unexplained.empty() && trial.trouble.empty()) return;
  fmt::print("  lossgate gate --config {} shows it\n", config);
}

/// What it would keep, were it asked more than its contract says.
void print_promises(const std::vector<Promise>& promises) {
  for (const Promise& promise : promises) {
    if (promise.kept()) {
      fmt::print("  keeps more: {} {} ({})\n", promise.table, promise.line, promise.asked);
    } else if (promise.cases > 0) {
      fmt::print("  does not keep {} {} ({})\n    fails {}\n", promise.table, promise.line,
                 promise.asked, fmt::join(promise.failing, ", "));
    }
  }
}

/// A line that a gate would refute is not proposed.
void print_proposal(const Brought& brought, const ArithmeticTrial& trial) {
  const auto failing =
      trial.declaration ? failing_under(brought, *trial.declaration) : std::vector<std::string>{};
  if (failing.empty()) return print_proposal(*trial.proposal);
  fmt::print("  benign cases fit {}, hostile ones do not: then it fails {}\n", trial.proposal->line,
             fmt::join(failing, ", "));
}

/// What leaks from masked positions is off by as much as lies there, which is no arithmetic.
void print_trial(const Brought& brought, const ArithmeticTrial& trial, bool leaks) {
  if (trial.cases == 0 || (leaks && !trial.fits() && !trial.proposal)) return;
  fmt::print("  arithmetic with {} fields: worst error {:.3g} of its bound on {} benign cases{}\n",
             name(trial.dtype), trial.ratio, trial.cases,
             trial.fits() ? "" : fmt::format(", at most {} fits", reference::kThreshold));
  if (trial.proposal) {
    print_proposal(brought, trial);
  } else if (!trial.fits()) {
    fmt::print("  no declaration of its arithmetic explains that{}\n",
               trial.hiding.empty()
                   ? ""
                   : fmt::format(" and leaves a digit of it: {} would hide it", trial.hiding));
  }
}

/// Of what was not tried any more.
void print_end(const char* reason) { fmt::print("  ended: {}\n", reason); }

}  // namespace

int run_check(const std::vector<std::string>& configs, bool quick) {
  bool all_answer = true;
  for (const std::string& path : configs) {
    for (const auto& brought : bring(read_subject_file(path), {})) {
      print_subject(*brought);
      const ContractTrial contract = try_contract(*brought);
      print_trial(contract, path);
      all_answer = all_answer && contract.trouble.empty() && contract.found.answered > 0;
      if (!contract.trouble.empty()) continue;
      try {
        const bool is_twin = !brought->subject.omitted.empty();
        if (!quick && !is_twin) print_promises(try_promises(*brought, contract.found));
        const bool leaks = std::ranges::any_of(contract.proposals, &Proposal::of_masked);
        for (const ArithmeticTrial& trial : try_arithmetic(*brought)) {
          print_trial(*brought, trial, leaks);
        }
      } catch (
          const ImplementationThrew& error) {  // in a format that the contract was not tried in
        all_answer = false;
        print_end(error.what());
      } catch (const impl::SubjectError& error) {
        all_answer = false;
        print_end(error.what());
      }
    }
  }
  return static_cast<int>(all_answer ? Exit::green : Exit::red);
}

}  // namespace lossgate::ci
