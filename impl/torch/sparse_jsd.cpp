// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <limits>

#include "impl/forms.h"
#include "impl/torch/catalog.h"
#include "impl/torch/divergence.h"
#include "impl/torch/slope.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct SparseOptions {
  double beta = 0.5, temperature = 1.0;
  bool tail = true;          ///< add a bucket for the rest of the vocabulary
  double tail_floor = 1e-7;  ///< least mass of the tail
};

/// The distribution that is compared, made of support log-probs (-infinity in slots that are off),
/// and the way back to them.
struct Entries {
  at::Tensor values;  ///< [..., support], with one more entry where there is a tail
  at::Tensor share;   ///< of each slot in the support's mass
  at::Tensor slope;   ///< of the tail's entry by the logarithm of that mass

  Entries(const at::Tensor& support, const SparseOptions& options) {
    const at::Tensor largest = support.amax(-1, /*keepdim=*/true);
    const at::Tensor nothing = largest == -kInfinity;
    const at::Tensor shift = largest.masked_fill(nothing, 0);
    const at::Tensor mass = (support - shift).exp_().sum(-1, /*keepdim=*/true).log_().add_(shift);
    share = (support - mass).exp_().masked_fill_(support == -kInfinity, 0);
    if (!options.tail) {
      values = support - mass;
      return;
    }
    const at::Tensor bounded = mass.clamp_max(-options.tail_floor);
    const at::Tensor rest = bounded.expm1().neg_();
    values = at::cat({support, rest.log()}, -1);
    slope = bounded.exp().neg_().div_(rest).masked_fill_(mass > -options.tail_floor, 0);
  }

  static at::Tensor back(const at::Tensor& g, const at::Tensor& share, const at::Tensor& slope) {
    if (!slope.defined()) return g - share * g.sum(-1, /*keepdim=*/true);
    const std::int64_t slots = share.size(-1);
    return g.narrow(-1, 0, slots) + (g.narrow(-1, slots, 1) * slope).mul(share);
  }
};

/// Slots that repeat an earlier one's token.
at::Tensor repeated(const at::Tensor& tokens) {
  return (tokens.unsqueeze(-1) == tokens.unsqueeze(-2)).tril(-1).any(-1);
}

struct SparseJsdTerms : torch::autograd::Function<SparseJsdTerms> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& student_logits,
                            const at::Tensor& support_token, const at::Tensor& teacher_log_prob,
                            const at::Tensor& valid, const SparseOptions& options) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::ScalarType compute = compute_type(student_logits.scalar_type());
    const at::Tensor l =
        log_softmax(cooled(select(student_logits, valid, compute), options.temperature));
    const at::Tensor ignored = valid.logical_not();
    const at::Tensor tokens = support_token.to(at::kLong).masked_fill(ignored.unsqueeze(-1), 0);
    const at::Tensor off = repeated(tokens);
    const Entries student(l.gather(-1, tokens).masked_fill_(off, -kInfinity), options);
    const Entries teacher(select(teacher_log_prob, valid, compute).masked_fill_(off, -kInfinity),
                          options);
    const Divergence terms = jensen_shannon(student.values, teacher.values, options.beta, false);
    const at::Tensor slope = terms.slope.masked_fill(ignored.unsqueeze(-1), 0);
    context->save_for_backward({l, tokens, slope, student.share, student.slope, valid});
    context->saved_data["stored"] = student_logits.scalar_type();
    context->saved_data["temperature"] = options.temperature;
    return terms.value.masked_fill(ignored, 0);
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor by_entry = upstream[0].unsqueeze(-1) * saved[2];
    const at::Tensor by_slot = Entries::back(by_entry, saved[3], saved[4]);
    const at::Tensor rows = saved[5].unsqueeze(-1);
    at::Tensor g = at::where(rows, saved[0].exp().mul_(by_slot.sum(-1, true)).neg_(), 0.0);
    g.scatter_add_(-1, saved[1], at::where(rows, by_slot, 0.0));
    return {once(cooled_gradient(g, context->saved_data["temperature"].toDouble())
                     .to(context->saved_data["stored"].toScalarType())),
            {},
            {},
            {},
            {}};
  }
};

/// The first position that counts and lacks a finite teacher log-prob, or -1.
std::int64_t missing_teacher(const at::Tensor& teacher_log_prob, const at::Tensor& valid) {
  const at::Tensor missing =
      teacher_log_prob.isfinite().logical_not_().any(-1).logical_and_(valid).flatten();
  if (missing.is_meta() || !missing.any().item<bool>()) return -1;
  return missing.to(at::kByte).argmax().item<std::int64_t>();
}

std::tuple<at::Tensor, at::Tensor> sparse_jsd(const at::Tensor& student_logits,
                                              const at::Tensor& support_token,
                                              const at::Tensor& teacher_log_prob,
                                              const at::Tensor& label, const SparseOptions& options,
                                              const ReductionPlan& plan) {
  TORCH_CHECK(student_logits.dim() == 3, "student_logits must be [sequences, tokens, vocab], got ",
              student_logits.sizes());
  TORCH_CHECK(support_token.dim() == 3 &&
                  support_token.sizes().slice(0, 2) == student_logits.sizes().slice(0, 2),
              "support_token must be [sequences, tokens, support], got ", support_token.sizes());
  expect_like(support_token, teacher_log_prob, "teacher_log_prob");
  TORCH_CHECK(at::isIntegralType(support_token.scalar_type(), false),
              "support_token must be of integers, got ", support_token.scalar_type());
  check_divergence_options(options.beta, options.temperature);
  TORCH_CHECK(!options.tail || (options.tail_floor > 0.0 && options.tail_floor <= 1.0),
              "tail_floor must lie in (0, 1], got ", options.tail_floor);
  const at::Tensor valid =
      valid_from_labels(label, student_logits.sizes().slice(0, 2), student_logits.size(2));
  if (options.beta > 0) {
    const std::int64_t place = missing_teacher(teacher_log_prob, valid);
    if (place >= 0) {
      throw Refusal{.argument = "teacher_log_prob",
                    .sequence = place / valid.size(1),
                    .token = place % valid.size(1),
                    .message = "is not finite at a position that counts"};
    }
  }
  const at::Tensor per_token =
      SparseJsdTerms::apply(student_logits, support_token, teacher_log_prob, valid, options);
  return {reduce(per_token, valid, plan), per_token};
}

std::tuple<at::Tensor, at::Tensor> sparse_jsd_operator(
    const at::Tensor& student_logits, const at::Tensor& support_token,
    const at::Tensor& teacher_log_prob, const at::Tensor& label, std::int64_t total_tokens,
    c10::string_view reduction, double beta, double temperature, std::int64_t num_items, bool tail,
    double tail_floor) {
  try {
    return sparse_jsd(
        student_logits, support_token, teacher_log_prob, label,
        {beta, temperature, tail, tail_floor},
        reduction_plan(reduction, {.total_tokens = total_tokens, .num_items = num_items}));
  } catch (const Refusal& refusal) {
    TORCH_CHECK_VALUE(false, refusal.argument, " ", refusal.message, ": sequence ",
                      refusal.sequence, ", token ", refusal.token);
  }
}

StepOutputs sparse_jsd_step(const StepInputs& in) {
  auto [loss, per_token] =
      sparse_jsd(in["student_logits"], in["support_token"], in["teacher_log_prob"], in["label"],
                 {in.spec().number("beta"), in.spec().number("temperature"),
                  in.spec().number("tail") != 0.0, in.spec().number("tail_floor")},
                 in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

/// A missing teacher entry is refused by the step, which knows beta: without a mixture it is legal.
void check(const LossSignature& signature, const Case& c) {
  static const LossSignature relaxed = [&] {
    LossSignature copy = signature;
    for (Field& field : copy.fields) field.infinity = Infinity::legal;
    return copy;
  }();
  require_valid(relaxed, c);
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation sparse_jsd_implementation() {
  return torch_implementation("sparse_jsd", {"impl/torch/sparse_jsd.cpp", kLine}, sparse_jsd_step,
                              std::string(kDivergenceForm), {.check = &check});
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "sparse_jsd(Tensor student_logits, Tensor support_token, Tensor teacher_log_prob, "
      "Tensor label, *, int total_tokens, str reduction='token_mean', float beta=0.5, "
      "float temperature=1.0, int num_items=1, bool tail=True, float tail_floor=1e-7) "
      "-> (Tensor loss, Tensor per_token)");
  library.impl("sparse_jsd", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::sparse_jsd_operator));
}
