// SPDX-License-Identifier: Apache-2.0
#include "ci/evidence/null_answer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lossgate::ci::evidence {
namespace {

bool is_gradient(std::string_view output) { return output.starts_with("gradient."); }

/// The number, or what of it an integer can hold.
void put(Tensor& tensor, std::int64_t index, double value) {
  if (is_float(tensor.dtype)) return tensor.set(index, value);
  const double largest = tensor.dtype == Dtype::boolean ? 1.0 : 100.0;
  tensor.set(index, std::isfinite(value) ? std::clamp(std::trunc(value), 0.0, largest) : 0.0);
}

void fill(LossResult& result, double value) {
  for (Output& output : result.outputs) {
    for (std::int64_t i = 0; i < output.tensor.size(); ++i) put(output.tensor, i, value);
  }
}

void zeros(const Case&, const Answered&, LossResult& result) { fill(result, 0.0); }
void ones(const Case&, const Answered&, LossResult& result) { fill(result, 1.0); }

void nans(const Case&, const Answered&, LossResult& result) {
  fill(result, std::numeric_limits<double>::quiet_NaN());
}

/// As often as it takes to fill the other.
void repeat(const Tensor& from, Tensor& to) {
  for (std::int64_t i = 0; from.size() > 0 && i < to.size(); ++i)
    put(to, i, from.at(i % from.size()));
}

/// For a gradient its own field, else the first field of numbers.
void input(const Case& asked, const Answered&, LossResult& result) {
  for (Output& output : result.outputs) {
    const Tensor* given = nullptr;
    for (const auto& [name, tensor] : asked.batch.fields) {
      const bool own = output.name == "gradient." + name;
      if (own || (!given && is_float(tensor.dtype))) given = &tensor;
    }
    if (!given) given = &asked.batch.fields.front().second;
    repeat(*given, output.tensor);
  }
}

void case_before(const Case&, const Answered& answered, LossResult& result) {
  for (Output& output : result.outputs) {
    if (const Tensor* before = answered.case_before.find(output.name))
      repeat(*before, output.tensor);
  }
}

/// As a cache that looks at shapes alone.
void call_before(const Case&, const Answered& answered, LossResult& result) {
  for (Output& output : result.outputs) {
    const Tensor* before = answered.call_before.find(output.name);
    if (before && before->extents == output.tensor.extents &&
        before->dtype == output.tensor.dtype) {
      output.tensor = *before;
    }
  }
}

void zero_where(LossResult& result, bool gradients) {
  for (Output& output : result.outputs) {
    if (is_gradient(output.name) != gradients) continue;
    output.tensor = Tensor::zeros(output.tensor.dtype, output.tensor.extents);
  }
}
void zero_gradient(const Case&, const Answered&, LossResult& result) { zero_where(result, true); }
void zero_values(const Case&, const Answered&, LossResult& result) { zero_where(result, false); }

bool any(const LossSignature&) { return true; }

bool has_gradient(const LossSignature& signature) {
  return std::ranges::any_of(signature.fields,
                             [](const Field& f) { return f.role == Role::differentiable; });
}

bool has_floats(const LossSignature& signature) {
  return has_gradient(signature) ||
         std::ranges::any_of(signature.outputs, [](const OutputField& output) {
           return output.dtypes.empty() || std::ranges::any_of(output.dtypes, is_float);
         });
}

}  // namespace

const std::vector<NullAnswer>& all_null_answers() {
  static const std::vector<NullAnswer> all = {
      {"zeros", zeros, any},
      {"ones", ones, any},
      {"nan", nans, has_floats},
      {"the input", input, any},
      {"the answer to the case before", case_before, any},
      {"the answer to the call before", call_before, any},
      {"the right values, zero gradients", zero_gradient, has_gradient},
      {"the right gradients, zero values", zero_values, has_gradient},
  };
  return all;
}

NullSubject::NullSubject(const Sound& sound, const NullAnswer& answer)
    : answer_(answer), implementation_(*sound.implementation) {
  implementation_.name += " answering " + answer.name;
  implementation_.evaluate = [answer, answered = answered_, inner = sound.implementation->evaluate](
                                 const LossSignature& signature, const Case& c) {
    LossResult right = inner(signature, c);
    if (right.refusal) return right;
    LossResult given = right;
    answer.put(c, *answered, given);
    answered->call_before = std::move(right);
    return given;
  };
}

}  // namespace lossgate::ci::evidence
