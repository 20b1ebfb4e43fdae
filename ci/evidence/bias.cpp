// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "ci/evidence/subjects.h"
#include "properties/agreement.h"

/// What is too small for any one case shows in the mean of many: a bias of all results in one
/// direction.
namespace lossgate::ci::evidence {
namespace {

using nlohmann::json;
using properties::CaseStudy;
using reference::Tracked;

/// The relative size of the systematic error that is put into a second copy of each answer.
constexpr double kBias = 1e-7;

/// Signed error ratios of the answers and of those copies, and what a relative bias of 1 adds.
struct Signed {
  double sum = 0.0, squares = 0.0, biased = 0.0, gain = 0.0;
  std::int64_t count = 0;

  json text() const {
    const auto n = static_cast<double>(count);
    if (count < 2) return {{"cases", count}};
    const double mean = sum / n;
    const double deviation = std::sqrt(std::max(squares / n - mean * mean, 0.0) / (n - 1.0));
    return {{"cases", count},
            {"mean", mean},
            {"deviation_of_mean", deviation},
            {"mean_of_biased", biased / n},
            {"gain", gain / n}};
  }
};

/// The mean over the entries of one kind of one case: entries of one case share their roundings, so
/// a case is one observation.
struct CaseMean {
  double ratio = 0.0, biased = 0.0, gain = 0.0, entries = 0.0;

  void add(double actual, const OutputInfo& output, const Tracked& x) {
    const auto magnitude = static_cast<double>(std::fabs(x.v));
    const double allowed = properties::allowed_error(output, x);
    // Only what has digits can be biased, and at a kink there is no one right answer.
    if (x.half > 0.0 || !(allowed < magnitude / 64.0)) return;
    const auto error = [&](double value) {
      return static_cast<double>(std::copysign(1.0L, x.v) * (value - x.v));
    };
    ratio += error(actual) / allowed;
    biased += error(round_to(output.dtype, actual * (1.0 + kBias))) / allowed;
    gain += magnitude / allowed;
    entries += 1.0;
  }

  void observe(Signed& all) const {
    if (entries == 0.0) return;
    all.sum += ratio / entries;
    all.squares += ratio / entries * (ratio / entries);
    all.biased += biased / entries;
    all.gain += gain / entries;
    ++all.count;
  }
};

json measure(const Sound& sound, const Effort& effort) {
  const Arithmetic arithmetic = sound.implementation->arithmetic(sound.dtype);
  Signed loss, gradients;
  const std::int64_t cases = effort.of(300, 20000);
  for (std::int64_t i = 0; i < cases; ++i) {
    const Case c = drawn(*sound.loss, sound.dtype, fuzz::Profile::benign, effort.seed, i);
    CaseStudy study(*sound.loss, c);
    if (study.refusal() || sound.implementation->unsupported(c)) continue;
    const LossResult answer = sound.implementation->evaluate(study.signature(), study.whole());
    if (answer.refusal) continue;
    CaseMean of_loss, of_gradients;
    study.for_each_expected(
        arithmetic, false, [&](std::size_t o, std::int64_t at, const Tracked& x) {
          const OutputInfo& output = study.outputs()[o];
          if (output.kind == OutputKind::value) return;
          if (!properties::must_be_finite(arithmetic, output, x)) return;
          const double actual = answer.find(output.name)->at(at);
          (output.kind == OutputKind::loss ? of_loss : of_gradients).add(actual, output, x);
        });
    of_loss.observe(loss);
    of_gradients.observe(gradients);
  }
  return {{"loss", sound.loss->signature.id},
          {"dtype", name(sound.dtype)},
          {"implementation", sound.implementation->name},
          {"bias", kBias},
          {"outputs", {{"the loss", loss.text()}, {"gradients", gradients.text()}}}};
}

}  // namespace

std::vector<Unit> bias(const Effort& effort) {
  std::vector<Unit> units;
  for (const Sound& sound : sound_subjects(effort)) {
    if (sound.loss->signature.reductions.empty()) continue;
    units.push_back({sound.name(), [=] { return measure(sound, effort); }});
  }
  return units;
}

}  // namespace lossgate::ci::evidence
