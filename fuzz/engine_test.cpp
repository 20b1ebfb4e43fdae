// SPDX-License-Identifier: Apache-2.0
#include "fuzz/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include "corpora/files.h"
#include "corpora/given_folder.h"
#include "corpora/text_codec.h"
#include "fuzz/acceptance.h"
#include "fuzz/fake_signatures.h"
#include "impl/catalog.h"
#include "reference/reference.h"

namespace lossgate::fuzz {
namespace {

constexpr int kYes = 42, kNo = 43;

/// Asks so many cases; the first feature is the binary order of a sequence's length.
class Lengths final : public Target {
 public:
  explicit Lengths(int most) : most_(most) {}

  const LossSignature& signature() const override { return signature_; }
  Profile profile() const override { return Profile::hostile; }
  bool takes(const Case& c) const override { return may_be_asked(c); }
  Case fresh(std::uint64_t seed) override { return draw(signature_, Dtype::f32, profile(), seed); }

  std::vector<Feature> ask(const Case& c, std::string_view /*text*/) override {
    if (const int code = judge(c)) std::_Exit(code);
    if (++asked_ == most_) std::_Exit(kNo);
    return {feature(Dtype::f32, Facet::form, 0,
                    static_cast<std::size_t>(std::ilogb(static_cast<double>(tokens(c)))))};
  }

  void keep(std::string_view text, const std::vector<Feature>& fresh) override {
    const bool known = !kept_.insert(std::string(text)).second;
    if (known || fresh.size() != 1 || !news_.insert(fresh[0]).second) std::_Exit(kNo);
  }

  static std::int64_t tokens(const Case& c) { return c.shape[Axis::tokens]; }

  /// Ends the process with what it returns, unless that is 0.
  std::function<int(const Case&)> judge = [](const Case&) { return 0; };
  std::function<bool(const Case&)> may_be_asked = [](const Case&) { return true; };

  int asked() const { return asked_; }
  std::size_t kept() const { return kept_.size(); }

 private:
  LossSignature signature_ = fake_policy_loss();
  int most_, asked_ = 0;
  std::set<std::string> kept_;
  std::set<Feature> news_;
};

/// Draws know no longer sequence than 257.
bool reaches_beyond_all_draws(bool guided) {
  constexpr std::int64_t kBeyond = 1000;
  const auto run = [guided] {
    Lengths lengths(16'000);
    lengths.judge = [](const Case& c) { return Lengths::tokens(c) > kBeyond ? kYes : 0; };
    EngineOptions options;
    options.guided = guided;
    drive(lengths, options);
  };
  bool reached = false;
  EXPECT_EXIT(
      run(),
      [&](int status) {
        reached = WIFEXITED(status) && WEXITSTATUS(status) == kYes;
        return WIFEXITED(status) && WEXITSTATUS(status) != 1;
      },
      "");
  return reached;
}

TEST(Engine, IsGuidedBeyondWhatDrawsCanReach) {
  EXPECT_TRUE(reaches_beyond_all_draws(true));
  EXPECT_FALSE(reaches_beyond_all_draws(false));
}

/// A few cases that are drawn, and written as the corpus.
std::vector<Case> drawn_corpus(const GivenFolder& folder, EngineOptions& options) {
  std::vector<Case> corpus;
  const LossSignature signature = fake_policy_loss();
  for (std::uint64_t i = 0; i < 5; ++i) {
    corpus.push_back(draw(signature, Dtype::f16, Profile::hostile, i));
    options.corpus.push_back((folder / (std::to_string(i) + ".case")).string());
    corpora::write_file(options.corpus.back(), corpora::encode(corpus.back(), signature));
  }
  return corpus;
}

TEST(Engine, AsksTheCasesOfTheCorpusFirstAndAsTheyAre) {
  const GivenFolder folder;
  EngineOptions options;
  const std::vector<Case> corpus = drawn_corpus(folder, options);
  options.corpus.insert(options.corpus.begin() + 2, (folder / "nothere.case").string());
  const auto run = [&] {
    Lengths lengths(100);
    lengths.judge = [&](const Case& c) {
      const auto at = static_cast<std::size_t>(lengths.asked());
      if (at == corpus.size()) return kYes;
      return is_same(c, corpus[at]) ? 0 : kNo;
    };
    drive(lengths, options);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kYes), "");
}

TEST(Engine, LeavesOutThoseThatMayNotBeAsked) {
  const GivenFolder folder;
  EngineOptions options;
  const std::vector<Case> corpus = drawn_corpus(folder, options);
  const auto run = [&] {
    Lengths lengths(100);
    lengths.may_be_asked = [&](const Case& c) { return !is_same(c, corpus[0]); };
    lengths.judge = [&](const Case& c) {
      const auto at = static_cast<std::size_t>(lengths.asked()) + 1;
      if (at == corpus.size()) return kYes;
      return is_same(c, corpus[at]) ? 0 : kNo;
    };
    drive(lengths, options);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kYes), "");
}

TEST(Engine, KeepsEachCaseThatShowsSomethingNewOnce) {
  const auto run = [] {
    Lengths lengths(5000);
    lengths.judge = [&](const Case&) {
      return lengths.asked() == 3000 ? (lengths.kept() >= 8 ? kYes : kNo) : 0;
    };
    drive(lengths, {});
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kYes), "");
}

TEST(Engine, DoesNotKeepWhatShowsNothingNew) {
  const auto run = [] {
    EngineOptions options;
    for (std::size_t i = 0; i < 64; ++i) {
      options.seen.push_back(feature(Dtype::f32, Facet::form, 0, i));
    }
    Lengths lengths(5000);
    lengths.judge = [&](const Case&) {
      return lengths.asked() == 1000 ? (lengths.kept() == 0 ? kYes : kNo) : 0;
    };
    drive(lengths, options);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kYes), "");
}

/// Asks a kernel that is instrumented, and has no feature of its own.
class Kernel final : public Target {
 public:
  const LossSignature& signature() const override { return *reference::find_signature("grpo"); }
  Profile profile() const override { return Profile::hostile; }
  bool takes(const Case& /*c*/) const override { return true; }
  Case fresh(std::uint64_t seed) override { return draw(signature(), Dtype::f32, profile(), seed); }

  std::vector<Feature> ask(const Case& c, std::string_view /*text*/) override {
    for (const impl::Implementation& i : impl::catalog(/*with_torch=*/false)) {
      if (i.loss == "grpo" && i.name == "host") i.evaluate(signature(), c);
    }
    if (++asked_ == 500) std::_Exit(kept_ >= 5 && kept_ < 250 ? kYes : kNo);
    return {};
  }
  void keep(std::string_view /*text*/, const std::vector<Feature>& fresh) override {
    if (!fresh.empty()) std::_Exit(kNo);
    ++kept_;
  }

 private:
  int asked_ = 0, kept_ = 0;
};

TEST(Engine, KeepsACaseThatTakesANewEdgeOfAKernel) {
#ifndef LOSSGATE_EDGES
  GTEST_SKIP() << "the kernels are not instrumented";
#endif
  const auto run = [] {
    Kernel kernel;
    drive(kernel, {});
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kYes), "");
}

}  // namespace
}  // namespace lossgate::fuzz
