// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>

#include "properties/transforms.h"

/// The same case, asked as other callers ask (rule E11).
namespace lossgate::properties {
namespace {

bool has_gradients(const LossSignature& signature, std::ptrdiff_t at_least) {
  return std::ranges::count(signature.fields, Role::differentiable, &Field::role) >= at_least;
}

std::optional<Transformed> in_mode(const Case& whole, GradMode mode) {
  Transformed result{.c = whole};
  result.c.grad_mode = mode;
  return result;
}

std::optional<Transformed> without_gradients(const LossSignature& signature, const Case& whole,
                                             const Case&) {
  if (!has_gradients(signature, 1)) return std::nullopt;
  return in_mode(whole, GradMode::none);
}

/// Of two inputs, all but the second are the first alone, and the second alone is all but the
/// first.
template <GradMode mode, std::ptrdiff_t gradients = 2>
std::optional<Transformed> frozen(const LossSignature& signature, const Case& whole, const Case&) {
  if (!has_gradients(signature, gradients)) return std::nullopt;
  return in_mode(whole, mode);
}

/// The other data are one of the sequences everywhere, so there must be another one.
template <History history>
std::optional<Transformed> among_calls(const LossSignature& signature, const Case& whole,
                                       const Case&) {
  const bool turns = signature.rows_permutable && whole.shape[Axis::sequences] >= 2;
  if (!turns || !has_gradients(signature, 1)) return std::nullopt;
  Transformed result{.c = whole};
  result.c.history = history;
  return result;
}

/// Of a loss that returns its terms, each may get another gradient.
std::optional<Transformed> by_rows(const LossSignature& signature, const Case& whole,
                                   const Case& split) {
  if (!signature.returns_terms) return std::nullopt;
  return among_calls<History::backward_by_rows>(signature, whole, split);
}

/// An optimizer changes parameters, which all sequences share and which lie in one piece.
std::optional<Transformed> after_an_update(const LossSignature& signature, const Case& whole,
                                           const Case& split) {
  const bool has_parameters = std::ranges::any_of(signature.fields, [](const Field& field) {
    return field.role == Role::differentiable && !has_rows(field.axes);
  });
  if (!has_parameters) return std::nullopt;
  auto result = among_calls<History::updated>(signature, whole, split);
  if (result) result->c.layout = Layout::contiguous;
  return result;
}

std::optional<Transformed> under_autocast(const LossSignature& signature, const Case& whole,
                                          const Case&) {
  if (!may_autocast(signature, whole)) return std::nullopt;
  Transformed result{.c = whole};
  result.c.history = History::autocast;
  return result;
}

}  // namespace

const Transform kWithoutGradients{"without_gradients", without_gradients};
const Transform kFirstAlone{"first_alone", frozen<GradMode::first>};
const Transform kSecondAlone{"second_alone", frozen<GradMode::second, 3>};
const Transform kThirdAlone{"third_alone", frozen<GradMode::third, 3>};
const Transform kFirstFrozen{"first_frozen", frozen<GradMode::all_but_first>};
const Transform kSecondFrozen{"second_frozen", frozen<GradMode::all_but_second, 3>};
const Transform kThirdFrozen{"third_frozen", frozen<GradMode::all_but_third, 3>};
const Transform kEvaluatedBetween{"evaluated_between", among_calls<History::evaluation>};
const Transform kForwardsBetween{"forwards_between", among_calls<History::two_forwards>};
const Transform kSummedLosses{"summed_losses", among_calls<History::summed_losses>};
const Transform kBackwardTwice{"backward_twice", among_calls<History::backward_twice>};
const Transform kBackwardByRows{"backward_by_rows", by_rows};
const Transform kUpdated{"updated", after_an_update};
const Transform kUnderAutocast{"under_autocast", under_autocast};

}  // namespace lossgate::properties
