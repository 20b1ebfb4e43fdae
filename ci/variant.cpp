// SPDX-License-Identifier: Apache-2.0
#include "ci/variant.h"

#include <algorithm>
#include <new>

#include "ci/errors.h"
#include "corpora/case_id.h"
#include "impl/catalog.h"
#include "impl/external/session.h"
#include "properties/sibling.h"

namespace lossgate::ci {
namespace {

using properties::CaseStudy;
using properties::Evaluation;
using properties::Property;
using properties::Verdict;

struct Open {
  const Property* property;
  report::Kill kill;
};

std::vector<Open> rows_of(const Plan& plan, const impl::Implementation& variant) {
  std::vector<Open> rows;
  const auto& killers = variant.fault->killers;
  for (const std::string& killer : killers) {
    if (!properties::find_property(killer)) {
      throw MachineError("faulty implementation '" + variant.name + "' names '" + killer +
                         "', which is no property");
    }
  }
  for (const Property* property : plan.selection().properties) {
    if (std::ranges::find(killers, property->name) == killers.end()) continue;
    Open row{.property = property, .kill = {}};
    row.kill.loss = variant.loss;
    row.kill.implementation = variant.name;
    row.kill.property = property->name;
    rows.push_back(std::move(row));
  }
  return rows;
}

// One draw against all properties that are still open; closes those that are violated.
void try_draw(const PlannedCase& planned, const impl::Implementation& variant,
              std::int64_t hostile_cases, std::vector<Open>& rows) {
  CaseStudy study(*planned.loss, planned.c);
  if (const impl::Implementation* twin = impl::twin_of(variant)) {
    properties::give_sibling(study, *twin);
  }
  Evaluation evaluation(study, variant);
  evaluation.tells_bias = false;
  for (Open& row : rows) {
    if (row.kill.killed || !is_asked(*row.property, planned)) continue;
    row.kill.hostile_cases = hostile_cases;
    if (row.property->check(evaluation).verdict != Verdict::violated) continue;
    row.kill.killed = true;
    row.kill.trouble.clear();
    row.kill.dtype = name(planned.dtype);
    row.kill.case_id = corpora::case_id(planned.c);
    if (planned.long_axis) row.kill.long_axis = name(*planned.long_axis);
  }
}

}  // namespace

impl::Implementation guarded(const impl::Implementation& implementation,
                             std::function<void()> before) {
  impl::Implementation copy = implementation;
  copy.evaluate = [inner = implementation.evaluate, before = std::move(before)](
                      const LossSignature& signature, const Case& c) {
    if (before) before();
    try {
      return inner(signature, c);
    } catch (const impl::SubjectWornOut& error) {
      throw ImplementationWornOut(error.what(), "does_not_crash");
    } catch (const impl::SubjectError&) {
      throw;
    } catch (const impl::ProcessHung& error) {
      throw ImplementationThrew(error.what(), "does_not_hang");
    } catch (const impl::ProcessEnded& error) {
      throw ImplementationThrew(error.what(), "does_not_crash");
    } catch (const std::bad_alloc&) {
      throw ImplementationThrew("no memory: threw std::bad_alloc", "does_not_crash");
    } catch (const std::exception& error) {
      throw ImplementationThrew(std::string("threw: ") + error.what(), "does_not_crash");
    }
  };
  return copy;
}

report::RunRecord run_variant(const Plan& plan, const Task& task, const Announce& announce) {
  const impl::Implementation& declared =
      *plan.selection().find_implementation(task.loss, task.variant);
  std::int64_t draw = task.begin;
  const impl::Implementation variant = guarded(declared, [&] { announce(draw, declared.name); });
  std::vector<Open> rows = rows_of(plan, variant);
  const auto open = [](const Open& row) { return !row.kill.killed; };
  for (; draw < task.end && std::ranges::any_of(rows, open); ++draw) {
    const PlannedCase planned = plan.hostile_at(variant, draw);
    const std::int64_t hostile_cases = plan.hostile_index(variant, draw) + 1;
    std::string trouble;
    if (std::ranges::find(task.skips, Skip{draw, variant.name}) != task.skips.end()) {
      trouble = "crashed or hung";
    } else if (!variant.unsupported(planned.c)) {
      try {
        try_draw(planned, variant, hostile_cases, rows);
      } catch (const ImplementationThrew& error) {
        trouble = error.what();
      }
    }
    for (Open& row : rows) {
      if (row.kill.killed) continue;
      row.kill.hostile_cases = hostile_cases;
      if (!trouble.empty()) row.kill.trouble = trouble;
    }
  }
  report::RunRecord record;
  for (Open& row : rows) record.kills.push_back(std::move(row.kill));
  return record;
}

}  // namespace lossgate::ci
