// SPDX-License-Identifier: Apache-2.0
#include "ci/environment.h"

#include <fmt/format.h>

#include "ci/errors.h"
#include "impl/catalog.h"
#include "reference/fp_environment.h"
#include "reference/spec/dtype.h"

namespace lossgate::ci {
namespace {

std::string architecture() {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "other";
#endif
}

// The widest that libraries may choose at run time; sums of other widths round otherwise.
std::string instruction_set() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return "avx512f";
  if (__builtin_cpu_supports("avx2")) return __builtin_cpu_supports("fma") ? "avx2 fma" : "avx2";
  return "sse2";
#else
  return architecture();
#endif
}

}  // namespace

report::Environment read_environment(bool with_torch) {
  const std::string_view torch =
      with_torch ? impl::torch_status() : "not opened: what is brought is asked without it";
  const reference::FpEnvironment fp = reference::fp_environment();
  report::Environment environment;
  environment.architecture = architecture();
  environment.instruction_set = instruction_set();
  environment.compiler = "clang " __clang_version__;
  environment.rounding = fp.rounding;
  environment.flush_to_zero = fp.flush_to_zero;
  environment.denormals_are_zero = fp.denormals_are_zero;
  environment.x87_precision = fp.x87_precision;
  environment.real_digits = fp.real_digits;
  environment.torch = torch.empty() ? "loaded" : std::string(torch);
  for (const Dtype dtype : kAllDtypes) {
    if (!is_float(dtype)) continue;
    environment.dtypes.push_back(fmt::format(
        "{}: roundoff {:.3g}, largest {:.8g}, smallest normal {:.3g}, smallest {:.3g}", name(dtype),
        unit_roundoff(dtype), max_finite(dtype), min_normal(dtype), min_subnormal(dtype)));
  }
  return environment;
}

void check_environment(bool with_torch) {
  if (with_torch) impl::torch_status();
  if (const auto reason = reference::why_unfit(reference::fp_environment())) {
    throw MachineError("no error bound holds in this floating-point environment: " + *reason);
  }
}

std::string version() { return LOSSGATE_VERSION; }
std::string commit() { return LOSSGATE_COMMIT; }

}  // namespace lossgate::ci
