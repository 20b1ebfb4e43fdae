// SPDX-License-Identifier: Apache-2.0
#include "ci/stored_case.h"

#include <gtest/gtest.h>

#include "corpora/files.h"
#include "corpora/given_folder.h"
#include "corpora/safetensors.h"

namespace lossgate::ci {
namespace {

/// A case of GRPO without any of its options, as a trainer may leave them out.
void dump_without_options(const std::filesystem::path& path) {
  const Case seed = corpora::read_case_file(
      LOSSGATE_SOURCE_DIR "/corpora/seeds/grpo/on-policy.case", reference::find_signature);
  corpora::TensorFile file = corpora::read_tensors(corpora::encode_safetensors(seed), "seed");
  std::erase_if(file.metadata, [](const auto& pair) { return pair.first.starts_with("option."); });
  corpora::write_file(path, corpora::write_tensors(file));
}

Selection of_subject(std::vector<std::pair<std::string, OptionValue>> options) {
  auto brought = std::make_shared<Brought>();
  brought->subject.loss = "grpo";
  brought->subject.options = std::move(options);
  Selection selection;
  selection.brought.push_back(std::move(brought));
  return selection;
}

TEST(ReadCase, TakesWhatADumpLeavesOutFromTheSubject) {
  const GivenFolder scratch;
  const auto path = scratch / "step.safetensors";
  dump_without_options(path);
  const auto standard = *reference::find_signature("grpo")->find_option("log_ratio_clamp");
  EXPECT_EQ(*read_case(path, Selection()).spec.find("log_ratio_clamp"), standard.standard);
  const Case c = read_case(path, of_subject({{"log_ratio_clamp", OptionValue(None{})}}));
  EXPECT_EQ(*c.spec.find("log_ratio_clamp"), OptionValue(None{}));
}

TEST(ReadCase, TakesNoValueFromASubjectThatTakesAnyNumber) {
  const GivenFolder scratch;
  const auto path = scratch / "step.safetensors";
  dump_without_options(path);
  const Case c = read_case(path, of_subject({{"log_ratio_clamp", OptionValue(impl::kAnyNumber)}}));
  const auto standard = *reference::find_signature("grpo")->find_option("log_ratio_clamp");
  EXPECT_EQ(*c.spec.find("log_ratio_clamp"), standard.standard);
}

Brought brought_grpo(std::vector<std::pair<std::string, OptionValue>> options) {
  Brought brought;
  brought.loss = *reference::find_loss("grpo");
  brought.subject.loss = "grpo";
  brought.subject.options = std::move(options);
  return brought;
}

Case stored_grpo() {
  return corpora::read_case_file(LOSSGATE_SOURCE_DIR "/corpora/seeds/grpo/on-policy.case",
                                 reference::find_signature);
}

TEST(AtItsOptions, ChangesWhatTheSubjectFixesAndNothingElse) {
  const Case stored = stored_grpo();
  Brought brought = brought_grpo({{"clip_low", OptionValue(0.5)}});
  brought.subject.reductions = {Reduction::sequence_mean};
  brought.subject.tied = {{"clip_high", "clip_low"}};
  const auto own = at_its_options(brought, stored);
  ASSERT_TRUE(own);
  Case expected = stored;
  expected.spec.reduction = Reduction::sequence_mean;
  expected.spec.set("clip_low", OptionValue(0.5));
  expected.spec.set("clip_high", OptionValue(0.5));
  expected.provenance.title += ", under other options";
  expected.provenance.story.clear();
  EXPECT_EQ(own->spec, expected.spec);
  EXPECT_FALSE(stored.provenance.title.empty());
  EXPECT_EQ(corpora::encode_safetensors(*own), corpora::encode_safetensors(expected));
}

TEST(AtItsOptions, IsNoOtherCaseWhereNothingIsFixedOtherwise) {
  const Case stored = stored_grpo();
  EXPECT_FALSE(at_its_options(brought_grpo({}), stored));
  const OptionValue same = *stored.spec.find("clip_low"), any = std::string(impl::kAnyNumber);
  EXPECT_FALSE(at_its_options(brought_grpo({{"clip_low", same}}), stored));
  EXPECT_FALSE(at_its_options(brought_grpo({{"clip_low", any}}), stored));
  EXPECT_FALSE(at_its_options(brought_grpo({{"not_an_option", same}}), stored));
}

TEST(AtItsOptions, IsNoCaseThatTheLossRefuses) {
  EXPECT_FALSE(at_its_options(brought_grpo({{"clip_low", OptionValue(-1.0)}}), stored_grpo()));
}

}  // namespace
}  // namespace lossgate::ci
