// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>

#include "impl/external/scale.h"
#include "impl/external/session.h"
#include "impl/trainer.h"

namespace lossgate::impl {
namespace {

/// What so many tokens of all are worth, or one of `count` that are averaged.
double share_of(Combination combination, std::int64_t tokens, std::int64_t all, int count) {
  if (combination == Combination::mean) return 1.0 / count;
  if (combination != Combination::token_weighted) return 1.0;
  return all > 0 ? static_cast<double>(tokens) / static_cast<double>(all) : 0.0;
}

/// The share of the whole step by which a trainer scales a micro-batch's loss before it calls
/// backward: a gradient that is stored in 16 bits is not divided after that and stored again. So is
/// undone what the function multiplies the formula by.
double share_of(const Subject& subject, const MicroBatch& batch) {
  const std::int64_t own = batch.positions.tokens, rank = batch.rank_totals.tokens;
  return share_of(subject.micro_batches, own, rank, batch.count) *
         share_of(subject.ranks, rank, batch.totals.tokens, batch.world) /
         scale_of(subject, batch.part.spec);
}

/// Whether some share is another number than 1.
bool has_shares(const Subject& subject, const Case& c) {
  const auto sums = [](Combination combination) {
    return combination == Combination::sum || combination == Combination::none;
  };
  return !c.split.whole() && !(sums(subject.micro_batches) && sums(subject.ranks));
}

/// Names the options that have one value for the subject, and another one in the case.
std::optional<std::string> fixed_otherwise(const Subject& subject, const Case& c) {
  std::string names;
  int count = 0;
  for (const auto& [name, value] : subject.options) {
    const OptionValue* asked = c.spec.find(name);
    if (is_any_number(value) && asked && !std::holds_alternative<None>(*asked)) continue;
    if (!asked || *asked == value) continue;
    names += (count++ > 0 ? ", " : "") + name;
  }
  if (count == 0) return std::nullopt;
  return names + (count > 1 ? " are fixed" : " is fixed");
}

std::optional<std::string> unsupported(const Subject& subject, const LossSignature& loss,
                                       const Case& c) {
  if (!subject.reductions.empty() &&
      std::ranges::find(subject.reductions, c.spec.reduction) == subject.reductions.end()) {
    return "the reduction is another";
  }
  if (auto fixed = fixed_otherwise(subject, c)) return fixed;
  for (const auto& [name, other] : subject.tied) {
    const OptionValue *own = c.spec.find(name), *followed = c.spec.find(other);
    if (own && followed && *own != *followed) return name + " follows " + other;
  }
  const Dtype dtype = float_dtype(loss, c);
  if (std::ranges::find(subject.dtypes, dtype) == subject.dtypes.end()) {
    return std::string(name(dtype)) + " is not asked";
  }
  for (const Field& field : loss.fields) {
    const Dtype given = c.batch.at(field.name).dtype;
    if (!field.dtypes.empty() || given == dtype_beside(field, dtype)) continue;
    return field.name + " of " + std::string(name(given)) + " is not asked";
  }
  const auto stored = stage_format(subject.arithmetic, Stage::loss, dtype);
  if (stored && (has_shares(subject, c) || round_to(*stored, c.upstream) != c.upstream)) {
    return "the upstream gradient is no number of the loss's format";
  }
  if (const auto reason = beyond_scale(subject, loss, c)) return reason;
  if (!c.split.whole() && c.split.world > 1 && subject.ranks == Combination::none) {
    return "several ranks";
  }
  return std::nullopt;
}

/// Whether the argument is one of those that the function has, and comes to it as it is: a number
/// that Python makes a bool or an int of is another one there, a label that becomes a mask is gone.
bool hears(const Subject& subject, const Greeting& greeting, const LossSignature& loss,
           const Case& c, std::string_view argument) {
  if (argument == "reduction") return greeting.reduction;
  const auto is_source = [&](const std::string& source) {
    return std::ranges::any_of(greeting.arguments, [&](const auto& each) {
      return each.second == source || each.second == source + " as shifted";
    });
  };
  const Option* option = loss.find_option(argument);
  if (!option) return !loss.find_field(argument) || is_source("field:" + std::string(argument));
  const double* number = std::get_if<double>(c.spec.find(argument));
  const bool whole = !number || std::trunc(*number) == *number;
  const bool made_whole = option->kind != Option::Kind::real && !subject.entry.starts_with("so:");
  return is_source("option:" + std::string(argument)) && (whole || !made_whole);
}

/// Whether a gradient is a sum over micro-batches, as that of a weight is.
bool sums_gradients(const LossSignature& loss) {
  return std::ranges::any_of(loss.fields, [](const Field& field) {
    return field.role == Role::differentiable && !has_rows(field.axes);
  });
}

Arithmetic arithmetic_of(const Subject& subject, const LossSignature& loss, Dtype stored) {
  Arithmetic arithmetic = arithmetic_of(subject.arithmetic, stored);
  // Whatever it was computed in, each micro-batch's part comes in its loss's format or in that of
  // its field, and the trainer adds in f32, in f64 where the fields are f64.
  Store& part = arithmetic.stage(Stage::accumulate);
  const auto at_least = [&](Dtype format) {
    part.roundoff = std::max(part.roundoff, unit_roundoff(format));
    part.eta = std::max(part.eta, min_subnormal(format));
  };
  at_least(stored == Dtype::f64 ? Dtype::f64 : Dtype::f32);
  if (const auto own = stage_format(subject.arithmetic, Stage::loss, stored)) at_least(*own);
  if (sums_gradients(loss)) at_least(stored);
  arithmetic.ties_open = true;  // min and max hand on half at a tie, clamp all
  arithmetic.divides_last = has_wide_exponents(arithmetic.compute);
  return arithmetic;
}

/// The terms that it returns beside its loss, whose scale the share has undone.
LossResult with_unscaled_outputs(const Subject& subject, const MicroBatch& batch,
                                 LossResult result) {
  const double scale = scale_of(subject, batch.part.spec);
  if (scale == 1.0) return result;
  for (const OutputInfo& info : outputs_of(batch.signature, batch.part)) {
    if (info.kind != OutputKind::value) continue;
    const auto output = std::ranges::find(result.outputs, info.name, &Output::name);
    if (output == result.outputs.end()) continue;
    Tensor& tensor = output->tensor;
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, tensor.at(i) / scale);
  }
  return result;
}

/// Something of the right shape, while the answer is not there.
LossResult blank(const MicroBatch& batch) {
  LossResult result;
  for (const OutputInfo& info : outputs_of(batch.signature, batch.part)) {
    result.outputs.push_back({info.name, Tensor::zeros(info.dtype, info.extents)});
  }
  return result;
}

/// Adds up what the shares leave; what is refused is for the subject to say. No trainer makes a
/// call for a micro-batch without a sequence (rule D1).
LossResult train_with(const Subject& subject, const LossSignature& signature, const Case& c,
                      const Step& call) {
  const auto step = [&](MicroBatch& batch) {
    if (!subject.contract.non_contiguous) batch.part.layout = Layout::contiguous;
    const bool none = batch.totals.rows > 0 && batch.part.shape[Axis::sequences] == 0;
    return none ? blank(batch) : call(batch);
  };
  Trainer trainer;
  trainer.check = nullptr;
  return train(signature, c, step, trainer);
}

/// What nobody reads is taken for the 0 that the formula has there.
LossResult with_silent_outputs(const MicroBatch& batch, LossResult result) {
  const std::vector<bool> valid = valid_positions(batch.signature, batch.part);
  if (valid.empty()) return result;
  for (const OutputInfo& info : outputs_of(batch.signature, batch.part)) {
    if (info.kind == OutputKind::gradient || !has_positions(info.axes)) continue;
    const auto output = std::ranges::find(result.outputs, info.name, &Output::name);
    if (output == result.outputs.end() || output->tensor.extents != info.extents) continue;
    const std::int64_t each = output->tensor.size() / std::ssize(valid);
    for (std::int64_t i = 0; i < output->tensor.size(); ++i) {
      if (!valid[static_cast<std::size_t>(i / each)]) output->tensor.set(i, 0.0);
    }
  }
  return result;
}

void foresee(const Subject& subject, Session& session, const LossSignature& signature,
             const std::vector<const Case*>& cases) {
  bool room = session.begin_foreseeing();
  for (auto c = cases.begin(); room && c != cases.end(); ++c) {
    const auto send = [&](MicroBatch& batch) {
      room = room && session.foresee(batch, share_of(subject, batch));
      return blank(batch);
    };
    train_with(subject, signature, **c, send);
  }
}

}  // namespace

Implementation brought_implementation(const Subject& subject, const LossSignature& loss,
                                      std::shared_ptr<Session> session) {
  Implementation row;
  row.name = subject.name;
  row.loss = subject.loss;
  row.device = subject.device;
  row.autograd = !subject.entry.starts_with("so:");
  row.contract = subject.contract;
  row.contract.splits = subject.micro_batches != Combination::none;
  row.unsupported = [subject, loss](const Case& c) { return unsupported(subject, loss, c); };
  row.hears = [subject, loss, session](const Case& c, std::string_view argument) {
    return hears(subject, session->greeting(), loss, c, argument);
  };
  row.arithmetic = [subject, loss](Dtype stored) { return arithmetic_of(subject, loss, stored); };
  row.evaluate = [subject, session](const LossSignature& signature, const Case& c) {
    return train_with(subject, signature, c, [&](MicroBatch& batch) {
      LossResult result =
          with_unscaled_outputs(subject, batch, session->step(batch, share_of(subject, batch)));
      if (subject.contract.masked_outputs) return result;
      return with_silent_outputs(batch, std::move(result));
    });
  };
  row.foresee = [subject, session](const LossSignature& signature, const auto& cases) {
    foresee(subject, *session, signature, cases);
  };
  row.origin = [subject, session](const LossSignature& signature, const Case& c) {
    std::optional<Origin> origin;
    train_with(subject, signature, c, [&](MicroBatch& batch) {
      return session->step(batch, share_of(subject, batch), origin);
    });
    return origin;
  };
  return row;
}

}  // namespace lossgate::impl
