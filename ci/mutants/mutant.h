// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <functional>
#include <utility>

/// A function of this file has one instruction set, and so have the vectors that it may be handed.
#define LOSSGATE_BASELINE_LANES

/// Included before everything else in a tree that ci/mutants/plant.py has rewritten: all mutants
/// are compiled at once, and the variable LOSSGATE_MUTANT chooses the one that lives.
namespace lossgate::mutant {

inline const int living =
    std::getenv("LOSSGATE_MUTANT") ? std::atoi(std::getenv("LOSSGATE_MUTANT")) : 0;

inline bool lives(int number) { return living == number; }

/// a op b, of which the mutant makes another operation of the same operands.
template <int kNumber, class As, class Becomes, class Left, class Right>
inline auto binary(Left&& left, Right&& right) {
  return lives(kNumber) ? Becomes{}(std::forward<Left>(left), std::forward<Right>(right))
                        : As{}(std::forward<Left>(left), std::forward<Right>(right));
}

struct Add {
  template <class L, class R>
  decltype(auto) operator()(L& left, R&& right) const {
    return left += std::forward<R>(right);
  }
};
struct Subtract {
  template <class L, class R>
  decltype(auto) operator()(L& left, R&& right) const {
    return left -= std::forward<R>(right);
  }
};
struct Multiply {
  template <class L, class R>
  decltype(auto) operator()(L& left, R&& right) const {
    return left *= std::forward<R>(right);
  }
};
struct Divide {
  template <class L, class R>
  decltype(auto) operator()(L& left, R&& right) const {
    return left /= std::forward<R>(right);
  }
};

template <int kNumber, class As, class Becomes, class Left, class Right>
inline Left& assigned(Left& left, Right&& right) {
  if (lives(kNumber)) {
    Becomes{}(left, std::forward<Right>(right));
  } else {
    As{}(left, std::forward<Right>(right));
  }
  return left;
}

template <int kNumber, class Value>
inline auto negated(Value&& value) {
  return lives(kNumber) ? +std::forward<Value>(value) : -std::forward<Value>(value);
}

/// The condition of a branch, of which the mutant takes the other one.
template <int kNumber, class Value>
inline bool condition(Value&& value) {
  return static_cast<bool>(std::forward<Value>(value)) != lives(kNumber);
}

}  // namespace lossgate::mutant
