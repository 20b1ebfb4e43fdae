// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "impl/catalog.h"
#include "impl/external/declared_arithmetic.h"
#include "properties/verdict.h"
#include "reference/reference.h"
#include "report/record_file.h"

/// Whether a faulty implementation that comes in a shared library is killed as in this process:
/// every pair of a variant and a property that must notice it, by two gates over as many cases.
///   library_recall LOSSGATE LIBRARY FOLDER CASES [LOSS...]
namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

struct Pair {
  std::string loss, implementation, property;
  auto operator<=>(const Pair&) const = default;
};

/// "grpo.eager": names of subjects are unique in a file.
std::string subject_name(const impl::Implementation& row) { return row.loss + "." + row.name; }

/// The format of intermediates is one for a subject, so it is asked where that is so.
std::string dtypes_text(const impl::Implementation& row) {
  std::string text = "\"f32\"";
  const Dtype compute = row.arithmetic(Dtype::f32).compute;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    if (row.arithmetic(dtype).compute == compute) text += fmt::format(", \"{}\"", name(dtype));
  }
  return text;
}

std::string toml_text(const impl::Implementation& row, const std::string& library) {
  const Arithmetic arithmetic = row.arithmetic(Dtype::f32);
  std::string outputs, lines;
  for (const std::string& line :
       impl::toml_lines({.compute = arithmetic.compute, .form = arithmetic.form})) {
    lines += line + '\n';
  }
  for (const OutputField& output : reference::find_signature(row.loss)->outputs) {
    outputs += (outputs.empty() ? "\"" : ", \"") + output.name + "\"";
  }
  return fmt::format(
      "[[subject]]\nname = \"{}\"\nloss = \"{}\"\nentry = \"so:{}:implementation\"\n"
      "environment = {{ LOSSGATE_IMPLEMENTATION = \"{}\" }}\noutputs = [{}]\ndtypes = [{}]\n"
      "micro_batches = \"sum\"\nranks = \"sum\"\n[subject.arithmetic]\n{}[subject.contract]\n"
      "masked = \"any\"\nrefuses_invalid = true\ninfinite_valid = true\n",
      subject_name(row), row.loss, library, row.name, outputs, dtypes_text(row), lines);
}

class Recall {
 public:
  Recall(std::string lossgate, std::string folder, std::string cases)
      : lossgate_(std::move(lossgate)), folder_(std::move(folder)), cases_(std::move(cases)) {
    fs::create_directories(folder_ + "/empty");
  }

  report::RunRecord gate(const std::string& flags) const {
    const std::string command =
        fmt::format("{} gate --corpus {}/empty --cases {} --out {}/run {} >{}/log 2>&1", lossgate_,
                    folder_, cases_, folder_, flags, folder_);
    const int status = std::system(command.c_str());
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
      fmt::print("FAILED: {}\n", command);
      std::ifstream log(folder_ + "/log");
      for (std::string line; std::getline(log, line);) fmt::print("  {}\n", line);
      std::exit(3);
    }
    return report::read_record(folder_ + "/run/run.json");
  }

  const std::string& folder() const { return folder_; }

 private:
  std::string lossgate_, folder_, cases_;
};

struct Asked {
  std::int64_t violated = 0;
  std::string unsupported;  ///< why a case could not be asked
};

std::map<Pair, Asked> asked_as_library(const Recall& recall, const std::set<Pair>& pairs) {
  std::map<std::string, std::string> names_of_property;
  for (const Pair& pair : pairs) {
    std::string& names = names_of_property[pair.property];
    names += (names.empty() ? "" : ",") + pair.loss + "." + pair.implementation;
  }
  std::map<Pair, Asked> asked;
  for (const auto& [property, names] : names_of_property) {
    // One property alone, as the kill matrix judges it: without precedence (rule E2). Why hundreds
    // of variants violate it is known.
    const auto record =
        recall.gate(fmt::format("--config {}/recall.toml --no-causes --property {} --impl {}",
                                recall.folder(), property, names));
    for (const report::Cell& cell : record.cells) {
      const std::string name = cell.implementation.substr(cell.loss.size() + 1);
      Asked& entry = asked[{cell.loss, name, property}];
      entry.violated += cell.verdicts[static_cast<std::size_t>(properties::Verdict::violated)];
      for (const auto& [reason, count] : cell.reasons) {
        // A library returns its gradients with its loss, whoever asks for them.
        const bool modes = reason == "skipped: its gradients come with its loss";
        if (modes || reason.starts_with("skipped: unsupported")) entry.unsupported = reason;
      }
    }
  }
  return asked;
}

int run(const Recall& recall, const std::string& library, const std::set<std::string>& losses) {
  std::ofstream toml(recall.folder() + "/recall.toml");
  std::set<Pair> pairs;
  std::string sound;
  std::set<std::string> variants, only;
  for (const impl::Implementation& row : impl::catalog(false)) {
    if (reference::find_signature(row.loss)->reductions.empty()) continue;  // an operation
    if (!losses.empty() && !losses.contains(row.loss)) continue;
    toml << toml_text(row, library);
    only.insert(row.loss);
    if (!row.fault) {
      sound += (sound.empty() ? "" : ",") + subject_name(row);
      continue;
    }
    variants.insert(subject_name(row));
    for (const std::string& killer : row.fault->killers) pairs.insert({row.loss, row.name, killer});
  }
  toml.close();
  std::string flags;
  for (const std::string& loss : only) flags += " --loss " + loss;
  std::set<Pair> in_process;
  for (const report::Kill& kill : recall.gate(flags).kills) {
    const Pair pair{kill.loss, kill.implementation, kill.property};
    if (kill.killed && pairs.contains(pair)) in_process.insert(pair);
  }
  const auto asked = asked_as_library(recall, pairs);
  const auto twins =
      recall.gate(fmt::format("--config {}/recall.toml --impl {}", recall.folder(), sound));
  std::size_t differences = 0, killed = 0, beyond = 0;
  for (const Pair& pair : pairs) {
    const auto at = asked.find(pair);
    const bool here = in_process.contains(pair), there = at != asked.end() && at->second.violated;
    killed += there;
    if (here == there) continue;
    const std::string why = at == asked.end() ? "not asked" : at->second.unsupported;
    ++(here && !why.empty() ? beyond : differences);
    fmt::print("{} {} {}: {} in process, {} as a library {}\n", pair.loss, pair.implementation,
               pair.property, here ? "killed" : "survives", there ? "killed" : "survives", why);
  }
  for (const report::RecordedFinding& finding : twins.findings) {
    ++differences;
    fmt::print("{} violates {}: {}\n", finding.implementation, finding.property, finding.detail);
  }
  fmt::print(
      "{} variants of {} losses, {} pairs: killed in process {}, as a library {}, beyond what one "
      "call sees {}\n",
      variants.size(), only.size(), pairs.size(), in_process.size(), killed, beyond);
  // That both ways see as little is no agreement.
  const bool asked_enough = in_process.size() * 10 >= pairs.size() * 9;
  if (!asked_enough) fmt::print("too few are killed: more cases are needed\n");
  return differences == 0 && asked_enough ? 0 : 1;
}

}  // namespace
}  // namespace lossgate::ci

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const lossgate::ci::Recall recall(argv[1], argv[3], argv[4]);
  return lossgate::ci::run(recall, argv[2], {argv + 5, argv + argc});
}
