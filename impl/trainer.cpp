// SPDX-License-Identifier: Apache-2.0
#include "impl/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "impl/parts.h"
#include "impl/untidy_refusal.h"

namespace lossgate::impl {
namespace {

/// The arithmetic of accumulation and all-reduce: every operation is rounded to the format.
/// Rounding a double sum, product or quotient of two f32 numbers gives the f32 operation's result.
struct Accumulation {
  bool narrow;
  int world;
  const Trainer& trainer;

  double rounded(double x) const { return narrow ? static_cast<double>(static_cast<float>(x)) : x; }
  double sum(double a, double b) const { return rounded(a + b); }

  /// What one rank hands to the all-reduce.
  double of_rank(double x, int micro_batches) const {
    return trainer.mean_over_micro_batches ? rounded(x / micro_batches) : x;
  }

  /// What becomes of the sum over ranks.
  double reduced(double x) const {
    if (trainer.all_reduce == Trainer::AllReduce::mean) x = rounded(x / world);
    for (int i = 0; i < trainer.world_power; ++i) x = rounded(x * world);
    for (int i = 0; i > trainer.world_power; --i) x = rounded(x / world);
    return x;
  }
};

/// One output of the step while it is put together.
class Assembly {
 public:
  Assembly(const OutputInfo& info, const Accumulation& accumulation)
      : info_(info),
        accumulation_(accumulation),
        tensor_(Tensor::zeros(info.dtype, info.extents)),
        rows_(has_rows(info.axes)) {
    if (!rows_) {
      total_.assign(static_cast<std::size_t>(tensor_.size()), 0.0);
      rank_ = total_;
    }
  }

  void add(const Tensor& part, const std::vector<std::int64_t>& rows, int micro_batches) {
    const std::int64_t expected =
        rows_ ? static_cast<std::int64_t>(rows.size()) * width() : tensor_.size();
    if (part.size() != expected) {
      throw std::logic_error("output '" + info_.name + "' of a micro-batch has the wrong size");
    }
    if (rows_) {
      scatter(part, rows, micro_batches);
    } else {
      for (std::int64_t i = 0; i < part.size(); ++i) {
        double& entry = rank_[static_cast<std::size_t>(i)];
        entry = accumulation_.sum(entry, accumulation_.rounded(part.at(i)));
      }
    }
  }

  void end_rank(int micro_batches) {
    for (std::size_t i = 0; i < rank_.size(); ++i) {
      const double own = scaled() ? accumulation_.of_rank(rank_[i], micro_batches) : rank_[i];
      total_[i] = accumulation_.sum(total_[i], own);
      rank_[i] = 0.0;
    }
  }

  Tensor finish() {
    for (std::size_t i = 0; i < total_.size(); ++i) {
      tensor_.set(static_cast<std::int64_t>(i),
                  scaled() ? accumulation_.reduced(total_[i]) : total_[i]);
    }
    return std::move(tensor_);
  }

 private:
  bool scaled() const { return info_.kind != OutputKind::value; }

  std::int64_t width() const {
    return tensor_.extents.front() > 0 ? tensor_.size() / tensor_.extents.front() : 0;
  }

  /// Every row has one owner, so the other ranks add exact zeros.
  void scatter(const Tensor& part, const std::vector<std::int64_t>& rows, int micro_batches) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (std::int64_t i = 0; i < width(); ++i) {
        const std::int64_t from = static_cast<std::int64_t>(row) * width() + i;
        const std::int64_t to = rows[row] * width() + i;
        if (!scaled() && part.dtype == info_.dtype) {
          std::memcpy(tensor_.element(to), part.element(from), size_of(info_.dtype));
          continue;
        }
        double x = accumulation_.rounded(part.at(from));
        if (scaled()) x = accumulation_.reduced(accumulation_.of_rank(x, micro_batches));
        tensor_.set(to, x);
      }
    }
  }

  const OutputInfo& info_;
  const Accumulation& accumulation_;
  Tensor tensor_;
  bool rows_;
  std::vector<double> rank_, total_;
};

const Tensor& output_of(const LossResult& result, const std::string& name) {
  const Tensor* tensor = result.find(name);
  if (!tensor) throw std::logic_error("a micro-batch has no output '" + name + "'");
  return *tensor;
}

void add_counts(LossResult& result, const LossResult& part) {
  for (const auto& counted : part.counts) {
    const auto at = std::ranges::find_if(
        result.counts, [&](const auto& total) { return total.first == counted.first; });
    if (at == result.counts.end()) {
      result.counts.push_back(counted);
    } else {
      at->second += counted.second;
    }
  }
}

void add_new(const std::vector<std::string>& names, std::vector<std::string>& known) {
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) == known.end()) known.push_back(name);
  }
}

Totals totals_of(const Positions& positions) {
  return {positions.tokens, positions.sequences,
          static_cast<std::int64_t>(positions.row_tokens.size())};
}

/// Whether the case and its result are all in the one format that every output then has.
bool in_one_format(const LossSignature& signature, const Case& c, const LossResult& result) {
  const Dtype format = float_dtype(signature, c);
  const auto has_it = [&](const Tensor& tensor) { return tensor.dtype == format; };
  return (format == Dtype::f64 || format == Dtype::f32) &&
         std::ranges::all_of(result.outputs, has_it, &Output::tensor) &&
         std::ranges::all_of(signature.outputs, &std::vector<Dtype>::empty, &OutputField::dtypes) &&
         std::ranges::all_of(signature.fields, [&](const Field& field) {
           return field.role != Role::differentiable || has_it(c.batch.at(field.name));
         });
}

/// Everything in one call on one rank: the step's outputs are the result.
LossResult train_whole(const LossSignature& signature, const Case& c, const Step& step) {
  const Positions positions = find_positions(signature, c);
  const Totals totals = totals_of(positions);
  WholePart part(c);
  MicroBatch micro_batch{.signature = signature,
                         .part = *part,
                         .positions = positions,
                         .totals = totals,
                         .rank_totals = totals};
  LossResult result = step(micro_batch);
  note_mutations(signature, c, *part, nullptr, result.mutated);
  if (in_one_format(signature, c, result)) return result;
  for (const OutputInfo& info : outputs_of(signature, c)) {
    for (Output& output : result.outputs) {
      if (output.name != info.name || output.tensor.dtype == info.dtype) continue;
      Tensor rounded = Tensor::zeros(info.dtype, output.tensor.extents);
      for (std::int64_t i = 0; i < rounded.size(); ++i) rounded.set(i, output.tensor.at(i));
      output.tensor = std::move(rounded);
    }
  }
  return result;
}

/// Sequences that no part names are dealt by nobody; check_split refuses such a case.
LossResult train_split(const LossSignature& signature, const Case& c, const Step& step,
                       const Trainer& trainer) {
  const bool narrow = float_dtype(signature, c) != Dtype::f64;
  const Accumulation accumulation{narrow, c.split.world, trainer};
  const std::vector<OutputInfo> infos = outputs_of(signature, c);
  std::vector<Assembly> assemblies;
  for (const OutputInfo& info : infos) assemblies.emplace_back(info, accumulation);

  LossResult result;
  const Totals totals = totals_of(find_positions(signature, c));
  for (int rank = 0; rank < c.split.world; ++rank) {
    std::vector<const Split::Part*> own;
    std::vector<Case> parts;
    std::vector<Positions> positions;
    Totals rank_totals;
    for (const Split::Part& part : c.split.parts) {
      if (part.rank != rank) continue;
      own.push_back(&part);
      parts.push_back(take_part(signature, c, part.sequences));
      positions.push_back(find_positions(signature, parts.back()));
      rank_totals.tokens += positions.back().tokens;
      rank_totals.sequences += positions.back().sequences;
      rank_totals.rows += static_cast<std::int64_t>(positions.back().row_tokens.size());
    }
    const int count = static_cast<int>(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::vector<std::int64_t>& rows = own[i]->sequences;
      MicroBatch micro_batch{signature, parts[i],      positions[i],        totals, rank_totals,
                             rank,      c.split.world, static_cast<int>(i), count};
      try {
        const LossResult part = step(micro_batch);
        note_mutations(signature, c, parts[i], &rows, result.mutated);
        add_counts(result, part);
        add_new(part.mutated, result.mutated);
        add_new(part.changed_settings, result.changed_settings);
        for (std::size_t o = 0; o < infos.size(); ++o) {
          assemblies[o].add(output_of(part, infos[o].name), rows, count);
        }
      } catch (Refusal& refusal) {
        if (refusal.sequence >= 0) {
          refusal.sequence = rows.at(static_cast<std::size_t>(refusal.sequence));
        }
        throw;
      }
    }
    if (count == 0) continue;
    for (Assembly& assembly : assemblies) assembly.end_rank(count);
  }
  for (std::size_t o = 0; o < infos.size(); ++o) {
    result.outputs.push_back({infos[o].name, assemblies[o].finish()});
  }
  return result;
}

}  // namespace

Totals count_totals(const LossSignature& signature, const Case& c) {
  return totals_of(find_positions(signature, c));
}

LossResult train(const LossSignature& signature, const Case& c, const Step& step,
                 const Trainer& trainer) {
  try {
    if (trainer.check) trainer.check(signature, c);
    Case prepared;
    const Case* whole = &c;
    if (trainer.prepare) {
      prepared = c;
      trainer.prepare(signature, prepared);
      whole = &prepared;
    }
    return whole->split.whole() ? train_whole(signature, *whole, step)
                                : train_split(signature, *whole, step, trainer);
  } catch (const UntidyRefusal& refusal) {
    LossResult refused;
    refused.refusal = refusal;
    refused.changed_settings = refusal.changed_settings;
    return refused;
  } catch (const Refusal& refusal) {
    LossResult refused;
    refused.refusal = refusal;
    return refused;
  }
}

}  // namespace lossgate::impl
