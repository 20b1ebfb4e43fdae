// SPDX-License-Identifier: Apache-2.0
#include "fuzz/engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "corpora/files.h"
#include "corpora/text_codec.h"
#include "fuzz/cross.h"
#include "fuzz/hash.h"
#include "fuzz/mutate.h"

// libFuzzer's interface (https://llvm.org/docs/LibFuzzer.html), and the edges of instrumented code.
extern "C" {
int LLVMFuzzerRunDriver(int* argc, char*** argv,
                        int (*ask)(const std::uint8_t* data, std::size_t size));
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                    unsigned seed);
std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size,
                                      const std::uint8_t* other, std::size_t other_size,
                                      std::uint8_t* out, std::size_t most, unsigned seed);
[[gnu::weak]] extern std::uint8_t __start___sancov_cntrs;
[[gnu::weak]] extern std::uint8_t __stop___sancov_cntrs;
}

namespace lossgate::fuzz {
namespace {

/// libFuzzer takes each of these that is not 0 for a feature of the input that was just run.
[[gnu::section("__libfuzzer_extra_counters"), gnu::used]] std::uint8_t counters[kFeatures];

/// Hostile draws find most faults, and each is the beginning of another way: a share of them stays.
constexpr double kFreshShare = 0.3;
constexpr std::int64_t kMostSteps = 3;

std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

class Engine {
 public:
  Engine(Target& target, const EngineOptions& options)
      : target_(target), guided_(options.guided), seed_(options.seed), corpus_(options.corpus) {
    for (const Feature feature : options.seen) seen_[feature] = true;
    const auto edges = &__stop___sancov_cntrs - &__start___sancov_cntrs;
    edges_.assign(static_cast<std::size_t>(std::max<std::ptrdiff_t>(edges, 0)), 0);
  }

  void ask(std::string_view text) {
    const std::optional<Case> c = read(text);
    if (!c) return;
    const std::vector<Feature> shown = target_.ask(*c, text);
    if (!guided_) return;
    std::vector<Feature> fresh;
    for (const Feature feature : shown) {
      counters[feature] = 1;
      if (!std::exchange(seen_[feature], true)) fresh.push_back(feature);
    }
    // What was kept is in the corpus; only edges have to be seen anew in each process.
    const bool code = sees_new_edges() && !(is_stored_ && text == written_);
    if (!fresh.empty() || code) target_.keep(text, fresh);
  }

  std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    while (next_ < corpus_.size()) {
      if (std::optional<Case> stored = read_file(corpus_[next_++])) {
        const std::size_t written = write(std::move(*stored), data, size, most);
        is_stored_ = true;
        return written;
      }
    }
    Choices choices(mix(seed_ ^ seed));
    const std::optional<Case> base = guided_ ? read(text_of(data, size)) : std::nullopt;
    if (!base || choices.sometimes(kFreshShare)) {
      return write(target_.fresh(mix(seed_ + seed)), data, size, most);
    }
    Case made = *base;
    for (std::int64_t step = choices.integer(1, kMostSteps); step > 0; --step) {
      Choices own(static_cast<std::uint64_t>(choices.integer(0, INT64_MAX)));
      made = mutated(target_.signature(), target_.profile(), made, own);
    }
    return write(std::move(made), data, size, most);
  }

  std::size_t cross(std::string_view one, std::string_view other, std::uint8_t* out,
                    std::size_t most, unsigned seed) {
    const std::optional<Case> first = read(one), second = read(other);
    if (!first || !second) return 0;
    Choices choices(mix(seed_ ^ seed));
    return write(crossed(target_.signature(), *first, *second, choices), out, 0, most);
  }

 private:
  std::optional<Case> read(std::string_view text) {
    if (!text.empty() && text == written_) return last_;
    try {
      return corpora::decode(text, "an input", lookup_);
    } catch (const corpora::FormatError&) {
      return std::nullopt;
    }
  }

  /// What cannot be read, is a case of another loss, or may not be asked, is nothing to begin with.
  std::optional<Case> read_file(const std::string& file) {
    try {
      std::optional<Case> c = corpora::read_case_file(file, lookup_);
      if (!target_.takes(*c)) c.reset();
      return c;
    } catch (const corpora::FormatError&) {
      return std::nullopt;
    }
  }

  /// Leaves what was there where the case is too large.
  std::size_t write(Case c, std::uint8_t* data, std::size_t size, std::size_t most) {
    c.provenance = {};
    std::string text = corpora::encode(c, target_.signature());
    if (text.size() > most) return size;
    std::memcpy(data, text.data(), text.size());
    written_ = std::move(text);
    is_stored_ = false;
    last_ = std::move(c);
    return written_.size();
  }

  /// By the binary orders of how often each edge was taken, as libFuzzer counts them.
  bool sees_new_edges() {
    bool any = false;
    const std::uint8_t* taken = &__start___sancov_cntrs;
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      if (taken[i] == 0) continue;
      const int count = taken[i];
      const int order = count < 4 ? count - 1 : std::min(7, std::ilogb(count) + 1);
      const auto bit = static_cast<std::uint8_t>(1U << order);
      any = any || !(edges_[i] & bit);
      edges_[i] |= bit;
    }
    return any;
  }

  Target& target_;
  bool guided_;
  std::uint64_t seed_;
  std::vector<std::string> corpus_;
  std::size_t next_ = 0;  ///< of the corpus, to be asked as it is
  corpora::Lookup lookup_ = [this](std::string_view loss) {
    return loss == target_.signature().id ? &target_.signature() : nullptr;
  };
  std::array<bool, kFeatures> seen_{};
  std::vector<std::uint8_t> edges_;
  std::string written_;     ///< what the mutator made last, which is mostly what is asked next
  bool is_stored_ = false;  ///< it is one of the corpus
  Case last_;
};

std::unique_ptr<Engine> engine;

int ask(const std::uint8_t* data, std::size_t size) {
  engine->ask(text_of(data, size));
  return 0;
}

}  // namespace

void drive(Target& target, const EngineOptions& options) {
  engine = std::make_unique<Engine>(target, options);
  // Crashes, hangs and memory are the affair of whoever started the process.
  std::vector<std::string> words = {
      "lossgate",           "-seed=" + std::to_string(options.seed % 0xffffffffU + 1),
      "-len_control=0",     "-max_len=" + std::to_string(kMostText),
      "-verbosity=0",       "-print_final_stats=0",
      "-timeout=0",         "-rss_limit_mb=0",
      "-malloc_limit_mb=0", "-detect_leaks=0",
      "-reload=0",          "-handle_abrt=0",
      "-handle_bus=0",      "-handle_fpe=0",
      "-handle_ill=0",      "-handle_int=0",
      "-handle_segv=0",     "-handle_term=0",
      "-handle_usr1=0",     "-handle_usr2=0",
      "-handle_xfsz=0",     "-exact_artifact_path=/dev/null"};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  char** arguments = pointers.data();
  LLVMFuzzerRunDriver(&count, &arguments, ask);
  std::exit(EXIT_FAILURE);
}

}  // namespace lossgate::fuzz

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                    unsigned seed) {
  return lossgate::fuzz::engine->mutate(data, size, most, seed);
}

std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size,
                                      const std::uint8_t* other, std::size_t other_size,
                                      std::uint8_t* out, std::size_t most, unsigned seed) {
  using lossgate::fuzz::text_of;
  return lossgate::fuzz::engine->cross(text_of(one, one_size), text_of(other, other_size), out,
                                       most, seed);
}
