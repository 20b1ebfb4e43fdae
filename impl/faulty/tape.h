// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "impl/faulty/formats.h"
#include "impl/faulty/recycled.h"
#include "impl/pairwise_sum.h"

/// Reverse-mode differentiation with PyTorch's derivative rules (its derivatives.yaml), zeros
/// included: whatever took part in the forward receives a gradient, and an exact 0 from a selection
/// is multiplied by the local derivative of what lies behind it. That product is NaN where the
/// derivative is infinite, which is how sound-looking losses lose their gradients.
namespace lossgate::impl {

template <class Format>
class Tape;

/// A number on a tape.
template <class Format>
class Var {
 public:
  using Value = typename Format::Value;
  Var() = default;
  Var(Tape<Format>* tape, std::int32_t node) : tape_(tape), node_(node) {}

  Value value() const { return tape_->value(*this); }
  Tape<Format>& tape() const { return *tape_; }
  std::int32_t node() const { return node_; }

 private:
  Tape<Format>* tape_ = nullptr;
  std::int32_t node_ = -1;
};

enum class TapeOp : std::uint8_t {
  leaf,
  add,
  subtract,
  multiply,
  divide,
  negate,
  exp,
  expm1,
  log,
  log1p,
  logaddexp,
  sigmoid,
  clamp,
  minimum,
  maximum,
  where,
  nan_to_num,
  sum,
  expand,
};

template <class Format>
class Tape {
 public:
  using Value = typename Format::Value;
  using Variable = Var<Format>;

  /// A number whose gradient is asked for.
  Variable variable(Value x) { return push({TapeOp::leaf, true, -1, -1, Format::rounded(x)}); }
  Variable constant(Value x) { return push({TapeOp::leaf, false, -1, -1, Format::rounded(x)}); }

  Value value(Variable x) const { return node(x).value; }

  Variable unary(TapeOp op, Variable a, Value result, Value low = 0, Value high = 0) {
    return push({op, node(a).tracked, a.node(), -1, Format::rounded(result), low, high});
  }

  Variable binary(TapeOp op, Variable a, Variable b, Value result, bool first = false) {
    return push({op, node(a).tracked || node(b).tracked, a.node(), b.node(),
                 Format::rounded(result), first ? Value(1) : Value(0), Value(0)});
  }

  /// Neighbours first, in Value, rounded once: 16-bit sums accumulate in f32.
  Variable sum(const std::vector<Variable>& terms) {
    scratch_.clear();
    bool tracked = false;
    const auto first = static_cast<std::int32_t>(operands_.size());
    for (const Variable& term : terms) {
      scratch_.push_back(value(term));
      operands_.push_back(term.node());
      tracked = tracked || node(term).tracked;
    }
    const Value total = overflow_free_sum(scratch_.data(), scratch_.size());
    return push({TapeOp::sum, tracked, first, static_cast<std::int32_t>(operands_.size()),
                 Format::rounded(total)});
  }

  /// The same number `count` times; its gradient is the pairwise sum of theirs.
  std::vector<Variable> expand(Variable x, std::size_t count) {
    std::vector<Variable> copies;
    for (std::size_t i = 0; i < count; ++i) {
      const auto group = static_cast<std::int32_t>(i == 0 ? count : 0);
      copies.push_back(push({TapeOp::expand, node(x).tracked, x.node(), group, value(x)}));
    }
    return copies;
  }

  /// Propagates `upstream` from the root to everything that it was made of.
  void backward(Variable root, Value upstream) {
    adjoints_.assign(nodes_.size(), Value(0));
    reached_.assign(nodes_.size(), 0);
    give(root.node(), Format::rounded(upstream));
    for (std::int32_t i = root.node(); i >= 0; --i) {
      const Node& n = nodes_[static_cast<std::size_t>(i)];
      if (n.op == TapeOp::expand) {
        if (n.b > 0) collapse(i, n);
      } else if (n.tracked && reached_[static_cast<std::size_t>(i)]) {
        propagate(n, adjoints_[static_cast<std::size_t>(i)]);
      }
    }
  }

  /// 0 where the root does not depend on the variable.
  Value gradient(Variable x) const { return adjoints_[static_cast<std::size_t>(x.node())]; }

 private:
  struct Node {
    TapeOp op;
    bool tracked;
    std::int32_t a, b;  ///< operands; of a sum: a range of operands_; b of the first copy: how many
    Value value;
    Value low = 0, high = 0;  ///< of clamp; low of `where`: whether the first operand was taken
  };

  const Node& node(Variable x) const { return nodes_[static_cast<std::size_t>(x.node())]; }
  Value value_of(std::int32_t i) const { return nodes_[static_cast<std::size_t>(i)].value; }

  Variable push(const Node& n) {
    nodes_.push_back(n);
    return {this, static_cast<std::int32_t>(nodes_.size() - 1)};
  }

  void give(std::int32_t to, Value gradient) {
    const auto i = static_cast<std::size_t>(to);
    if (!nodes_[i].tracked) return;
    adjoints_[i] = reached_[i] ? Format::rounded(adjoints_[i] + gradient) : gradient;
    reached_[i] = 1;
  }

  /// The first of a group of copies is met last, when all of them have their gradients.
  void collapse(std::int32_t first, const Node& n) {
    const auto begin = static_cast<std::size_t>(first), count = static_cast<std::size_t>(n.b);
    bool any = false;
    for (std::size_t i = begin; i < begin + count; ++i) any = any || reached_[i];
    if (!any || !n.tracked) return;
    scratch_.assign(adjoints_.begin() + first, adjoints_.begin() + first + n.b);
    give(n.a, Format::rounded(pairwise_sum(scratch_.data(), count)));
  }

  static Value r(Value x) { return Format::rounded(x); }

  void propagate(const Node& n, Value g) {
    const auto a = [&] { return value_of(n.a); };
    const auto b = [&] { return value_of(n.b); };
    switch (n.op) {
      case TapeOp::leaf:
      case TapeOp::expand:
        break;
      case TapeOp::add:
        give(n.a, g);
        give(n.b, g);
        break;
      case TapeOp::subtract:
        give(n.a, g);
        give(n.b, -g);
        break;
      case TapeOp::multiply:
        give(n.a, r(g * b()));
        give(n.b, r(g * a()));
        break;
      case TapeOp::divide:
        give(n.a, r(g / b()));
        give(n.b, r(-g * r(r(a() / b()) / b())));
        break;
      case TapeOp::negate:
        give(n.a, -g);
        break;
      case TapeOp::exp:
        give(n.a, r(g * n.value));
        break;
      case TapeOp::expm1:
        give(n.a, r(g * r(n.value + Value(1))));
        break;
      case TapeOp::log:
        give(n.a, r(g / a()));
        break;
      case TapeOp::log1p:
        give(n.a, r(g / r(a() + Value(1))));
        break;
      case TapeOp::logaddexp:  // a share is 0 where the exponential overflows
        give(n.a, r(g / r(Value(1) + r(std::exp(r(b() - a()))))));
        give(n.b, r(g / r(Value(1) + r(std::exp(r(a() - b()))))));
        break;
      case TapeOp::sigmoid:
        give(n.a, r(r(g * r(Value(1) - n.value)) * n.value));
        break;
      case TapeOp::clamp:  // a NaN is handed on forward, but takes no gradient
        give(n.a, a() >= n.low && a() <= n.high ? g : Value(0));
        break;
      case TapeOp::minimum:
        propagate_choice(n, g, a() > b(), a() < b());
        break;
      case TapeOp::maximum:
        propagate_choice(n, g, a() < b(), a() > b());
        break;
      case TapeOp::where:
        give(n.a, n.low != Value(0) ? g : Value(0));
        give(n.b, n.low != Value(0) ? Value(0) : g);
        break;
      case TapeOp::nan_to_num:  // a product with 0 or 1, not a selection
        give(n.a, r(g * Value(std::isfinite(a()) ? 1 : 0)));
        break;
      case TapeOp::sum:
        for (std::int32_t i = n.a; i < n.b; ++i) give(operands_[static_cast<std::size_t>(i)], g);
        break;
    }
  }

  /// min and max: half to each on a tie, everything to both where a NaN decides nothing.
  void propagate_choice(const Node& n, Value g, bool not_a, bool not_b) {
    const Value share = value_of(n.a) == value_of(n.b) ? r(g / Value(2)) : g;
    give(n.a, not_a ? Value(0) : share);
    give(n.b, not_b ? Value(0) : share);
  }

  Recycled<Node> nodes_;
  Recycled<std::int32_t> operands_;
  Recycled<Value> adjoints_, scratch_;
  Recycled<std::uint8_t> reached_;
};

}  // namespace lossgate::impl
