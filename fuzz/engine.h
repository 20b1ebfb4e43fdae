// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/features.h"
#include "fuzz/profile.h"

/// libFuzzer, inside this program, over cases: it decides which case to go on from; the mutator is
/// ours. Its guidance is the numeric coverage and, of code that is instrumented, that of edges.
namespace lossgate::fuzz {

/// What the engine asks; it lives as long as the process.
class Target {
 public:
  virtual ~Target() = default;
  virtual const LossSignature& signature() const = 0;
  virtual Profile profile() const = 0;
  /// Whether it may be asked about a stored case, which was drawn for somebody else.
  virtual bool takes(const Case& c) const = 0;
  /// A case that owes nothing to any other.
  virtual Case fresh(std::uint64_t seed) = 0;
  /// What the case shows; `text` is the case as a file.
  virtual std::vector<Feature> ask(const Case& c, std::string_view text) = 0;
  /// The case has shown these for the first time; none of them where it was code that was new.
  virtual void keep(std::string_view text, const std::vector<Feature>& fresh) = 0;
};

/// Of a case as a file, in bytes; the engine goes on from none that is longer.
inline constexpr std::size_t kMostText = std::size_t{8} << 20;

struct EngineOptions {
  std::uint64_t seed = 1;
  std::vector<std::string> corpus;  ///< files of cases to begin with
  std::vector<Feature> seen;        ///< no news
  bool guided = true;               ///< else nothing but fresh cases
};

/// Asks one case after the other until the process is ended. libFuzzer has one state for the whole
/// process, so a process calls this once.
[[noreturn]] void drive(Target& target, const EngineOptions& options);

}  // namespace lossgate::fuzz
