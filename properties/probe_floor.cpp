// SPDX-License-Identifier: Apache-2.0
// What keeps a probability away from 0 before its logarithm: a constant beside it, or a floor.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "properties/probes.h"
#include "properties/unlikely_token.h"

namespace lossgate::properties {
namespace {

/// How many times less likely a token is, as a logarithm: one that floors are below, and such as
/// they are above, with slopes of a weighted entropy that f32 has, with exponentials that it has
/// and, for a floor of log-probs, with none.
constexpr double kNear = 2.0, kFar[] = {40.0, 60.0, 3e4};
/// Still farther the answer is the same.
constexpr double kFarther = 4.0 / 3.0;
/// A larger constant is none that guards a logarithm.
constexpr double kLargestConstant = 1.0 / 16;
/// How far from the predicted one a surprise may be, in nats: beside the distance of predictions,
/// a tenth at least, little, and more than the constant leaves of the other terms.
constexpr double kSlack = 0.05;
/// So far beyond where it stops growing guards leave different surprises.
constexpr double kBeyond[] = {0.0, 1.0, 2.0};
/// A slope says something where it is this many times what may be wrong with it; and is an
/// entropy's where it is the same multiple of it within that share.
constexpr double kClear = 32.0, kSame = 1.0 / 64;

/// What is answered where a token is that far below all others.
using Asked = std::function<std::optional<Surprise>(double gap)>;

/// What keeps a probability away from 0: the surprise that is then answered, where that of the
/// constant is `most`, and how much farther than that it grows.
struct Guard {
  double (*answered)(double surprise, double most);
  double farther;
  const char* cause;
  const char* says;  ///< the constant stands where there is a %
};

constexpr const char* kBesideIt =
    "of an unlikely token the answer is that with % added to its probability";
constexpr const char* kAtLeast =
    "of an unlikely token the answer is that with a probability of at least %";

double beside(double surprise, double most) {
  return -std::log(std::exp(-surprise) + std::exp(-most));
}

/// Of p log(p + c) the slope by p is log(p + c) + p / (p + c), where the formula's is log p + 1.
double beside_in_logarithm(double surprise, double most) {
  const double sum = std::exp(-surprise) + std::exp(-most);
  return 1.0 - std::exp(-surprise) / sum - std::log(sum);
}

double at_most(double surprise, double most) { return std::min(surprise, most); }

/// Of p log(max(p, c)) it is log c.
double at_most_in_logarithm(double surprise, double most) {
  return surprise < most ? surprise : most + 1.0;
}

const Guard kOfSurprise[] = {{beside, 0.0, "epsilon in a logarithm", kBesideIt},
                             {at_most, 0.0, "undeclared bound", kAtLeast}};
const Guard kOfSlope[] = {{beside, 0.0, "epsilon in a logarithm", kBesideIt},
                          {beside_in_logarithm, 1.0, "epsilon in a logarithm", kBesideIt},
                          {at_most_in_logarithm, 1.0, "undeclared bound", kAtLeast}};

/// e^-surprise.
std::string text_of_probability(double surprise) {
  const double probability = std::exp(-surprise);
  std::ostringstream text;
  text.precision(1);
  if (probability == 0.0) {
    text << "e^-" << std::lround(surprise);
  } else {
    text << std::scientific << probability;
  }
  return text.str();
}

/// The surprise at which those that are answered stop growing, where the formula's go on.
std::optional<double> largest_surprise(const Asked& at) {
  const auto near = at(kNear);
  if (!near || !(std::fabs(near->answered - near->formula) <= kLargestConstant)) {
    return std::nullopt;
  }
  for (const double gap : kFar) {
    const auto far = at(gap), farther = at(kFarther * gap);
    if (!far || !farther) return std::nullopt;
    const bool stops = std::fabs(farther->answered - far->answered) <= kSlack &&
                       far->answered >= -std::log(kLargestConstant);
    const bool goes_on =
        farther->formula - far->formula >= 1.0 && far->formula - far->answered >= 1.0;
    if (stops && goes_on) return far->answered;
  }
  return std::nullopt;
}

/// Of the guards the one which leaves such numbers about where they stop growing.
Opinion guarded_by(const Asked& of, std::optional<double> largest, std::span<const Guard> guards) {
  std::vector<Surprise> surprises;
  for (const double beyond : kBeyond) {
    const auto here = largest ? of(*largest + beyond) : std::nullopt;
    if (!here) return std::nullopt;
    surprises.push_back(*here);
  }
  for (const Guard& guard : guards) {
    const double most = *largest - guard.farther;
    const bool is_it = std::ranges::all_of(surprises, [&](const Surprise& here) {
      return std::fabs(here.answered - guard.answered(here.formula, most)) <= kSlack;
    });
    if (!is_it) continue;
    std::string says = guard.says;
    says.replace(says.find('%'), 1, text_of_probability(most));
    return Diagnosis{guard.cause, 0.95, says};
  }
  return std::nullopt;
}

/// The slope by the logit of an unlikely token whose row's other logits are one number.
struct Slope {
  double expected, actual;
  double surprise, entropy, others;  ///< how many others there are

  /// An entropy's, p (log p + H), is this times it, however small p is.
  double scale() const { return expected / (std::exp(-surprise) * (entropy - surprise)); }
  /// -log p, where the slope that is answered is an entropy's.
  double answered() const { return entropy - actual / expected * (entropy - surprise); }
};

std::optional<Slope> slope_of(const std::optional<Reading>& reading) {
  if (!reading) return std::nullopt;
  const auto& entries = reading->entries();
  const auto slope = std::ranges::find_if(entries, [&](const ReadEntry& e) {
    return reading->kind(e) == OutputKind::gradient && e.index == 0;
  });
  if (slope == entries.end() || !(std::fabs(slope->expected) > kClear * slope->accepted)) {
    return std::nullopt;
  }
  const Tensor& logits = reading->given().batch.at(reading->outputs()[slope->output].field);
  if (logits.size() != reading->given().shape[Axis::vocab]) return std::nullopt;
  const auto others = static_cast<double>(logits.size() - 1);
  const double surprise = std::log1p(others * std::exp(logits.at(1) - logits.at(0)));
  const double p = std::exp(-surprise);
  const double entropy = p * surprise + (1.0 - p) * (std::log(others) - std::log1p(-p));
  return Slope{slope->expected, slope->actual, surprise, entropy, others};
}

/// Of an entropy, which hardly feels an unlikely token: its slope does.
Opinion guard_of_entropy(const UnlikelyToken& token) {
  const auto near = slope_of(token.at(kNear));
  if (!near) return std::nullopt;
  const Asked at = [&](double gap) -> std::optional<Surprise> {
    const auto slope = slope_of(token.at(gap));
    const bool same = slope && std::fabs(slope->scale() / near->scale() - 1.0) <= kSame;
    return same ? std::optional(Surprise{slope->surprise, slope->answered()}) : std::nullopt;
  };
  const Asked of = [&](double surprise) {
    return at(std::log(std::expm1(surprise) / near->others));
  };
  return guarded_by(of, largest_surprise(at), kOfSlope);
}

}  // namespace

/// Of an ever less likely token the surprise stops growing: at -log c. There, and farther out, a
/// constant c beside the probability and a floor at c leave different numbers.
Opinion probe_floor(Suspect& suspect) {
  const UnlikelyToken token(suspect);
  const Asked at = [&](double gap) { return surprise_of(token.at(gap)); };
  const Asked of = [&](double surprise) { return surprise_of(token.of(surprise)); };
  auto opinion = guarded_by(of, largest_surprise(at), kOfSurprise);
  return opinion ? opinion : guard_of_entropy(token);
}

}  // namespace lossgate::properties
