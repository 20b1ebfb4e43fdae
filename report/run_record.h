// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "properties/verdict.h"

/// What a run did and found, as data. Everything that people see is a view of it (SCHEMA.md).
namespace lossgate::report {

/// Raised when an older reader would misread a record.
inline constexpr int kSchemaVersion = 1;

/// The machine, as far as verdicts may depend on it. No host, user or path.
struct Environment {
  std::string architecture;
  std::string instruction_set;
  std::string compiler;
  std::int64_t threads = 1;  ///< per implementation call
  std::string rounding;
  bool flush_to_zero = false;
  bool denormals_are_zero = false;
  std::int64_t x87_precision = 0;
  std::int64_t real_digits = 0;
  std::string torch;                ///< "loaded", or why not
  std::vector<std::string> dtypes;  ///< "f32: roundoff 5.96e-08, ..."
};

/// What was asked for.
struct Request {
  std::string profile;
  std::uint64_t seed = 0;
  std::int64_t cases = 0;  ///< drawn per loss and dtype
  std::vector<std::string> losses, implementations, properties, dtypes;
  bool hardening = false;            ///< the hardening properties were asked as well
  std::vector<std::string> corpora;  ///< names of the folders of stored cases
  std::string fail_on;
  std::string shard = {};                 ///< "2/5", the share of a campaign; empty: all of it
  std::vector<std::string> brought = {};  ///< to a campaign, in whatever share: "jsd/mine"
  std::string budget = {};                ///< of a campaign: "8:00:00", "200000 cases"
  bool causes = true;                     ///< findings were looked into
};

/// An implementation under test, or one that is wrong on purpose (twin is not empty).
struct Subject {
  std::string loss, name, device, file;
  std::int64_t line = 0;
  std::string twin, thread, cause, trigger;
  std::vector<std::string> killers;
  /// Questions that its contract leaves out, and the properties of which none was left: for that,
  /// or since it is red already. What a caller is not promised by default is no question.
  std::int64_t relaxed_by_contract = 0;
  std::vector<std::string> never_asked;
  /// Properties that were asked of it in vain: no case of the run could have shown otherwise.
  std::vector<std::string> never_triggered;
  /// Parameters that stay elsewhere than at their own defaults: "temperature other than 1, a
  /// parameter of the function whose own default is 2".
  std::vector<std::string> never_told = {};
  /// Options that its file does not say and no parameter takes: "kl_output_clamp 10".
  std::vector<std::string> taken_as = {};

  bool faulty() const { return !twin.empty(); }
};

struct PropertyEntry {
  std::string name, tier, statement;
};

/// Why a stored case is no question for a subject, whatever the property: its callers promise that
/// there is none. A property that a contract relaxes gives "contract" for its reason.
inline constexpr const char* kOutsideContract = "outside the contract";

/// What one property said of one implementation over all cases of one dtype.
struct Cell {
  std::string loss, implementation, dtype, property;
  std::int64_t cases = 0;
  std::array<std::int64_t, 5> verdicts{};       ///< by properties::Verdict
  std::map<std::string, std::int64_t> reasons;  ///< "skipped: no such dtype" -> cases
  std::int64_t compared = 0, no_digit = 0;      ///< entries
  double worst_ratio = 0.0;
  std::int64_t worst_ordinal = -1;  ///< place of that case in the run
  std::string worst_case;           ///< its id
  /// How many cases came how close to their bounds: by the decade of their largest error ratio.
  std::map<std::string, std::int64_t> ratios;
};

struct Timing {
  std::string loss, implementation, dtype;
  std::int64_t cases = 0, calls = 0;
  double seconds = 0.0;
};

/// A faulty implementation against a property that must notice it.
struct Kill {
  std::string loss, implementation, property;
  bool killed = false;
  std::int64_t hostile_cases = 0;  ///< within its dtype until the kill, or in vain
  std::string dtype, case_id;
  std::string long_axis;  ///< along which the case is long, empty where it is not
  std::string trouble;    ///< crashed, hung

  bool within_first_eight() const { return killed && hostile_cases <= 8; }
  bool by_long_case() const { return !long_axis.empty(); }
};

/// A regression's word that an implementation violates a property on its case.
struct Expectation {
  std::string file, implementation, property, verdict;
  bool met = false;
};

/// Stored cases of a loss that is asked which no subject of it can be asked.
struct UnfitCases {
  std::string corpus;  ///< name of their folder
  std::string loss, reason;
  std::int64_t cases = 0;
};

/// What an implementation gave on the case of a finding, undivided.
struct RecordedOutput {
  std::string name;
  std::vector<std::int64_t> extents;
  std::vector<double> values;
};

/// How many cases of a loss showed something that losses fail at.
struct Coverage {
  std::string loss, trait;
  std::int64_t cases = 0;
};

/// How far random splits of the batches on which an implementation is not invariant move its loss.
struct SplitErrors {
  std::string loss, implementation, dtype;
  /// How many splits are off by how much, by signed decade: "-1e-2" holds those from -0.01 down to
  /// -0.1, "0" those that are not off by 1e-6.
  std::map<std::string, std::int64_t> off_by;
  double worst = 0.0;
  std::int64_t worst_ordinal = -1;
  std::string worst_case, worst_split;
};

/// How far a campaign was at some time.
struct CampaignPoint {
  double seconds = 0.0;  ///< since it began
  std::int64_t cases = 0, features = 0, findings = 0;
  std::int64_t memory_mib = 0;  ///< that its processes have resident; 0: unknown
};

struct RecordedFinding {
  std::string fingerprint, loss, implementation, property, dtype, grade, cause, reach, detail;
  std::string source_file;
  std::int64_t source_line = 0;
  std::string source_text;   ///< what that line does, with the line, where somebody could look
  std::string source_flags;  ///< by which a replay finds the code, words of a shell
  std::string place;         ///< "gradient.log_prob[1, 3]", with its sequence and token
  std::vector<std::string> inputs;   ///< at that place, in decimal and bits
  std::vector<std::string> options;  ///< of its case, with the defaults: "beta 0.1"
  std::string actual, expected;
  double allowed = 0.0, half_width = 0.0, error_ratio = 0.0;
  std::int64_t ordinal = -1, count = 1;  ///< first case that shows it; how many do
  std::string case_id;
  std::string case_file;  ///< beside the record
  std::string repro;      ///< from the folder of the record
  std::string state;      ///< "red", "tolerated", "waived", "known", "expired waiver"
  std::string state_reason;
  std::string case_text;  ///< on its way to the file; not in the final record
  double ulp_error = 0.0;
  bool allclose = false;  ///< torch.allclose accepts the value, as it is called by default
  std::vector<RecordedOutput> outputs;  ///< of small cases
  std::vector<std::string> shows;  ///< all that is violated on its case: property, cause, place
  double confidence = 0.0;         ///< of its cause; 0: no more than what the property saw
  std::string fault;               ///< fingerprint of the finding that names the fault it is of
  std::string no_experiment = {};  ///< why none was made to tell its cause: "--no-causes"

  bool red() const { return state == "red" || state == "expired waiver"; }
  bool accepted() const { return state == "known" || state == "waived"; }
};

/// What an earlier run of a campaign found, and what its case no longer shows.
struct Mended {
  std::string fingerprint, loss, implementation, property;
  std::string case_file;  ///< beside the record
  std::string reason;     ///< "held", "skipped: contract"
};

struct RunRecord {
  std::int64_t schema = kSchemaVersion;
  std::string version, commit;
  Request request;
  Environment environment;
  std::int64_t cases_planned = 0, cases_run = 0;
  bool interrupted = false;
  std::vector<std::string> troubles;  ///< of the harness or machine: exit status 3
  std::vector<PropertyEntry> properties;
  std::vector<Subject> subjects;
  std::vector<Cell> cells;
  std::vector<Timing> timings;
  std::vector<Kill> kills;
  std::vector<Expectation> expectations;
  std::vector<RecordedFinding> findings;
  std::vector<std::string> vanished;      ///< baseline entries that this run did not find
  std::vector<std::string> idle_waivers;  ///< patterns that no finding of this run matched
  double seconds = 0.0;
  std::vector<Coverage> coverage;
  std::vector<SplitErrors> splits;
  std::vector<CampaignPoint> campaign;  ///< of a campaign on one machine
  std::int64_t baseline_cases = 0;      ///< that the baseline is of; 0: unknown, or no baseline
  std::vector<std::string> misfits;     ///< waivers and baseline entries that nothing could match
  std::vector<UnfitCases> unfit;        ///< of folders that a user named
  std::vector<Mended> mended;           ///< none of them is among the findings

  /// A run that stopped early or lost cases proves nothing.
  bool complete() const { return !interrupted && troubles.empty() && cases_run == cases_planned; }
};

/// The cell, made where it is missing.
Cell& cell(RunRecord& record, const std::string& loss, const std::string& implementation,
           const std::string& dtype, const std::string& property);

/// Counts a case, if it shows the trait; a trait that no case shows has a row as well.
void cover(RunRecord& record, const std::string& loss, const std::string& trait, bool shown);

/// Counts one outcome.
void tally(Cell& cell, const properties::Outcome& outcome, std::int64_t ordinal);

/// Counts how far the splits of one case move the loss; the row that they went into.
SplitErrors& count_splits(RunRecord& record, const std::string& loss,
                          const std::string& implementation, const std::string& dtype,
                          const properties::SplitBias& bias, std::int64_t ordinal);

/// Adds a finding, or counts it where its fingerprint is known.
void add_finding(RunRecord& record, RecordedFinding finding);

/// Adds the results of a part of the run. The whole is the same in whatever order parts come.
void merge(RunRecord& whole, const RunRecord& part);

/// Adds the subjects that only the part has.
void add_subjects(RunRecord& whole, const RunRecord& part);

/// Sorts everything into the order of the subjects and properties.
void put_in_order(RunRecord& record);

/// Whether a property was not asked as the answer is no number, or not the formula's, which is red
/// already (rule E2), by the reason of its outcome.
bool is_red_already(std::string_view reason);

/// Counts for each subject what its contract has left out, now that all is asked.
void count_relaxed(RunRecord& record);

/// What was brought to a campaign and is no subject of this record.
std::vector<std::string> brought_elsewhere(const RunRecord& record);

/// The same of a share, whose others have it: "jsd/mine: asked by another shard".
std::vector<std::string> elsewhere_lines(const RunRecord& record);

/// The properties that were never asked of the subject, with the reason where it can be mended.
std::string never_asked_text(const RunRecord& record, const Subject& subject);

/// How much of what was asked no verdict came of, as the subject does not compute it or its bound
/// leaves no digit: where that is more than a third, or of a property without any verdict more than
/// a third of its cases; else empty.
std::string unjudged_text(const RunRecord& record, const Subject& subject);

/// How many of its violations were examined, which is what its findings count; empty where all
/// were.
std::string examined_text(const RunRecord& record, const Subject& subject);

/// The sentence of a property; empty where the run had none of that name.
std::string_view statement_of(const RunRecord& record, std::string_view property);

/// Of value verdicts over sound implementations: how many, by verdict.
std::array<std::int64_t, 5> verdict_counts(const RunRecord& record);

}  // namespace lossgate::report
