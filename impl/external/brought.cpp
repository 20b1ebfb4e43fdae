// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "impl/external/session.h"
#include "impl/trainer.h"

namespace lossgate::impl {
namespace {

/// The share of the whole step by which a trainer scales a micro-batch's loss before it calls
/// backward.
double share_of(const Subject& subject, const MicroBatch& batch) {
  double share = 1.0;
  const auto ratio = [](std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
  };
  if (subject.micro_batches == Combination::token_weighted) {
    share *= ratio(batch.positions.tokens, batch.rank_totals.tokens);
  }
  if (subject.ranks == Combination::token_weighted) {
    share *= ratio(batch.rank_totals.tokens, batch.totals.tokens);
  }
  return share;
}

Trainer trainer_of(const Subject& subject) {
  Trainer trainer;
  trainer.check = nullptr;  // what is refused is for the subject to say
  trainer.mean_over_micro_batches = subject.micro_batches == Combination::mean;
  const bool mean = subject.ranks == Combination::mean;
  trainer.all_reduce = mean ? Trainer::AllReduce::mean : Trainer::AllReduce::sum;
  return trainer;
}

std::optional<std::string> unsupported(const Subject& subject, const LossSignature& loss,
                                       const Case& c) {
  if (!subject.reductions.empty() &&
      std::ranges::find(subject.reductions, c.spec.reduction) == subject.reductions.end()) {
    return "the reduction is another";
  }
  for (const auto& [name, value] : subject.options) {
    const OptionValue* asked = c.spec.find(name);
    if (asked && *asked != value) return name + " is fixed";
  }
  const Dtype dtype = float_dtype(loss, c);
  if (std::ranges::find(subject.dtypes, dtype) == subject.dtypes.end()) {
    return std::string(name(dtype)) + " is not asked";
  }
  const auto stored = stage_format(subject.arithmetic, Stage::loss, dtype);
  const bool shares = !c.split.whole() && (subject.micro_batches == Combination::token_weighted ||
                                           subject.ranks == Combination::token_weighted);
  if (stored && (shares || round_to(*stored, c.upstream) != c.upstream)) {
    return "the upstream gradient is no number of the loss's format";
  }
  if (!c.split.whole() && c.split.world > 1 && subject.ranks == Combination::none) {
    return "several ranks";
  }
  return std::nullopt;
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

/// Something of the right shape, while the answer is not there.
LossResult blank(const MicroBatch& batch) {
  LossResult result;
  for (const OutputInfo& info : outputs_of(batch.signature, batch.part)) {
    result.outputs.push_back({info.name, Tensor::zeros(info.dtype, info.extents)});
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
    train(signature, **c, send, trainer_of(subject));
  }
}

}  // namespace

Implementation brought_implementation(const Subject& subject, const LossSignature& loss,
                                      std::shared_ptr<Session> session) {
  Implementation row;
  row.name = subject.name;
  row.loss = subject.loss;
  row.device = subject.device;
  row.contract = subject.contract;
  row.unsupported = [subject, loss](const Case& c) { return unsupported(subject, loss, c); };
  row.arithmetic = [subject, loss](Dtype stored) { return arithmetic_of(subject, loss, stored); };
  row.evaluate = [subject, session](const LossSignature& signature, const Case& c) {
    return train(
        signature, c,
        [&](MicroBatch& batch) { return session->step(batch, share_of(subject, batch)); },
        trainer_of(subject));
  };
  row.foresee = [subject, session](const LossSignature& signature, const auto& cases) {
    foresee(subject, *session, signature, cases);
  };
  row.origin = [subject, session](const LossSignature& signature, const Case& c) {
    std::optional<Origin> origin;
    train(
        signature, c,
        [&](MicroBatch& batch) { return session->step(batch, share_of(subject, batch), origin); },
        trainer_of(subject));
    return origin;
  };
  return row;
}

}  // namespace lossgate::impl
