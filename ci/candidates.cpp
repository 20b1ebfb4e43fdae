// SPDX-License-Identifier: Apache-2.0
#include "ci/candidates.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "fuzz/draw_case.h"

namespace lossgate::ci {
namespace {

constexpr int kCases = 8, kHostileCases = 32;
constexpr std::uint64_t kSeed = 20;
/// Beyond this many choices the last options keep their defaults.
constexpr std::size_t kMostCandidates = 20000;

/// Values of every output entry: what the formula gives, in the order of outputs_of.
using Values = std::vector<std::vector<double>>;

struct Kept : reference::Sink<reference::Tracked> {
  Values values;
  void entry(std::size_t output, std::int64_t index, const reference::Tracked& value) override {
    values[output][static_cast<std::size_t>(index)] = static_cast<double>(value.v);
  }
};

Values formula(const reference::Loss& loss, const LossSignature& signature, const Case& c) {
  reference::Loss bare = loss;
  bare.signature = signature;
  const reference::Problem problem(bare.signature, c);
  Kept kept;
  for (const OutputInfo& output : problem.outputs) {
    kept.values.emplace_back(static_cast<std::size_t>(element_count(output.extents)), 0.0);
  }
  reference::evaluate(bare, problem, reference::real_arithmetic(), kept);
  return kept.values;
}

Values values_of(const LossResult& result, const std::vector<OutputInfo>& outputs) {
  Values values;
  for (const OutputInfo& output : outputs) {
    const Tensor& tensor = *result.find(output.name);
    std::vector<double>& entries = values.emplace_back();
    for (std::int64_t i = 0; i < tensor.size(); ++i) entries.push_back(tensor.at(i));
  }
  return values;
}

double largest(const std::vector<double>& entries) {
  double most = 0.0;
  for (const double entry : entries) most = std::max(most, std::fabs(entry));
  return most;
}

/// The factor between two results, NaN where there is none. Where all is 0 it is any.
double factor_of(const Values& actual, const Values& expected, double tolerance) {
  double factor = 0.0;
  for (std::size_t o = 0; o < actual.size(); ++o) {
    for (std::size_t i = 0; i < actual[o].size() && factor == 0.0; ++i) {
      if (std::fabs(expected[o][i]) > 0.01 * largest(expected[o])) {
        factor = actual[o][i] / expected[o][i];
      }
    }
  }
  for (std::size_t o = 0; o < actual.size(); ++o) {
    const double scale = std::max(largest(actual[o]), largest(expected[o]) * std::fabs(factor));
    for (std::size_t i = 0; i < actual[o].size(); ++i) {
      const double difference = actual[o][i] - factor * expected[o][i];
      if (!(std::fabs(difference) <= tolerance * scale)) return std::nan("");
    }
  }
  return factor;
}

/// The values that an option may have had when the function was written.
std::vector<OptionValue> choices_of(const LossSignature& loss, const Option& option) {
  std::vector<OptionValue> values;
  if (option.nullable) values.emplace_back(None{});
  switch (option.kind) {
    case Option::Kind::flag:
      return {OptionValue(0.0), OptionValue(1.0)};
    case Option::Kind::choice:
      for (const std::string& choice : option.choices) values.emplace_back(choice);
      return values;
    default:
      if (option.name == loss.coefficient && option.low <= 0.0) values.emplace_back(0.0);
      if (!std::holds_alternative<None>(option.standard)) values.push_back(option.standard);
      return values;
  }
}

/// The function as it is called on one case: its answer, or nothing where it refuses.
struct Probe {
  Case c;
  std::optional<Values> actual;
  double positions_per_token = 1.0;
};

std::vector<Probe> probe(const reference::Loss& loss, const impl::Subject& subject,
                         const std::shared_ptr<impl::Session>& session, Dtype dtype,
                         fuzz::Profile profile) {
  // Nothing lies on an edge, and masked positions hold zeros.
  impl::Subject plain = subject;
  plain.masked = Masked::zero;
  plain.dtypes = {dtype};
  const LossSignature signature = impl::narrowed(loss.signature, plain);
  const auto function = impl::brought_implementation(plain, signature, session);
  std::vector<Probe> probes;
  const int count = profile == fuzz::Profile::benign ? kCases : kHostileCases;
  for (int i = 0; i < count; ++i) {
    fuzz::Choices choices(
        fuzz::case_seed(kSeed, loss.signature.id, dtype, static_cast<std::uint64_t>(i)));
    Probe one{.c = fuzz::draw_case(signature, dtype, profile, choices), .actual = {}};
    one.c.split = {};
    one.c.upstream = 1.0;
    const auto valid = valid_positions(signature, one.c);
    const auto tokens = std::ranges::count(valid, true);
    if (tokens == 0) continue;
    one.positions_per_token = static_cast<double>(valid.size()) / static_cast<double>(tokens);
    const LossResult result = function.evaluate(signature, one.c);
    if (!result.refusal) one.actual = values_of(result, outputs_of(signature, one.c));
    probes.push_back(std::move(one));
  }
  return probes;
}

Likeness like(const Candidate& candidate, const LossSignature& signature,
              const std::vector<Probe>& probes, double tolerance) {
  Likeness likeness{.candidate = candidate};
  std::vector<double> factors, by_positions;
  for (const Probe& probe : probes) {
    Case c = probe.c;
    c.spec.reduction = candidate.reduction;
    for (const auto& [name, value] : candidate.options) c.spec.set(name, value);
    ++likeness.cases;
    if (!probe.actual) continue;
    const double factor =
        factor_of(*probe.actual, formula(*candidate.loss, signature, c), tolerance);
    likeness.equal += std::fabs(factor - 1.0) <= tolerance;
    factors.push_back(factor);
    by_positions.push_back(factor * probe.positions_per_token);
  }
  const auto constant = [&](const std::vector<double>& all) {
    return !all.empty() && static_cast<int>(all.size()) == likeness.cases &&
           std::ranges::all_of(all, [&](double f) {
             return std::fabs(f - all[0]) <= tolerance * std::fabs(all[0]);
           });
  };
  if (constant(factors)) {
    likeness.factor = factors[0];
  } else if (constant(by_positions)) {
    likeness.factor = by_positions[0];
    likeness.by_positions = true;
  }
  return likeness;
}

}  // namespace

std::vector<Candidate> candidates(const reference::Loss& loss, const impl::Greeting& greeting) {
  std::vector<Candidate> all;
  const auto& reductions = loss.signature.reductions;
  for (const Reduction reduction : reductions) {
    all.push_back({.loss = &loss, .reduction = reduction, .options = {}});
    if (greeting.reduction) break;
  }
  for (const Option& option : loss.signature.options) {
    if (std::ranges::find(greeting.options, option.name) != greeting.options.end()) continue;
    std::vector<OptionValue> values = choices_of(loss.signature, option);
    if (all.size() * values.size() > kMostCandidates) values.resize(1);
    std::vector<Candidate> more;
    for (const OptionValue& value : values) {
      for (Candidate candidate : all) {
        candidate.options.emplace_back(option.name, value);
        more.push_back(std::move(candidate));
      }
    }
    all = std::move(more);
  }
  return all;
}

std::vector<Likeness> compare(const std::vector<Candidate>& all, const impl::Subject& subject,
                              const std::shared_ptr<impl::Session>& session, Dtype dtype) {
  if (all.empty()) return {};
  const reference::Loss& loss = *all.front().loss;
  const auto probes = probe(loss, subject, session, dtype, fuzz::Profile::benign);
  const LossSignature signature = impl::narrowed(loss.signature, subject);
  const double tolerance = dtype == Dtype::f64 ? 1e-9 : 1e-4;
  std::vector<Likeness> likenesses;
  for (const Candidate& candidate : all) {
    likenesses.push_back(like(candidate, signature, probes, tolerance));
    likenesses.back().place = static_cast<int>(likenesses.size());
  }
  const auto rank = [](const Likeness& a) {
    return std::tuple(-a.equal, a.factor == 0.0, -a.hostile, a.place);
  };
  std::ranges::sort(likenesses, {}, rank);
  // Only on edges do clamps and bounds show.
  const auto even = std::ranges::find_if(
      likenesses, [&](const Likeness& a) { return a.equal != likenesses.front().equal; });
  if (even - likenesses.begin() > 1 && likenesses.front().equal > 0) {
    const auto edges = probe(loss, subject, session, dtype, fuzz::Profile::hostile);
    for (auto likeness = likenesses.begin(); likeness != even; ++likeness) {
      likeness->hostile = like(likeness->candidate, signature, edges, tolerance).equal;
    }
    std::ranges::sort(likenesses, {}, rank);
  }
  return likenesses;
}

}  // namespace lossgate::ci
