// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "reference/products.h"
#include "reference/scalar.h"
#include "reference/spec/case.h"
#include "reference/spec/result.h"
#include "reference/sums.h"

namespace lossgate::reference {

/// Into how many partial results a step is split, and how many of them are averaged.
struct Accumulation {
  explicit Accumulation(const Split& split);

  std::int64_t parts = 1;     ///< micro-batches whose results are accumulated
  std::int64_t averaged = 1;  ///< the most results in a mean over ranks of means over micro-batches
};

/// What a batch may have besides, all of it masked: a sequence, and tokens of each.
inline constexpr std::int64_t kPaddingSequences = 1, kPaddingTokens = 3;

/// A case made ready for a formula: which positions count, and how many there are. Counts are
/// integers over the whole batch, taken before any split (rule A5).
struct Problem {
  Problem(const LossSignature& signature_in, const Case& case_in);

  /// How many times fewer positions than there are, where a batch is padded, a mean of the case's
  /// reduction divides by, in the sequence where that is most; 1 where it is no mean of positions.
  double positions_per_counted() const;

  /// The largest number that a term of the loss is divided by.
  double largest_divisor() const;

  const LossSignature& signature;
  const Case& c;
  std::vector<OutputInfo> outputs;
  std::vector<bool> valid;                 ///< [sequences, tokens]
  std::vector<std::int64_t> row_tokens;    ///< valid positions of each sequence
  std::int64_t sequences = 0, tokens = 0;  ///< extents
  std::int64_t token_count = 0;            ///< valid positions
  std::int64_t sequence_count = 0;         ///< sequences with a valid position
  Accumulation accumulation;
};

/// Receives every entry of every output exactly once, in any order.
template <class S>
struct Sink {
  virtual ~Sink() = default;
  virtual void entry(std::size_t output, std::int64_t index, const S& value) = 0;
};

/// Reads one field at row-major coordinates.
template <class S>
class FieldReader {
 public:
  FieldReader(const Tensor& tensor, std::int64_t first_key)
      : tensor_(&tensor), first_key_(first_key) {}

  template <class... Index>
  S operator()(Index... index) const {
    const std::int64_t at = offset(index...);
    return Entry<S>::stored(tensor_->at(at), first_key_ < 0 ? first_key_ : first_key_ + at);
  }

  template <class... Index>
  std::int64_t integer(Index... index) const {
    return tensor_->integer_at(offset(index...));
  }

 private:
  template <class... Index>
  std::int64_t offset(Index... index) const {
    std::int64_t at = 0;
    std::size_t axis = 0;
    ((at = at * tensor_->extents[axis++] + index), ...);
    return at;
  }

  const Tensor* tensor_;
  std::int64_t first_key_;
};

template <class S>
class Inputs {
 public:
  explicit Inputs(const Problem& problem, std::string_view form) : problem_(problem), form_(form) {}

  const Problem& problem() const { return problem_; }
  const LossSpec& spec() const { return problem_.c.spec; }
  std::int64_t extent(Axis axis) const { return problem_.c.shape[axis]; }
  std::int64_t sequences() const { return problem_.sequences; }
  std::int64_t tokens() const { return problem_.tokens; }
  bool valid(std::int64_t sequence, std::int64_t token) const {
    return problem_.valid[static_cast<std::size_t>(sequence * problem_.tokens + token)];
  }
  std::int64_t row_tokens(std::int64_t sequence) const {
    return problem_.row_tokens[static_cast<std::size_t>(sequence)];
  }

  FieldReader<S> field(std::string_view name) const {
    std::int64_t key = 0;
    for (const Field& field : problem_.signature.fields) {
      const Tensor& tensor = problem_.c.batch.at(field.name);
      if (field.name == name) {
        const bool other = field.absent && problem_.signature.find_field(field.stand_in);
        return {other ? problem_.c.batch.at(field.stand_in) : tensor,
                field.role == Role::differentiable ? key : kNoKey};
      }
      if (field.role == Role::differentiable) key += tensor.size();
    }
    return {problem_.c.batch.at(name), kNoKey};
  }

  /// Whether callers have none of the field.
  bool absent(std::string_view name) const {
    const Field* field = problem_.signature.find_field(name);
    return field && field->absent;
  }

  /// A number option as the arithmetic sees it.
  S option(std::string_view name) const { return constant<S>(spec().number(name)); }

  /// The gradient of the objective with respect to the loss: a number of the loss's dtype, which a
  /// narrower compute format rounds.
  S upstream() const { return constant<S>(static_cast<Real>(problem_.c.upstream)); }

  /// An entry of a gradient, as the backward leaves it.
  S gradient(const S& entry) const {
    const S above = upstream();
    return store(Stage::gradient, begun_with(above, made_for_one(entry, above)));
  }

  /// The factor of the terms of one sequence in the loss (see Reduction).
  S token_weight(std::int64_t sequence) const { return token_weight(spec().reduction, sequence); }

  S token_weight(Reduction reduction, std::int64_t sequence) const {
    switch (reduction) {
      case Reduction::token_mean:
        return one_over(problem_.token_count);
      case Reduction::sequence_mean:
        return one_over(problem_.sequence_count * row_tokens(sequence));
      case Reduction::seq_mean_token_sum_norm:
        return one_over(problem_.sequence_count) / option("max_length");
      case Reduction::sum_over_items:
        return constant<S>(1.0L) / option("num_items");
      default:
        return constant<S>(1.0L);
    }
  }

  /// The factor of a term that stands for a whole sequence: no count of tokens is in it.
  S sequence_weight() const {
    const bool averages = spec().reduction == Reduction::sequence_mean;
    return averages ? one_over(problem_.sequence_count) : constant<S>(1.0L);
  }

  /// Whether the arithmetic declares the form `name`; an undeclared form answers to none.
  bool form(std::string_view name) const { return declares(form_, name); }
  bool undeclared() const { return form_.empty(); }

  /// A sum over the valid positions of one sequence, or of the whole batch.
  Sum<S> row_sum() const { return Sum<S>(problem_.tokens); }
  Sum<S> batch_sum() const { return Sum<S>(problem_.sequences * problem_.tokens); }

 private:
  static constexpr std::int64_t kNoKey = -1;

  static S one_over(std::int64_t count) {
    return constant<S>(1.0L) / constant<S>(static_cast<Real>(count));
  }

  const Problem& problem_;
  std::string_view form_;
};

/// Where the entries go: to a sink, or to two, which see the step divided in different ways.
template <class S>
class Outputs {
 public:
  Outputs(const Problem& problem, Sink<S>& sink)
      : problem_(problem), destinations_{{problem.accumulation, &sink}} {}
  Outputs(const Problem& problem, Sink<S>& sink, const Accumulation& other, Sink<S>& beside)
      : problem_(problem), destinations_{{problem.accumulation, &sink}, {other, &beside}} {}
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  /// Writes one output. Where it goes stands in the outputs, which it does not
  /// outlive.
  class Writer {
   public:
    /// Whether anyone asks for this output: what nobody does need not be computed.
    bool wanted() const { return out_ != nullptr; }

    template <class... Index>
    void operator()(const S& value, Index... index) const {
      accumulated([&](std::int64_t) { return value; }, index...);
    }

    /// An entry that is made of the results of so many parts. Values go back to their places, and
    /// nobody averages them.
    template <class OfParts, class... Index>
    void accumulated(const OfParts& of_parts, Index... index) const {
      if (!out_) return;
      const OutputInfo& output = out_->problem_.outputs[output_];
      std::int64_t at = 0;
      std::size_t axis = 0;
      ((at = at * output.extents[axis++] + index), ...);
      for (const Destination& to : out_->destinations_) {
        const S entry = of_parts(to.accumulation.parts);
        const bool is_value = output.kind == OutputKind::value;
        to.sink->entry(output_, at,
                       is_value ? entry : averaged_over_parts(entry, to.accumulation.averaged));
      }
    }

   private:
    friend class Outputs;
    Writer() = default;
    Writer(const Outputs* out, std::size_t output) : out_(out), output_(output) {}

    const Outputs* out_ = nullptr;
    std::size_t output_ = 0;
  };

  /// What is written to an output that the signature does not have is dropped: an implementation
  /// may return less than the loss has.
  Writer writer(std::string_view output) const {
    for (std::size_t i = 0; i < problem_.outputs.size(); ++i) {
      if (problem_.outputs[i].name == output) return {this, i};
    }
    return {};
  }

  Writer gradient(std::string_view field) const { return writer("gradient." + std::string(field)); }

  /// The loss, accumulated over the parts of the split.
  void loss(const Sum<S>& terms) const {
    writer("loss").accumulated([&](std::int64_t parts) {
      const double times = problem_.positions_per_counted();
      const S mean = made_of_mean_of_all(terms.accumulated(parts), times);
      return store(Stage::loss, divided_last(mean, terms, problem_.largest_divisor()));
    });
  }

  /// The same of terms that have two parts each, which may be added up apart, and the sum of the
  /// second ones multiplied by their factor last.
  void loss(const Sum<S>& terms, const Sum<S>& first, const Sum<S>& second, const S& factor) const {
    writer("loss").accumulated([&](std::int64_t parts) {
      const double times = problem_.positions_per_counted(), divisor = problem_.largest_divisor();
      const auto divided = [&](const S& sum, const Sum<S>& of) {
        return divided_last(made_of_mean_of_all(sum, times), of, divisor);
      };
      const S apart = divided(first.accumulated(parts), first) +
                      divided(second.accumulated(parts, factor), second);
      return store(Stage::loss, wider(divided(terms.accumulated(parts), terms), apart));
    });
  }

 private:
  struct Destination {
    Accumulation accumulation;
    Sink<S>* sink;
  };

  const Problem& problem_;
  std::vector<Destination> destinations_;
};

}  // namespace lossgate::reference
