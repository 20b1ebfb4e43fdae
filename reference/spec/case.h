// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/spec/signature.h"
#include "reference/spec/tensor.h"

namespace lossgate {

/// The marker that trainers leave in labels where a position does not count.
inline constexpr std::int64_t kIgnoreLabel = -100;

/// Which loss, with every option spelled out (defaults included), and how it is reduced.
struct LossSpec {
  std::string loss;
  Reduction reduction = Reduction::sum;
  std::vector<std::pair<std::string, OptionValue>> options;  ///< in signature order

  const OptionValue* find(std::string_view option) const;
  bool is_none(std::string_view option) const;
  double number(std::string_view option) const;              ///< throws std::out_of_range
  const std::string& choice(std::string_view option) const;  ///< throws std::out_of_range
  void set(std::string_view option, OptionValue value);      ///< replaces or appends

  bool operator==(const LossSpec&) const = default;
};

/// All options of the signature at their defaults, with its first reduction.
LossSpec standard_spec(const LossSignature& signature);

/// Gives every option that follows another the value of that one.
void follow(const LossSignature& signature, LossSpec& spec);

/// The extent of every axis that the case has; -1 for the others.
class Shape {
 public:
  std::int64_t operator[](Axis axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](Axis axis) { return extents_[static_cast<std::size_t>(axis)]; }
  Extents of(const std::vector<Axis>& axes) const;
  /// Of each sequence: its tokens, or itself where there are none.
  std::int64_t positions() const {
    return extents_[static_cast<std::size_t>(Axis::tokens)] < 0 ? 1 : (*this)[Axis::tokens];
  }
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, std::size(kAllAxes)> extents_{-1, -1, -1, -1, -1, -1, -1};
};

/// Named tensors in signature order, exactly as a trainer would hand them over, padding included.
struct Batch {
  std::vector<std::pair<std::string, Tensor>> fields;

  const Tensor* find(std::string_view field) const;
  Tensor* find(std::string_view field);
  const Tensor& at(std::string_view field) const;  ///< throws std::out_of_range
  Tensor& at(std::string_view field);

  bool operator==(const Batch&) const = default;
};

/// How sequences are dealt to micro-batches and data-parallel ranks. An empty list of parts is the
/// whole batch in one call. Parts may be empty, and ranks without a part exist.
struct Split {
  struct Part {
    int rank = 0;
    std::vector<std::int64_t> sequences;
    bool operator==(const Part&) const = default;
  };
  int world = 1;
  std::vector<Part> parts;

  bool whole() const { return parts.empty(); }
  bool operator==(const Split&) const = default;
};

/// How tensors lie in memory when an implementation gets them; values are the same in all.
enum class Layout {
  contiguous,
  offset,       ///< one element into a larger buffer
  padded_rows,  ///< last-axis stride 1, row stride larger than the row
  transposed,   ///< the first two axes are swapped in memory; of one axis every other element
  sliced,       ///< as a shift by one token leaves it: logits[:, :-1], labels[:, 1:]
  mixed,        ///< no two neighbouring fields lie alike: contiguous, padded and transposed in turn
};

inline constexpr Layout kAllLayouts[] = {Layout::contiguous, Layout::offset, Layout::padded_rows,
                                         Layout::transposed, Layout::sliced, Layout::mixed};
std::string_view name(Layout layout);

/// Of which fields a caller wants gradients; what it gets is the same for all.
enum class GradMode {
  all,             ///< of every differentiable field
  none,            ///< of no field, as an evaluation: torch.no_grad
  first,           ///< of the first differentiable field: the others are frozen
  second,          ///< of the second alone: what comes before the loss is frozen, and biases are
  third,           ///< of the third alone, as where nothing but biases is trained
  all_but_first,   ///< of all others: what comes before the loss is frozen
  all_but_second,  ///< as where the biases alone of a layer are trained
  all_but_third,   ///< as a layer is trained of which the biases alone are frozen
};

/// What else a caller does around the forward and the backward of a step, on the same function.
enum class History {
  alone,           ///< nothing: the backward follows its forward
  evaluation,      ///< between them it evaluates other data, under torch.no_grad
  two_forwards,    ///< between them it runs two forwards of other data, whose backwards are to come
  summed_losses,   ///< it adds the loss of other data to this one, for one backward of the sum
  backward_twice,  ///< it keeps the graph and runs the backward again, whose gradients count
  backward_by_rows,  ///< of terms: a backward for every second sequence's and one for the others'
  updated,   ///< before them it steps with other parameters, and then changes these in place
  autocast,  ///< its forward runs inside torch.autocast, its backward behind that
};

std::string_view name(History history);

/// Where a case came from; never part of its identity.
struct Provenance {
  std::string title;
  std::string found_by;
  std::string story;
  std::string expect;  ///< regressions: implementation:property pairs that must be violated
};

/// The only thing that is generated, shrunk, stored and replayed.
struct Case {
  LossSpec spec;
  Shape shape;
  Batch batch;
  Split split;
  Layout layout = Layout::contiguous;
  double upstream = 1.0;  ///< gradient of the training objective with respect to this loss
  // Of a property's own question: no file says them.
  GradMode grad_mode = GradMode::all;
  History history = History::alone;
  Provenance provenance;
};

/// The floating-point dtype shared by the fields of the case, f32 where it has none. Of a case with
/// wide fields it is that of the others.
Dtype float_dtype(const LossSignature& signature, const Case& c);

/// The dtype of a field that has none of its own, where others of the case share this one.
Dtype dtype_beside(const Field& field, Dtype shared);

/// How the array with this number lies, of those that an implementation gets: as all of them do,
/// or, where the layout is mixed, as it is that number's turn, which begins elsewhere in cases of
/// other lengths.
Layout layout_of(const Case& c, std::int64_t number);
Layout layout_of(const Case& c, std::string_view field);

/// Whether the caller asks for the gradient of a differentiable field.
bool asks_gradient(const LossSignature& signature, GradMode mode, std::string_view field);

/// Which of the [sequences, tokens] positions count in the loss: mask is not 0 and the label is not
/// kIgnoreLabel. All of them where the signature has neither; where the case has no tokens, each
/// sequence is one. The fields must have their shapes.
std::vector<bool> valid_positions(const LossSignature& signature, const Case& c);

/// Whether callers may run its forward inside torch.autocast: that says nothing of other formats
/// than the one that it narrows.
bool may_autocast(const LossSignature& signature, const Case& c);

/// Whether some sequences, but not all of them, may be without a valid position: not where the mean
/// that the case asks for counts such rows.
bool allows_empty_rows(const LossSignature& signature, const LossSpec& spec);

/// What an infinity at a valid position of the field means under these options.
Infinity infinity_of(const Field& field, const LossSpec& spec);

/// Whether a field has one entry (or one row) per position, so that a mask can silence it.
bool is_positional(const Field& field);

}  // namespace lossgate
