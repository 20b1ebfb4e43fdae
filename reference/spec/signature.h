// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reference/spec/axis.h"
#include "reference/spec/dtype.h"
#include "reference/spec/reduction.h"

namespace lossgate {

struct Case;

/// What a field is to the loss. Only differentiable fields have gradients.
enum class Role { differentiable, constant, label, mask, weight, group };

std::string_view name(Role role);

/// What a field measures; it decides which values a generator finds interesting.
enum class Quantity {
  log_prob,      ///< nats, <= 0
  advantage,     ///< dimensionless, either sign
  logit,         ///< nats up to a constant
  hidden_state,  ///< dimensionless
  weight,        ///< dimensionless
  reward,        ///< a judge's number, whose zero and scale mean nothing
  value,         ///< a critic's prediction or target, in units of the reward
  upstream,      ///< a gradient coming from above
  label,         ///< index on the vocab axis, or an ignore marker
  mask,          ///< 1 = counts in the loss, 0 = does not; of a constant: 1 = yes, 0 = no
  group,         ///< index of a group of sequences
  payload,       ///< bytes of a message
};

std::string_view name(Quantity quantity);

/// What an infinity at a valid position means (rule C3): the formula's limit is expected, it must
/// show in the result, or it must be refused.
enum class Infinity { legal, surfaces, refused };

/// What a caller leaves at masked positions (rule C4): the sentinel contract of a field. Ordinary
/// numbers are those of a healthy run, see reference/spec/masked.h; -inf comes besides those, as
/// whoever pads with it leaves what a model gave elsewhere.
enum class Masked { anything, minus_infinity, finite, ordinary, zero };

struct Field {
  std::string name;
  Role role = Role::constant;
  Quantity quantity = Quantity::value;
  std::vector<Axis> axes;
  Infinity infinity = Infinity::surfaces;
  /// Where this option has this value it is legal nevertheless (infinity_of in
  /// reference/spec/case.h).
  std::optional<std::pair<std::string, double>> infinite_where = {};
  /// Empty: any floating-point dtype, the same for all such fields of a case.
  std::vector<Dtype> dtypes = {};
  bool wide = false;  ///< where that has 16 bits: this field stays in f32
  std::string doc = {};
  Masked masked = Masked::anything;
  /// Every position of a sequence has the same value: the caller has one number for each sequence.
  bool one_per_sequence = false;
  /// Numbers of groups as large as each other, two members at least, side by side, from 0 on: the
  /// caller reshapes by their size.
  bool even_groups = false;
  /// No token is twice in the list of a position that counts: the caller took the k largest.
  bool distinct = false;
  /// A caller may have none of it, which is as if every entry were 0, or a constant that is what
  /// stands there in `stand_in`: a field, what a loss makes of its fields, or a number.
  bool optional = false;
  std::string stand_in = {};
  bool absent = false;  ///< where optional: this caller has none
  /// Callers keep numbers that count as small, of either sign (reference/spec/largest.h).
  double largest = std::numeric_limits<double>::infinity();
  /// Of log-probs: what each probability leaves of 1 counts, too, and at 0 it leaves nothing.
  bool leaves_rest = false;
};

/// none is a value of its own: "no clamp", "no dual clip".
struct None {
  bool operator==(const None&) const = default;
};
using OptionValue = std::variant<None, double, std::string>;

struct Option {
  enum class Kind { real, integer, flag, choice };
  std::string name;
  Kind kind = Kind::real;
  OptionValue standard;          ///< the default
  double low = 0.0, high = 0.0;  ///< closed range of numbers
  bool nullable = false;         ///< whether none is accepted
  std::vector<std::string> choices = {};
  std::string doc = {};
  /// Another option, whose value it has in every case: one parameter stands for both.
  std::string follows = {};
  /// Numbers that code in the field has there, the default aside.
  std::vector<double> usual = {};
};

std::string_view name(Option::Kind kind);

/// A direction along which a failing case can be made tamer: `field` moves towards `towards`
/// (another field, or 0 where empty). The distance is what a finding reports as its reach (E5).
struct ReachAxis {
  std::string name;
  std::string field;
  std::string towards;
};

/// An output that is neither the scalar loss nor a gradient.
struct OutputField {
  std::string name;
  std::vector<Axis> axes;
  std::vector<Dtype> dtypes = {};  ///< empty: the floating-point dtype of the case
  std::string doc = {};
  /// The closed range that every entry has by mathematics, under the options of the case.
  std::optional<std::pair<double, double>> (*range)(const Case&) = nullptr;
};

/// What an empty batch, row or micro-batch gives (C6).
enum class Empty { zero, error, nan };

/// Whether means over sequences count those without a valid position.
enum class EmptyRows { skipped, counted };

/// Everything that the rest of the program knows about a loss without naming it.
struct LossSignature {
  std::string id;
  std::string title;
  std::string formula;
  std::string source;                   ///< papers and public code, with the place
  std::vector<std::string> forms = {};  ///< algebraically equal evaluations; the first is stable
  std::vector<Option> options = {};
  std::vector<Field> fields = {};
  std::vector<OutputField> outputs = {};
  std::vector<Reduction> reductions = {};
  std::vector<ReachAxis> reach = {};
  std::string mask = {};          ///< the field of role mask, if any
  std::string ignore_label = {};  ///< the label field whose value -100 masks its position, if any
  std::string advantage = {};     ///< the field whose zeros silence the main term, if any
  std::string coefficient = {};   ///< the option that scales all other terms, if any
  std::string scale = {};  ///< the option that multiplies the log-ratio of a logistic loss, if any
  /// Pairs (field, twin): equal values mean "on-policy".
  std::vector<std::pair<std::string, std::string>> on_policy = {};
  bool rows_permutable = true;  ///< sequences may change places
  bool tokens_paddable = true;  ///< masked columns and rows may be added
  bool splittable = true;       ///< sequences may be dealt to micro-batches and ranks
  bool shardable = true;        ///< to several ranks, where splittable
  bool even_parts = false;      ///< where split: those of a rank as large as each other
  bool even_ranks = false;      ///< where on several: they hold equally much (even_parts.h)
  bool prefix_mask = false;     ///< in each sequence the positions that count come first
  bool returns_terms = false;   ///< callers add up what it returns, one number for each position
  bool autocast = false;        ///< callers may run its forward inside torch.autocast
  Empty empty = Empty::zero;
  /// Counted: the mean over all rows is another number than the formula's where one of them is
  /// empty, so such batches are not for the means over sequences.
  EmptyRows empty_rows = EmptyRows::skipped;
  std::vector<std::pair<Axis, std::int64_t>> pinned = {};   ///< axes that have one extent
  std::vector<std::pair<Axis, std::int64_t>> longest = {};  ///< extents that callers do not exceed

  const Field* find_field(std::string_view field) const;
  const Option* find_option(std::string_view option) const;
  bool has_axis(Axis axis) const;  ///< whether a field has it
  bool is_logistic() const;        ///< a loss of a scaled log-ratio, or of odds
  std::optional<std::int64_t> pinned_extent(Axis axis) const;
  std::optional<std::int64_t> longest_extent(Axis axis) const;
  std::int64_t least_extent(Axis axis) const;  ///< of a batch that is not empty
};

}  // namespace lossgate
