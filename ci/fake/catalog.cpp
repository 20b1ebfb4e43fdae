// SPDX-License-Identifier: Apache-2.0
#include "impl/catalog.h"

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>

#include "impl/external/subject.h"
#include "reference/reference.h"

/// Implementations that behave as tests of the command want them to, in place of the real ones.
/// They repeat the reference, so they are right, but for what their names say. A case's title
/// triggers what kills a process.
namespace lossgate::impl {
namespace {

using reference::Tracked;

struct Rounding final : reference::Sink<Tracked> {
  explicit Rounding(LossResult& result_in) : result(result_in) {}
  void entry(std::size_t output, std::int64_t index, const Tracked& value) override {
    result.outputs[output].tensor.set(index, static_cast<double>(value.v));
  }
  LossResult& result;
};

LossResult exact(const LossSignature& signature, const Case& c) {
  const reference::Loss& loss = *reference::find_loss(signature.id);
  LossResult result;
  result.refusal = reference::expected_refusal(loss, c);
  if (result.refusal) return result;
  const reference::Problem problem(signature, c);
  for (const OutputInfo& output : problem.outputs) {
    result.outputs.push_back({output.name, Tensor::zeros(output.dtype, output.extents)});
  }
  Rounding sink(result);
  const Dtype dtype = float_dtype(signature, c);
  const std::string form = signature.forms.empty() ? "" : signature.forms.front();
  reference::evaluate(loss, problem, plain_arithmetic(dtype, form), sink);
  return result;
}

LossResult doubled(const LossSignature& signature, const Case& c) {
  LossResult result = exact(signature, c);
  for (Output& output : result.outputs) {
    if (!is_float(output.tensor.dtype)) continue;
    for (std::int64_t i = 0; i < output.tensor.size(); ++i) {
      output.tensor.set(i, 2.0 * output.tensor.at(i));
    }
  }
  return result;
}

/// Until somebody mends it.
LossResult mendable(const LossSignature& signature, const Case& c) {
  return std::getenv("LOSSGATE_FAKE_MENDED") ? exact(signature, c) : doubled(signature, c);
}

LossResult fragile(const LossSignature& signature, const Case& c) {
  if (c.provenance.title == "crash") std::raise(SIGABRT);
  if (c.provenance.title == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
  if (c.provenance.title == "throw") throw std::runtime_error("out of patience");
  return exact(signature, c);
}

/// Like `exact` on what a campaign draws, but for the kinds of data on which a process ends, hangs
/// or asks for too much.
LossResult brittle(const LossSignature& signature, const Case& c) {
  const std::int64_t sequences = c.shape[Axis::sequences];
  if (sequences == 13) std::raise(SIGABRT);
  if (sequences == 3 && c.layout != Layout::contiguous) {
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
  if (sequences == 5) throw std::runtime_error("out of patience");
  if (sequences == 8) ::operator delete(::operator new (std::size_t{10} << 30));
  if (sequences == 2 && c.layout != Layout::contiguous) std::_Exit(7);
  return exact(signature, c);
}

/// Like a subject whose process was started too often.
LossResult weary(const LossSignature& signature, const Case& c) {
  static int calls = 0;
  if (++calls > 40) throw SubjectWornOut("fake_weary crashed or hung 40 times");
  return exact(signature, c);
}

/// Wrong on one case, and gone when somebody asks why.
LossResult secretive(const LossSignature& signature, const Case& c) {
  static std::optional<Batch> wrong;
  if (wrong && !(*wrong == c.batch)) throw std::runtime_error("no comment");
  LossResult result = doubled(signature, c);
  const double loss = result.outputs.empty() ? 0.0 : result.outputs[0].tensor.at(0);
  if (std::isfinite(loss) && loss != 0.0) wrong = c.batch;
  return result;
}

/// Wrong, and asleep when somebody makes that simple.
LossResult dwelling(const LossSignature& signature, const Case& c) {
  static bool wrong = false;
  const bool simple = c.shape[Axis::sequences] * c.shape[Axis::tokens] == 1;
  if (wrong && simple) {
    std::ofstream("asleep") << "zzz";
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
  wrong = wrong || !simple;
  return doubled(signature, c);
}

/// The same, and for good.
LossResult leaving(const LossSignature& signature, const Case& c) {
  static bool gone = false;
  try {
    if (!gone) return secretive(signature, c);
  } catch (const std::runtime_error&) {
    gone = true;
  }
  throw SubjectWornOut("fake_leaving crashed or hung 1 times");
}

Implementation implementation(const std::string& name,
                              LossResult (*evaluate)(const LossSignature&, const Case&)) {
  Implementation made;
  made.name = name;
  made.loss = "grpo";
  made.source = {.file = "ci/fake/catalog.cpp", .line = __LINE__};
  made.unsupported = [](const Case&) { return std::nullopt; };
  made.arithmetic = [](Dtype dtype) {
    return plain_arithmetic(dtype, reference::find_signature("grpo")->forms.front());
  };
  made.evaluate = evaluate;
  return made;
}

Implementation faulty(const std::string& name,
                      LossResult (*evaluate)(const LossSignature&, const Case&)) {
  Implementation made = implementation(name, evaluate);
  made.fault = Fault{.twin = "fake_exact",
                     .thread = "none",
                     .cause = "for tests",
                     .trigger = "any case",
                     .killers = {"reference_agreement"}};
  return made;
}

}  // namespace

const std::vector<Implementation>& catalog(bool /*with_torch*/) {
  static const std::vector<Implementation> all = {implementation("fake_exact", exact),
                                                  implementation("fake_wrong", doubled),
                                                  implementation("fake_fragile", fragile),
                                                  implementation("fake_brittle", brittle),
                                                  implementation("fake_weary", weary),
                                                  implementation("fake_secretive", secretive),
                                                  implementation("fake_leaving", leaving),
                                                  implementation("fake_mendable", mendable),
                                                  implementation("fake_dwelling", dwelling),
                                                  faulty("fake_doubled", doubled),
                                                  faulty("fake_survivor", exact)};
  return all;
}

std::string_view torch_status() { return "left out of tests"; }

std::string torch_library() { return ""; }

}  // namespace lossgate::impl
