// SPDX-License-Identifier: Apache-2.0
#include "properties/evaluation.h"

#include <stdexcept>

#include "properties/ahead.h"

namespace lossgate::properties {
namespace {

using reference::Tracked;

/// Entries of all outputs up to which expectations are kept rather than streamed anew.
constexpr std::int64_t kKeptEntries = 1 << 16;

/// Above it a case is large: every copy would be counted in hundreds of megabytes.
constexpr std::int64_t kLargeEntries = 1 << 24;

std::int64_t total_entries(const std::vector<OutputInfo>& outputs) {
  std::int64_t total = 0;
  for (const OutputInfo& output : outputs) total += element_count(output.extents);
  return total;
}

struct Forwarding final : reference::Sink<Tracked> {
  explicit Forwarding(const CaseStudy::Visitor& visit_in) : visit(visit_in) {}
  void entry(std::size_t output, std::int64_t index, const Tracked& value) override {
    visit(output, index, value);
  }
  const CaseStudy::Visitor& visit;
};

/// Gradients are the last outputs: without them the others have the numbers that they had.
std::vector<OutputInfo> without_gradients(std::vector<OutputInfo> outputs) {
  std::erase_if(outputs,
                [](const OutputInfo& output) { return output.kind == OutputKind::gradient; });
  return outputs;
}

struct Keeping final : reference::Sink<Tracked> {
  explicit Keeping(const std::vector<OutputInfo>& outputs) {
    for (const OutputInfo& output : outputs) {
      values.emplace_back(static_cast<std::size_t>(element_count(output.extents)));
    }
  }
  void entry(std::size_t output, std::int64_t index, const Tracked& value) override {
    values[output][static_cast<std::size_t>(index)] = value;
  }
  std::vector<std::vector<Tracked>> values;
};

std::shared_ptr<const Case> unsplit(const std::shared_ptr<const Case>& c) {
  if (c->split.whole()) return c;
  auto whole = std::make_shared<Case>(*c);
  whole->split = {};
  return whole;
}

}  // namespace

struct CaseStudy::Expectations {
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
    : CaseStudy(loss, std::make_shared<const Case>(std::move(c))) {}

CaseStudy::CaseStudy(const reference::Loss& loss, std::shared_ptr<const Case> c)
    : loss_(loss),
      split_(std::move(c)),
      whole_(unsplit(split_)),
      refusal_(reference::expected_refusal(loss, *whole_)) {
  if (refusal_) return;
  problem_.emplace(loss.signature, *whole_);
  split_problem_.emplace(loss.signature, *split_);
}

CaseStudy::~CaseStudy() = default;

const reference::Problem& CaseStudy::problem(bool split) const {
  return split ? split_problem_.value() : problem_.value();
}

const std::vector<OutputInfo>& CaseStudy::outputs() const { return problem(false).outputs; }

bool CaseStudy::valid(std::int64_t sequence, std::int64_t token) const {
  const reference::Problem& p = problem(false);
  return p.valid[static_cast<std::size_t>(sequence * p.tokens + token)];
}

void CaseStudy::stream(const Arithmetic& arithmetic, bool split, Wanted wanted,
                       reference::Sink<Tracked>& sink) const {
  if (wanted == Wanted::everything) {
    return reference::evaluate(loss_, problem(split), arithmetic, sink);
  }
  reference::Problem asked = problem(split);
  asked.outputs = without_gradients(std::move(asked.outputs));
  reference::evaluate(loss_, asked, arithmetic, sink);
}

const CaseStudy::Expectations& CaseStudy::stored(const Arithmetic& arithmetic, bool split,
                                                 Wanted wanted) {
  for (const auto& known : expectations_) {
    if (known->split == split && known->wanted == wanted && known->arithmetic == arithmetic) {
      return *known;
    }
  }
  Keeping sink(wanted == Wanted::values ? without_gradients(outputs()) : outputs());
  stream(arithmetic, split, wanted, sink);
  expectations_.push_back(std::make_unique<Expectations>(
      Expectations{arithmetic, split, wanted, std::move(sink.values)}));
  return *expectations_.back();
}

void CaseStudy::for_each_expected(const Arithmetic& arithmetic, bool split, const Visitor& visit,
                                  Wanted wanted) try {
  const std::int64_t all = total_entries(outputs());
  const std::vector<OutputInfo> values = without_gradients(outputs());
  const std::size_t shown = wanted == Wanted::values ? values.size() : outputs().size();
  if (all > kKeptEntries &&
      (wanted == Wanted::everything || total_entries(values) > kKeptEntries)) {
    Forwarding sink(visit);
    return stream(arithmetic, split, wanted, sink);
  }
  // Of a small case everything is computed at once.
  const Expectations& kept =
      stored(arithmetic, split, all > kKeptEntries ? Wanted::values : Wanted::everything);
  for (std::size_t output = 0; output < shown; ++output) {
    const auto& entries = kept.values[output];
    for (std::size_t i = 0; i < entries.size(); ++i) {
      visit(output, static_cast<std::int64_t>(i), entries[i]);
    }
  }
} catch (const Enough&) {  // nothing is left to be seen
}

void CaseStudy::for_each_pair(const Arithmetic& one, const Arithmetic& other,
                              const PairVisitor& visit) {
  if (one == other) {
    const auto twice = [&](std::size_t o, std::int64_t i, const Tracked& x) { visit(o, i, x, x); };
    return for_each_expected(one, false, twice);
  }
  if (total_entries(outputs()) <= kKeptEntries) {
    const Expectations& second = stored(other, false, Wanted::everything);
    const auto beside = [&](std::size_t o, std::int64_t i, const Tracked& x) {
      visit(o, i, x, second.values[o][static_cast<std::size_t>(i)]);
    };
    return for_each_expected(one, false, beside);
  }
  // One formula writes its entries in one order, whatever the arithmetic.
  Ahead second([&](const Ahead::Take& take) {
    const Visitor hand_on = [&](std::size_t o, std::int64_t i, const Tracked& x) {
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
    slot->transformed = transform.apply(signature(), *whole_, *split_);
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
  }
  return study.get();
}

bool CaseStudy::large() const { return !refusal_ && total_entries(outputs()) > kLargeEntries; }

void CaseStudy::forget_derived() { derived_.clear(); }

Evaluation::Evaluation(CaseStudy& study, const impl::Implementation& implementation)
    : study_(study),
      implementation_(implementation),
      arithmetic_(implementation.arithmetic(float_dtype(study.signature(), study.whole()))),
      stable_(arithmetic_) {
  if (!study.signature().forms.empty()) stable_.form = study.signature().forms.front();
}

LossResult Evaluation::call(const Case& c) {
  ++calls_;
  return implementation_.evaluate(signature(), c);
}

const LossResult& Evaluation::actual() {
  auto [slot, fresh] = results_.try_emplace("");
  if (fresh) slot->second = call(study_.whole());
  return slot->second;
}

const LossResult& Evaluation::actual(const Transform& transform) {
  auto [slot, fresh] = results_.try_emplace(transform.name);
  if (fresh) slot->second = call(study_.transformed(transform)->c);
  return slot->second;
}

void Evaluation::foresee(const std::vector<const Transform*>& transforms) {
  if (!implementation_.foresee || study_.large()) return;
  std::vector<const Case*> cases;
  for (const Transform* transform : transforms) {
    if (results_.contains(transform->name)) continue;
    if (const Transformed* made = study_.transformed(*transform)) cases.push_back(&made->c);
  }
  implementation_.foresee(signature(), cases);
}

void Evaluation::foresee_nothing() {
  if (implementation_.foresee) implementation_.foresee(signature(), {});
}

void Evaluation::forget_derived() {
  if (!study_.large()) return;
  std::erase_if(results_, [](const auto& result) { return !result.first.empty(); });
  study_.forget_derived();
}

void Evaluation::forget(const Transform& transform) {
  if (study_.large()) results_.erase(transform.name);
}

}  // namespace lossgate::properties
