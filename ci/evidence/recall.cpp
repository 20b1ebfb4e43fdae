// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "ci/evidence/subjects.h"
#include "ci/evidence/tenfold.h"
#include "ci/selection.h"
#include "ci/simplest.h"
#include "fuzz/long_case.h"
#include "impl/catalog.h"
#include "properties/diagnosis.h"
#include "properties/sibling.h"

/// How soon each implementation that is wrong on purpose is noticed.
namespace lossgate::ci::evidence {
namespace {

using nlohmann::json;
using properties::CaseStudy;
using properties::Evaluation;
using properties::Outcome;

/// Cases after which a fault is called rare.
constexpr std::int64_t kWindow = 8;

double thread_seconds() {
  std::timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// What the first case that showed the fault was, and what it cost.
struct Kill {
  std::int64_t cases = 0;  ///< that were asked, this one included
  double seconds = 0.0;
  std::string property, cause, dtype;

  json text() const {
    return {{"cases", cases},
            {"seconds", seconds},
            {"property", property},
            {"cause", cause},
            {"dtype", dtype}};
  }
};

class Hunt {
 public:
  Hunt(const impl::Implementation& variant, const Effort& effort)
      : variant_(variant),
        twin_(impl::twin_of(variant)),
        loss_(*reference::find_loss(variant.loss)),
        dtypes_(dtypes_of(loss_.signature)),
        properties_(asked_properties()),
        effort_(effort) {
    if (!variant.fault->of_length) return;
    std::erase_if(properties_, [](const properties::Property* p) { return !p->of_long; });
  }

  json run() {
    json windows = json::array();
    const std::int64_t count = effort_.of(10, 200);
    for (std::int64_t i = 0; i < count; ++i) {
      // The first window is that of the gate's own seed.
      const auto seed = effort_.seed + static_cast<std::uint64_t>(i);
      const auto kill = first_kill(fuzz::Profile::hostile, seed, kWindow, kNoLimit);
      windows.push_back(kill ? kill->text() : json());
    }
    const double budget = effort_.quick ? 2.0 : 60.0;
    const auto kill = first_kill(fuzz::Profile::hostile, effort_.seed, kForever, budget);
    const auto plain =
        first_kill(fuzz::Profile::benign, effort_.seed, effort_.of(100, 2000), kNoLimit);
    return {{"loss", variant_.loss},
            {"variant", variant_.name},
            {"fault", variant_.fault->cause},
            {"of_length", false},
            {"windows", windows},
            {"tenfold", noticed_with_tenfold_errors()},
            {"budget_seconds", budget},
            {"hostile", kill ? kill->text() : json()},
            {"benign_cases", effort_.of(100, 2000)},
            {"benign", plain ? plain->text() : json()},
            {"twin", twin_ ? json(twin_->name) : json()},
            {"twin_cases", twin_cases_},
            {"twin_seconds", twin_seconds_},
            {"twin_violated", twin_violated_}};
  }

  /// On the long cases that gates of as many seeds draw beside all others.
  json run_long() {
    json windows = json::array();
    const std::int64_t count = effort_.of(10, 200);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto kill = first_long_kill(effort_.seed + static_cast<std::uint64_t>(i));
      windows.push_back(kill ? kill->text() : json());
    }
    return {{"loss", variant_.loss},
            {"variant", variant_.name},
            {"fault", variant_.fault->cause},
            {"of_length", true},
            {"windows", windows},
            {"twin_cases", twin_cases_},
            {"twin_seconds", twin_seconds_},
            {"twin_violated", twin_violated_}};
  }

 private:
  std::optional<Kill> first_long_kill(std::uint64_t seed) {
    const double start = thread_seconds();
    const LossSignature& signature = loss_.signature;
    std::int64_t asked = 0;
    for (const fuzz::Length& length : fuzz::lengths_of(seed, signature, dtypes_)) {
      const Case c = fuzz::draw_long_case(seed, signature, length);
      if (variant_.unsupported(c)) continue;
      ++asked;
      CaseStudy study(loss_, c);
      if (auto kill = shown(study)) {
        kill->cases = asked;
        kill->seconds -= start;
        kill->dtype = name(length.dtype);
        return kill;
      }
    }
    return std::nullopt;
  }

  /// In the first window.
  bool noticed_with_tenfold_errors() const {
    const impl::Implementation wide = with_tenfold_errors(variant_);
    Hunt hunt(wide, effort_);
    return hunt.first_kill(fuzz::Profile::hostile, effort_.seed, kWindow, kNoLimit).has_value();
  }

  static constexpr double kNoLimit = 1e9;
  static constexpr std::int64_t kForever = std::int64_t{1} << 40;
  /// Draws that no case of comes from, in a row, after which there will be none.
  static constexpr std::int64_t kPatience = 1000;

  /// Draws of all dtypes in turn; those that are not for the variant are not counted.
  std::optional<Kill> first_kill(fuzz::Profile profile, std::uint64_t seed, std::int64_t cases,
                                 double seconds) {
    const double start = thread_seconds();
    std::int64_t asked = 0, unasked = 0;
    for (std::int64_t draw = 0; asked < cases && unasked < kPatience; ++draw) {
      const auto each = static_cast<std::int64_t>(dtypes_.size());
      const Dtype dtype = dtypes_[static_cast<std::size_t>(draw % each)];
      const Case c = drawn(loss_, dtype, profile, seed, draw / each);
      if (variant_.unsupported(c)) {
        ++unasked;
        continue;
      }
      unasked = 0;
      ++asked;
      CaseStudy study(loss_, c);
      if (auto kill = shown(study)) {
        kill->cases = asked;
        kill->seconds -= start;
        kill->dtype = name(dtype);
        return kill;
      }
      if (thread_seconds() - start > seconds) break;
    }
    return std::nullopt;
  }

  std::optional<Kill> shown(CaseStudy& study) {
    if (twin_) properties::give_sibling(study, *twin_);
    Evaluation evaluation(study, variant_);
    const auto outcomes = properties::check_all(evaluation, properties_, true);
    if (twin_ && !twin_->unsupported(study.split())) ask_twin(study.split());
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (!outcomes[i].violation) continue;
      Kill kill;
      kill.seconds = thread_seconds();  // what it takes to explain is no part of it
      kill.property = properties_[i]->name;
      kill.cause = named(study, *properties_[i], *outcomes[i].violation);
      return kill;
    }
    return std::nullopt;
  }

  /// What a gate calls the fault: it makes the case of a finding simple before it explains it.
  std::string named(CaseStudy& study, const properties::Property& property,
                    const properties::Violation& violation) const {
    auto finding = properties::name_finding(study, variant_, property, violation, false);
    if (!simplest(finding, loss_, variant_, property, study.split(), {})) {
      finding.diagnosis = properties::diagnose(study, variant_, property, violation);
    }
    return finding.diagnosis.cause;
  }

  /// The twin meets the same cases, with a reference of its own, so that a gate's time is known:
  /// what it violates is a false alarm.
  void ask_twin(const Case& c) {
    const double start = thread_seconds();
    CaseStudy study(loss_, c);
    Evaluation evaluation(study, *twin_);
    const auto outcomes = properties::check_all(evaluation, properties_, true);
    twin_seconds_ += thread_seconds() - start;
    ++twin_cases_;
    twin_violated_ += std::ranges::any_of(
        outcomes, [](const Outcome& outcome) { return outcome.violation.has_value(); });
  }

  const impl::Implementation& variant_;
  const impl::Implementation* twin_;
  const reference::Loss& loss_;
  std::vector<Dtype> dtypes_;
  std::vector<const properties::Property*> properties_;
  const Effort& effort_;
  std::int64_t twin_cases_ = 0, twin_violated_ = 0;
  double twin_seconds_ = 0.0;
};

}  // namespace

std::vector<Unit> recall(const Effort& effort) {
  std::vector<Unit> units = of_each_fault(
      false, [effort](const impl::Implementation& variant) { return Hunt(variant, effort).run(); });
  std::ranges::move(of_each_fault(true,
                                  [effort](const impl::Implementation& variant) {
                                    return Hunt(variant, effort).run_long();
                                  }),
                    std::back_inserter(units));
  return units;
}

}  // namespace lossgate::ci::evidence
