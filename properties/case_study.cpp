// SPDX-License-Identifier: Apache-2.0
#include "properties/case_study.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>

#include "properties/ahead.h"
#include "properties/entry_sinks.h"

namespace lossgate::properties {
namespace {

using reference::Tracked;

/// Entries of all outputs up to which expectations are kept rather than streamed anew: all of a
/// long case (rule E10), which every implementation asks for several times.
constexpr std::int64_t kKeptEntries = 1 << 18;

/// Above it a case is large: every copy would be counted in hundreds of megabytes.
constexpr std::int64_t kLargeEntries = 1 << 24;

std::int64_t total_entries(std::span<const OutputInfo> outputs) {
  std::int64_t total = 0;
  for (const OutputInfo& output : outputs) total += element_count(output.extents);
  return total;
}

/// Gradients are the last outputs: without them the others have the numbers that they had.
std::span<const OutputInfo> values_of(std::span<const OutputInfo> outputs) {
  const auto first_gradient = std::ranges::find(outputs, OutputKind::gradient, &OutputInfo::kind);
  return outputs.first(static_cast<std::size_t>(first_gradient - outputs.begin()));
}

std::shared_ptr<const Case> unsplit(const std::shared_ptr<const Case>& c) {
  if (c->split.whole()) return c;
  auto whole = std::make_shared<Case>(*c);
  whole->split = {};
  return whole;
}

/// Whether the field is NaN where it counts.
bool holds_nan(const reference::Problem& problem, const Field& field) {
  const Tensor& tensor = problem.c.batch.at(field.name);
  if (tensor.all_finite()) return false;
  const std::int64_t positions = problem.sequences * problem.tokens;
  const std::int64_t each = is_positional(field) && positions > 0 ? tensor.size() / positions : 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (!std::isnan(tensor.at(i))) continue;
    if (each == 0 || problem.valid[static_cast<std::size_t>(i / each)]) return true;
  }
  return false;
}

}  // namespace

struct CaseStudy::Approximations {
  Arithmetic arithmetic;
  bool split;
  std::optional<reference::Approximation> entries;
};

struct CaseStudy::Expectations {
  template <class IsOne>
  bool any(std::size_t outputs, const IsOne& is_one) const {
    for (std::size_t output = 0; output < outputs; ++output) {
      for (std::size_t i = 0; i < values[output].size(); ++i) {
        if (is_one(output, static_cast<std::int64_t>(i), values[output][i])) return true;
      }
    }
    return false;
  }

  Arithmetic arithmetic;
  bool split;
  Wanted wanted;
  std::vector<std::vector<Tracked>> values;
};

struct CaseStudy::Derived {
  std::optional<Transformed> transformed;
  std::unique_ptr<CaseStudy> study;
};

CaseStudy::CaseStudy(const reference::Loss& loss, Case c)
    : loss_(loss),
      given_(std::exchange(c.split, {})),
      whole_(std::make_shared<const Case>(std::move(c))),
      refusal_(reference::expected_refusal(loss, *whole_)) {
  if (!refusal_) problem_.emplace(loss.signature, *whole_);
}

CaseStudy::CaseStudy(const reference::Loss& loss, std::shared_ptr<const Case> c)
    : loss_(loss),
      given_(c->split),
      whole_(unsplit(c)),
      split_(std::move(c)),
      refusal_(reference::expected_refusal(loss, *whole_)) {
  if (!refusal_) problem_.emplace(loss.signature, *whole_);
}

CaseStudy::~CaseStudy() = default;

const Case& CaseStudy::split() const {
  if (!split_ && given_.whole()) split_ = whole_;
  if (!split_) {
    auto made = std::make_shared<Case>(*whole_);
    made->split = given_;
    split_ = std::move(made);
  }
  return *split_;
}

const reference::Problem& CaseStudy::problem(bool split) {
  if (!split || given_.whole()) return problem_.value();
  if (!split_problem_) split_problem_.emplace(loss_.signature, this->split());
  return *split_problem_;
}

const std::vector<OutputInfo>& CaseStudy::outputs() const { return problem_.value().outputs; }

bool CaseStudy::valid(std::int64_t sequence, std::int64_t token) const {
  const reference::Problem& p = problem_.value();
  return p.valid[static_cast<std::size_t>(sequence * p.tokens + token)];
}

bool CaseStudy::nan_at_valid() {
  if (!nan_at_valid_) {
    nan_at_valid_ = std::ranges::any_of(
        signature().fields, [&](const Field& field) { return holds_nan(problem_.value(), field); });
  }
  return *nan_at_valid_;
}

std::size_t CaseStudy::count(Wanted wanted) const {
  return wanted == Wanted::values ? values_of(outputs()).size() : outputs().size();
}

void CaseStudy::stream(const Arithmetic& arithmetic, bool split, Wanted wanted,
                       reference::Sink<Tracked>& sink) {
  if (wanted == Wanted::everything) {
    return reference::evaluate(loss_, problem(split), arithmetic, sink);
  }
  reference::Problem asked = problem(split);
  asked.outputs.resize(count(wanted));
  reference::evaluate(loss_, asked, arithmetic, sink);
}

const reference::Approximation* CaseStudy::approximation(const Arithmetic& arithmetic, bool split) {
  const auto& approximators = reference::approximators_of(loss_);
  if (!filtered || approximators.empty() || !reference::is_coarse(arithmetic)) return nullptr;
  if (total_entries(outputs()) > kKeptEntries) return nullptr;
  for (const auto& known : approximations_) {
    if (known->split == split && known->arithmetic == arithmetic) {
      return known->entries ? &*known->entries : nullptr;
    }
  }
  approximations_.push_back(std::make_unique<Approximations>(
      Approximations{arithmetic, split, approximators.front()(problem(split), arithmetic)}));
  const auto& entries = approximations_.back()->entries;
  return entries ? &*entries : nullptr;
}

const CaseStudy::Expectations* CaseStudy::known(const Arithmetic& arithmetic, bool split,
                                                Wanted wanted) const {
  for (const auto& entries : expectations_) {
    if (entries->split == split && entries->wanted == wanted && entries->arithmetic == arithmetic) {
      return entries.get();
    }
  }
  return nullptr;
}

const CaseStudy::Expectations& CaseStudy::stored(const Arithmetic& arithmetic, bool split,
                                                 Wanted wanted) {
  if (const Expectations* entries = known(arithmetic, split, wanted)) return *entries;
  const auto asked = std::span(outputs()).first(count(wanted));
  const auto keep = [&](bool of_split, Keeping&& sink) -> const Expectations& {
    expectations_.push_back(std::make_unique<Expectations>(
        Expectations{arithmetic, of_split, wanted, std::move(sink.values)}));
    return *expectations_.back();
  };
  Keeping sink(asked);
  if (wanted == Wanted::everything && !given_.whole() && !loss_.advice) {
    // Who asks for one asks for the other, and they differ in how they are put together only.
    Keeping beside(asked);
    reference::evaluate(loss_, problem_.value(), arithmetic, sink, reference::Accumulation(given_),
                        beside);
    const Expectations &whole = keep(false, std::move(sink)),
                       &in_parts = keep(true, std::move(beside));
    return split ? in_parts : whole;
  }
  stream(arithmetic, split, wanted, sink);
  return keep(split, std::move(sink));
}

const CaseStudy::Expectations* CaseStudy::kept(const Arithmetic& arithmetic, bool split,
                                               Wanted wanted) {
  if (total_entries(outputs()) <= kKeptEntries) {  // then everything is computed at once, mostly
    const Expectations* all = known(arithmetic, split, Wanted::everything);
    return all ? all : &stored(arithmetic, split, is_derived_ ? wanted : Wanted::everything);
  }
  const bool keeps =
      wanted == Wanted::values && total_entries(values_of(outputs())) <= kKeptEntries;
  return keeps ? &stored(arithmetic, split, wanted) : nullptr;
}

void CaseStudy::for_each_expected(const Arithmetic& arithmetic, bool split, const Visitor& visit,
                                  Wanted wanted) {
  const Expectations* expected = kept(arithmetic, split, wanted);
  if (!expected) {
    Forwarding sink(visit);
    return stream(arithmetic, split, wanted, sink);
  }
  expected->any(count(wanted), [&](std::size_t output, std::int64_t i, const Tracked& x) {
    visit(output, i, x);
    return false;
  });
}

bool CaseStudy::any_expected(const Arithmetic& arithmetic, bool split, const Predicate& is_one,
                             Wanted wanted) {
  // The first rows of a large case answer it mostly.
  const Expectations* expected =
      large() ? known(arithmetic, split, wanted) : kept(arithmetic, split, wanted);
  if (!expected) {
    Searching sink(is_one);
    try {
      stream(arithmetic, split, wanted, sink);
    } catch (const Searching<Predicate>::Found&) {
      return true;
    }
    return false;
  }
  return expected->any(count(wanted), is_one);
}

void CaseStudy::for_each_pair(const Arithmetic& one, const Arithmetic& other,
                              const PairVisitor& visit) {
  if (one == other) {
    const auto twice = [&](std::size_t o, std::int64_t i, const Tracked& x) { visit(o, i, x, x); };
    return for_each_expected(one, false, twice);
  }
  if (total_entries(outputs()) <= kKeptEntries || !concurrent()) {
    const Expectations& second = stored(other, false, Wanted::everything);
    const auto beside = [&](std::size_t o, std::int64_t i, const Tracked& x) {
      visit(o, i, x, second.values[o][static_cast<std::size_t>(i)]);
    };
    return for_each_expected(one, false, beside);
  }
  // One formula writes its entries in one order, whatever the arithmetic.
  Ahead second([&](const Ahead::Take& take) {
    const auto hand_on = [&](std::size_t o, std::int64_t i, const Tracked& x) {
      take({.output = o, .index = i, .value = x});
    };
    Forwarding sink(hand_on);
    stream(other, false, Wanted::everything, sink);
  });
  for_each_expected(one, false, [&](std::size_t o, std::int64_t i, const Tracked& x) {
    const ExpectedEntry& beside = second.next();
    if (beside.output != o || beside.index != i) throw std::logic_error("two orders of entries");
    visit(o, i, x, beside.value);
  });
}

const Transformed* CaseStudy::transformed(const Transform& transform) {
  auto& slot = derived_[transform.name];
  if (!slot) {
    slot = std::make_unique<Derived>();
    slot->transformed = transform.apply(signature(), *whole_, split());
  }
  return slot->transformed ? &*slot->transformed : nullptr;
}

CaseStudy* CaseStudy::derived(const Transform& transform) {
  const Transformed* made = transformed(transform);
  if (!made) return nullptr;
  auto& study = derived_[transform.name]->study;
  if (!study) {
    // The transformed case stands beside its study, for as long.
    study = std::make_unique<CaseStudy>(
        loss_, std::shared_ptr<const Case>(std::shared_ptr<void>(), &made->c));
    study->is_derived_ = true;
  }
  return study.get();
}

bool CaseStudy::large() const { return !refusal_ && total_entries(outputs()) > kLargeEntries; }

void CaseStudy::forget_derived() { derived_.clear(); }

}  // namespace lossgate::properties
