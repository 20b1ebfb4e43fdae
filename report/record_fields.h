// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/run_record.h"

/// The keys of run.json, each beside its member, once for reading and writing. Order is that of the
/// file.
namespace lossgate::report {

/// A key that records made before it was added lack; its member is then as it was made.
struct Later {
  const char* key;
  operator const char*() const { return key; }  // NOLINT: it is one
};

template <class Visit>
void fields(Request& r, Visit&& visit) {
  visit("profile", r.profile);
  visit("seed", r.seed);
  visit("cases", r.cases);
  visit("losses", r.losses);
  visit("implementations", r.implementations);
  visit("properties", r.properties);
  visit("dtypes", r.dtypes);
  visit("hardening", r.hardening);
  visit("corpora", r.corpora);
  visit("fail_on", r.fail_on);
  visit(Later{"shard"}, r.shard);
  visit(Later{"brought"}, r.brought);
  visit(Later{"budget"}, r.budget);
  visit(Later{"causes"}, r.causes);
}

template <class Visit>
void fields(Environment& e, Visit&& visit) {
  visit("architecture", e.architecture);
  visit("instruction_set", e.instruction_set);
  visit("compiler", e.compiler);
  visit("threads", e.threads);
  visit("rounding", e.rounding);
  visit("flush_to_zero", e.flush_to_zero);
  visit("denormals_are_zero", e.denormals_are_zero);
  visit("x87_precision", e.x87_precision);
  visit("real_digits", e.real_digits);
  visit("torch", e.torch);
  visit("dtypes", e.dtypes);
}

template <class Visit>
void fields(Subject& s, Visit&& visit) {
  visit("loss", s.loss);
  visit("name", s.name);
  visit("device", s.device);
  visit("file", s.file);
  visit("line", s.line);
  visit("twin", s.twin);
  visit("thread", s.thread);
  visit("cause", s.cause);
  visit("trigger", s.trigger);
  visit("killers", s.killers);
  visit("relaxed_by_contract", s.relaxed_by_contract);
  visit("never_asked", s.never_asked);
  visit(Later{"never_triggered"}, s.never_triggered);
  visit(Later{"never_told"}, s.never_told);
  visit(Later{"taken_as"}, s.taken_as);
}

template <class Visit>
void fields(PropertyEntry& p, Visit&& visit) {
  visit("name", p.name);
  visit("tier", p.tier);
  visit("statement", p.statement);
}

template <class Visit>
void fields(Cell& c, Visit&& visit) {
  visit("loss", c.loss);
  visit("implementation", c.implementation);
  visit("dtype", c.dtype);
  visit("property", c.property);
  visit("cases", c.cases);
  visit("verdicts", c.verdicts);
  visit("reasons", c.reasons);
  visit("compared", c.compared);
  visit("no_digit", c.no_digit);
  visit("worst_ratio", c.worst_ratio);
  visit("worst_ordinal", c.worst_ordinal);
  visit("worst_case", c.worst_case);
  visit(Later{"ratios"}, c.ratios);
}

template <class Visit>
void fields(Timing& t, Visit&& visit) {
  visit("loss", t.loss);
  visit("implementation", t.implementation);
  visit("dtype", t.dtype);
  visit("cases", t.cases);
  visit("calls", t.calls);
  visit("seconds", t.seconds);
}

template <class Visit>
void fields(Kill& k, Visit&& visit) {
  visit("loss", k.loss);
  visit("implementation", k.implementation);
  visit("property", k.property);
  visit("killed", k.killed);
  visit("hostile_cases", k.hostile_cases);
  visit("dtype", k.dtype);
  visit("case", k.case_id);
  visit(Later{"long_axis"}, k.long_axis);
  visit("trouble", k.trouble);
}

template <class Visit>
void fields(Expectation& e, Visit&& visit) {
  visit("file", e.file);
  visit("implementation", e.implementation);
  visit("property", e.property);
  visit("verdict", e.verdict);
  visit("met", e.met);
}

template <class Visit>
void fields(RecordedOutput& o, Visit&& visit) {
  visit("name", o.name);
  visit("extents", o.extents);
  visit("values", o.values);
}

template <class Visit>
void fields(Coverage& c, Visit&& visit) {
  visit("loss", c.loss);
  visit("trait", c.trait);
  visit("cases", c.cases);
}

template <class Visit>
void fields(SplitErrors& s, Visit&& visit) {
  visit("loss", s.loss);
  visit("implementation", s.implementation);
  visit("dtype", s.dtype);
  visit("off_by", s.off_by);
  visit("worst", s.worst);
  visit("worst_ordinal", s.worst_ordinal);
  visit("worst_case", s.worst_case);
  visit("worst_split", s.worst_split);
}

template <class Visit>
void fields(CampaignPoint& p, Visit&& visit) {
  visit("seconds", p.seconds);
  visit("cases", p.cases);
  visit("features", p.features);
  visit("findings", p.findings);
  visit(Later{"memory_mib"}, p.memory_mib);
}

template <class Visit>
void fields(RecordedFinding& f, Visit&& visit) {
  visit("fingerprint", f.fingerprint);
  visit("loss", f.loss);
  visit("implementation", f.implementation);
  visit("property", f.property);
  visit("dtype", f.dtype);
  visit("grade", f.grade);
  visit("cause", f.cause);
  visit("reach", f.reach);
  visit("detail", f.detail);
  visit("source_file", f.source_file);
  visit("source_line", f.source_line);
  visit("source_text", f.source_text);
  visit("source_flags", f.source_flags);
  visit("place", f.place);
  visit("inputs", f.inputs);
  visit("actual", f.actual);
  visit("expected", f.expected);
  visit("allowed", f.allowed);
  visit("half_width", f.half_width);
  visit("error_ratio", f.error_ratio);
  visit("ordinal", f.ordinal);
  visit("count", f.count);
  visit("case", f.case_id);
  visit("case_file", f.case_file);
  visit("repro", f.repro);
  visit("state", f.state);
  visit("state_reason", f.state_reason);
  visit("case_text", f.case_text);
  visit(Later{"ulp_error"}, f.ulp_error);
  visit(Later{"allclose"}, f.allclose);
  visit(Later{"outputs"}, f.outputs);
  visit(Later{"shows"}, f.shows);
  visit(Later{"confidence"}, f.confidence);
  visit(Later{"fault"}, f.fault);
  visit(Later{"options"}, f.options);
  visit(Later{"no_experiment"}, f.no_experiment);
}

template <class Visit>
void fields(UnfitCases& u, Visit&& visit) {
  visit("corpus", u.corpus);
  visit("loss", u.loss);
  visit("reason", u.reason);
  visit("cases", u.cases);
}

template <class Visit>
void fields(Mended& m, Visit&& visit) {
  visit("fingerprint", m.fingerprint);
  visit("loss", m.loss);
  visit("implementation", m.implementation);
  visit("property", m.property);
  visit("case_file", m.case_file);
  visit("reason", m.reason);
}

template <class Visit>
void fields(RunRecord& r, Visit&& visit) {
  visit("schema", r.schema);
  visit("version", r.version);
  visit("commit", r.commit);
  visit("request", r.request);
  visit("environment", r.environment);
  visit("cases_planned", r.cases_planned);
  visit("cases_run", r.cases_run);
  visit("interrupted", r.interrupted);
  visit("troubles", r.troubles);
  visit("properties", r.properties);
  visit("subjects", r.subjects);
  visit("cells", r.cells);
  visit("timings", r.timings);
  visit("kills", r.kills);
  visit("expectations", r.expectations);
  visit("findings", r.findings);
  visit("vanished", r.vanished);
  visit("idle_waivers", r.idle_waivers);
  visit("seconds", r.seconds);
  visit(Later{"coverage"}, r.coverage);
  visit(Later{"splits"}, r.splits);
  visit(Later{"campaign"}, r.campaign);
  visit(Later{"baseline_cases"}, r.baseline_cases);
  visit(Later{"misfits"}, r.misfits);
  visit(Later{"mended"}, r.mended);
  visit(Later{"unfit"}, r.unfit);
}

}  // namespace lossgate::report
