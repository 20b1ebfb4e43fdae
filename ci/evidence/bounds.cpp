// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "ci/evidence/subjects.h"
#include "ci/selection.h"
#include "fuzz/certified/certified.h"
#include "reference/reference.h"

/// Whether the truth, by MPFR, is inside the bounds, and how close implementations come to them.
namespace lossgate::ci::evidence {
namespace {

using fuzz::CertifiedEntry;
using fuzz::CertifiedLoss;
using nlohmann::json;
using reference::kThreshold;

/// Shares of the bound, in steps of a quarter of a power of two: medians of parts of a run cannot
/// be put together, counts can. The last store is left out, whose error is everybody's.
class Shares {
 public:
  void add(double share) {
    ++total_;
    largest_ = std::max(largest_, share);
    if (share > 0.0) ++steps_[static_cast<int>(std::ceil(4.0 * std::log2(share)))];
  }

  json text() const {
    json steps = json::object();
    for (const auto& [step, count] : steps_) steps[std::to_string(step)] = count;
    return {{"values", total_}, {"largest", largest_}, {"steps", steps}};
  }

 private:
  std::int64_t total_ = 0;
  double largest_ = 0.0;
  std::map<int, std::int64_t> steps_;
};

struct Counted {
  std::int64_t cases = 0, values = 0, beyond_range = 0;
  std::map<std::string, std::int64_t> judged, without_bound;  ///< of what fits, by profile
  std::int64_t uncertain = 0, outside = 0;
  double reference = 0.0, adversary = 0.0, halved = 0.0;
  std::map<std::string, Shares> shares;  ///< of a textbook evaluation, by profile and output

  void add(const CertifiedEntry& entry, const OutputInfo& output, fuzz::Profile profile) {
    ++values;
    ++judged[std::string(fuzz::name(profile))];
    const double allowed = entry.allowed();
    uncertain += !entry.reference_is_certain();
    if (allowed > 0.0) reference = std::max(reference, entry.own / allowed);
    const double book = entry.ratio(entry.textbook), foe = entry.ratio(entry.adversary);
    outside += book > kThreshold || foe > kThreshold;
    adversary = std::max(adversary, foe);
    const double half = entry.expected.err / 2 + entry.stored;
    halved = std::max(halved, entry.ratio(entry.adversary, half));
    // What is an exact zero for everybody says nothing of a bound, nor does another form than the
    // bound's.
    if (entry.expected.err > 0.0 && entry.declared) {
      shares[std::string(fuzz::name(profile)) + "/" + output.name].add(
          entry.ratio(entry.computed, entry.expected.err));
    }
  }

  json text() const {
    json by_output = json::object();
    for (const auto& [name, own] : shares) by_output[name] = own.text();
    return {{"cases", cases},
            {"values", values},
            {"beyond_range", beyond_range},
            {"judged", judged},
            {"without_bound", without_bound},
            {"uncertain", uncertain},
            {"outside", outside},
            {"reference", reference},
            {"adversary", adversary},
            {"adversary_at_half_the_error", halved},
            {"textbook", by_output}};
  }
};

/// How much a unit certifies: so many cases, and more of them until there are so many values.
struct Least {
  std::int64_t cases = 0, values = 0;
};

/// First cases of two units are so far apart, and a unit never has as many.
constexpr std::int64_t kApart = 1 << 20;

/// Cases of the loss in that dtype from `begin` on, each with another arithmetic.
json certify(const CertifiedLoss& certified, Dtype dtype, std::uint64_t seed, std::int64_t begin,
             const Least& least) {
  const reference::Loss& loss = certified.loss;
  Counted counted;
  for (std::int64_t i = begin; i < begin + kApart; ++i) {
    if (i >= begin + least.cases && counted.values >= least.values) break;
    const auto profile = i % 2 == 0 ? fuzz::Profile::benign : fuzz::Profile::hostile;
    const Case c = drawn(loss, dtype, profile, seed, i);
    if (reference::expected_refusal(loss, c)) continue;
    // Not in step with the profiles, so that each meets every arithmetic.
    const auto variant = static_cast<int>(i / 2);
    const Arithmetic arithmetic = fuzz::arithmetic_variant(loss.signature, dtype, variant);
    const reference::Problem problem(loss.signature, c);
    const auto exact = fuzz::evaluated(certified.precise, problem, arithmetic.form);
    ++counted.cases;
    const fuzz::Unjudged unjudged = fuzz::for_each_certified(
        certified, problem, arithmetic, exact, variant, [&](const CertifiedEntry& entry) {
          counted.add(entry, problem.outputs[entry.output], profile);
        });
    counted.beyond_range += unjudged.beyond_range;
    counted.without_bound[std::string(fuzz::name(profile))] += unjudged.without_bound;
  }
  json text = counted.text();
  text["loss"] = loss.signature.id;
  text["dtype"] = name(dtype);
  return text;
}

}  // namespace

std::vector<Unit> bounds(const Effort& effort) {
  // In full 10,000 cases and 10^6 values of each loss and dtype.
  const std::int64_t parts = effort.of(1, 20);
  const Least least = effort.quick ? Least{.cases = 100} : Least{.cases = 500, .values = 50'000};
  std::vector<Unit> units;
  for (const CertifiedLoss& certified : fuzz::certified_losses()) {
    const LossSignature& signature = certified.loss.signature;
    for (const Dtype dtype : dtypes_of(signature)) {
      for (std::int64_t part = 0; part < parts; ++part) {
        units.push_back({signature.id + "/" + std::string(name(dtype)) + "/" + std::to_string(part),
                         [=, &certified, seed = effort.seed] {
                           return certify(certified, dtype, seed, part * kApart, least);
                         }});
      }
    }
  }
  return units;
}

}  // namespace lossgate::ci::evidence
