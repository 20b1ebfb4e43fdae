// SPDX-License-Identifier: Apache-2.0
#include "fuzz/minimise.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "corpora/case_id.h"
#include "fuzz/smaller.h"
#include "fuzz/transplant.h"
#include "properties/behind_mask.h"
#include "reference/spec/contract.h"
#include "reference/spec/even_parts.h"

namespace lossgate::fuzz {

std::optional<Failure> Failure::on(const reference::Loss& loss,
                                   const impl::Implementation& implementation,
                                   const properties::Property& property, const Case& c) {
  Failure failure(loss, implementation, property);
  std::optional<Kind> kind = failure.kind_on(c);
  if (!kind) return std::nullopt;
  failure.kind_ = std::move(*kind);
  failure.keeps_to_contract_ = keeps_to_contract(loss.signature, c);
  return failure;
}

bool Failure::shows_on(const Case& c) const {
  if (keeps_to_contract_ && !keeps_to_contract(loss_->signature, c)) return false;
  try {
    const std::optional<Kind> kind = kind_on(c);
    return kind && *kind == kind_;
  } catch (const std::exception&) {
    return false;
  }
}

std::optional<Failure::Kind> Failure::kind_on(const Case& c) const {
  if (implementation_->unsupported && implementation_->unsupported(c)) return std::nullopt;
  properties::CaseStudy study(*loss_, c);
  properties::Evaluation evaluation(study, *implementation_);
  evaluation.tells_bias = false;
  const properties::Outcome outcome = property_->check(evaluation);
  if (!outcome.violation) return std::nullopt;
  const properties::Place& place = outcome.violation->place;
  const bool counts = study.refusal() || properties::anything_counts(study);
  return Kind{outcome.violation->cause, place.output, place.valid, counts};
}

namespace {

/// Of the tries that are left, the part that one pass may use; and what it may use of few.
constexpr std::int64_t kShare = 4, kLeastShare = 32;

/// Nobody reads the digits of more numbers: they are rounded together or not at all.
constexpr std::size_t kMostRounded = 64;

/// A case of more bytes is asked again rather than named: its name takes as long as some answers.
constexpr std::size_t kMostNamed = std::size_t{1} << 16;

bool is_named(const Case& c) {
  std::size_t bytes = 0;
  for (const auto& [field, tensor] : c.batch.fields) bytes += tensor.bytes.size();
  return bytes <= kMostNamed;
}

/// Goes from a case that fails to simpler ones that do.
class Search {
 public:
  Search(const LossSignature& signature, const Case& c, const StillFails& still_fails,
         const Effort& effort);

  Minimised run();

 private:
  struct Pass {
    std::function<void()> run;
    std::int64_t in_vain_at = -1;  ///< after so many steps it was tried in full, for nothing
  };

  bool spent() const {
    return result_.tried >= effort_.tries ||
           std::chrono::steady_clock::now() - start_ >= effort_.time;
  }
  bool take(const std::function<Case()>& simpler);
  bool fails(const Case& c);
  bool run_all(std::vector<Pass>& passes);

  void change(const std::vector<Change>& changes);
  void all_plain();
  void shorten(Axis axis, void (*drop)(Kept&, const Suffices&));
  void shorten_ends();
  Case with(const Case& c, const Field& field, const Rewrite& rewrite, const Kept& entries) const;
  void rewrite_most(const Field& field, const Rewrite& rewrite);
  void round(const Field& field);

  const LossSignature& signature_;
  const StillFails& still_fails_;
  const Effort effort_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<Pass> bold_, fine_;
  std::set<std::string> held_;  ///< the names of cases that were tried for nothing
  Minimised result_;
  std::int64_t share_ = kShare, pass_ends_ = 0;
  bool cut_ = false;  ///< a pass had more to try than it may
};

Search::Search(const LossSignature& signature, const Case& c, const StillFails& still_fails,
               const Effort& effort)
    : signature_(signature), still_fails_(still_fails), effort_(effort) {
  result_.c = c;
  const bool has_axes = !shape_follows_data(signature);
  bold_.push_back({[this] { change(plainer_settings(result_.c)); }});
  bold_.push_back({[this] { all_plain(); }});
  if (has_axes) bold_.push_back({[this] { shorten_ends(); }});
  bold_.push_back({[this] { change(plainer_options(signature_, result_.c)); }});
  for (const Field& field : signature.fields) {
    bold_.push_back({[this, &field] { rewrite_most(field, plainer(field)); }});
    fine_.push_back({[this, &field] { round(field); }});
  }
  for (const Axis axis : kAllAxes) {
    if (has_axes) bold_.push_back({[this, axis] { shorten(axis, drop_chunks); }});
  }
}

Minimised Search::run() {
  for (;;) {
    cut_ = false;
    const bool simpler = run_all(bold_) || run_all(fine_);
    if (!simpler && !cut_) break;
    if (spent()) {
      result_.complete = false;
      break;
    }
    share_ = simpler ? kShare : std::max<std::int64_t>(share_ / 2, 1);
  }
  return result_;
}

/// Whether anything got simpler.
bool Search::run_all(std::vector<Pass>& passes) {
  const std::int64_t before = result_.steps;
  for (Pass& pass : passes) {
    const std::int64_t steps = result_.steps;
    if (pass.in_vain_at == steps) continue;
    const std::int64_t left = effort_.tries - result_.tried;
    pass_ends_ = result_.tried + std::max(left / share_, std::min(left, kLeastShare));
    const bool others_cut = std::exchange(cut_, false);
    pass.run();
    if (result_.steps == steps && !cut_) pass.in_vain_at = steps;
    cut_ = cut_ || others_cut;
  }
  return result_.steps > before;
}

/// Goes on from the case if it fails; it is not even made once the pass has had its share.
bool Search::take(const std::function<Case()>& simpler) {
  if (result_.tried >= pass_ends_ || spent()) {
    cut_ = true;
    return false;
  }
  Case c = simpler();
  ++result_.tried;
  if (!fails(c)) return false;
  result_.c = std::move(c);
  ++result_.steps;
  return true;
}

/// Passes come to the same case in their own ways, and each begins again when another one was of
/// use: four tries of ten are known to be for nothing.
bool Search::fails(const Case& c) {
  if (!is_named(c)) return still_fails_(c);
  const std::string id = corpora::case_id(c);
  if (held_.contains(id)) return false;
  const bool fails = still_fails_(c);
  if (!fails) held_.insert(id);
  return fails;
}

void Search::change(const std::vector<Change>& changes) {
  const auto settings = [](const Case& c) {
    return std::tie(c.spec, c.split, c.layout, c.upstream);
  };
  for (const Change& step : changes) {
    Case simpler = result_.c;
    step(simpler);
    // A step before may have settled the same.
    if (settings(simpler) != settings(result_.c)) take([&] { return simpler; });
  }
}

/// Every number, or else every number of a field: what fails for its size needs none of them.
void Search::all_plain() {
  std::vector<std::pair<const Field*, Kept>> unusual;
  for (const Field& field : signature_.fields) {
    Kept entries = changed_by(plainer(field), result_.c.batch.at(field.name));
    if (!entries.empty()) unusual.emplace_back(&field, std::move(entries));
  }
  const auto without_those_of = [&](auto first, auto last) {
    return take([&] {
      Case simpler = result_.c;
      for (; first != last; ++first) {
        const Field& field = *first->first;
        simpler = with(simpler, field, plainer(field), first->second);
      }
      return simpler;
    });
  };
  if (unusual.size() > 1 && without_those_of(unusual.begin(), unusual.end())) return;
  for (auto at = unusual.begin(); at != unusual.end(); ++at) without_those_of(at, at + 1);
}

void Search::shorten(Axis axis, void (*drop)(Kept&, const Suffices&)) {
  if (result_.c.shape[axis] <= 1) return;
  const Case whole = result_.c;
  Kept kept(static_cast<std::size_t>(whole.shape[axis]));
  std::iota(kept.begin(), kept.end(), 0);
  drop(kept, [&](const Kept& rest) {
    return !rest.empty() && take([&] { return with_axis(signature_, whole, axis, rest); });
  });
}

/// The shortest axis first: of what takes so many elements, the longest says exactly how many.
void Search::shorten_ends() {
  std::vector<Axis> axes(std::begin(kAllAxes), std::end(kAllAxes));
  std::ranges::sort(axes, {}, [&](Axis axis) { return std::pair(result_.c.shape[axis], axis); });
  for (const Axis axis : axes) shorten(axis, drop_ends);
}

Case Search::with(const Case& c, const Field& field, const Rewrite& rewrite,
                  const Kept& entries) const {
  Case simpler = rewritten(c, field, rewrite, entries);
  // Other sequences count now: parts that were as large as each other need not be.
  if (field.role == Role::mask || field.role == Role::label) make_parts_even(signature_, simpler);
  return simpler;
}

/// Rewrites as many entries as may be of those that this would change.
void Search::rewrite_most(const Field& field, const Rewrite& rewrite) {
  const Case whole = result_.c;
  const Kept all = changed_by(rewrite, whole.batch.at(field.name));
  Kept kept = all;
  drop_chunks(kept, [&](const Kept& rest) {
    return take([&] { return with(whole, field, rewrite, without(all, rest)); });
  });
}

void Search::round(const Field& field) {
  if (!is_float(result_.c.batch.at(field.name).dtype)) return;
  for (const Rewrite& shorter : rounder()) {
    for (std::int64_t steps = -1; steps != result_.steps;) {
      steps = result_.steps;
      const Tensor& tensor = result_.c.batch.at(field.name);
      const Kept all = changed_by(shorter, tensor);
      if (all.size() > kMostRounded) {
        take([&] { return rewritten(result_.c, field, shorter, all); });
      } else {
        rewrite_most(field, shorter);
      }
    }
  }
}

}  // namespace

Minimised minimise(const LossSignature& signature, const Case& c, const StillFails& still_fails,
                   const Effort& effort) {
  return Search(signature, c, still_fails, effort).run();
}

Minimised minimise(const Failure& failure, const Case& c, const Effort& effort,
                   const std::function<void(const Case&, std::int64_t)>& progress) {
  std::int64_t tried = 0;
  const auto still_fails = [&](const Case& simpler) {
    ++tried;
    const bool fails = failure.shows_on(simpler);
    if (fails && progress) progress(simpler, tried);
    return fails;
  };
  return minimise(failure.loss().signature, c, still_fails, effort);
}

}  // namespace lossgate::fuzz
