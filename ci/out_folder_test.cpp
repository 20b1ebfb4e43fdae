// SPDX-License-Identifier: Apache-2.0
#include "ci/out_folder.h"

#include <gtest/gtest.h>

#include "ci/errors.h"
#include "corpora/files.h"
#include "corpora/given_folder.h"
#include "corpora/text_codec.h"
#include "fuzz/draw_case.h"
#include "reference/reference.h"
#include "report/given_record.h"

namespace lossgate::ci {
namespace {

TEST(OutFolder, TellsInOneFileOfTheFindingsOnOneCase) {
  const GivenFolder scratch;
  const LossSignature& signature = *reference::find_signature("grpo");
  fuzz::Choices choices(1);
  Case c = draw_case(signature, Dtype::f32, fuzz::Profile::hostile, choices);
  report::RunRecord record = report::record_of(2);
  for (report::RecordedFinding& finding : record.findings) {
    c.provenance.story = "violated by " + finding.fingerprint;
    finding.case_text = corpora::encode(c, signature);
  }
  write_out(scratch.path(), record);
  const Case stored = corpora::read_case_file(scratch.path() / record.findings[0].case_file,
                                              reference::find_signature);
  EXPECT_EQ(stored.provenance.story, "violated by " + record.findings[0].fingerprint +
                                         "\nviolated by " + record.findings[1].fingerprint);
  EXPECT_EQ(stored.batch, c.batch);
}

TEST(OutFolder, OfAGateIsNoCampaigns) {
  const GivenFolder scratch;
  EXPECT_NO_THROW(refuse_record_of_gate(scratch.path() / "nothere"));
  corpora::write_file(scratch.path() / "run.json", "a gate's record");
  EXPECT_THROW(refuse_record_of_gate(scratch.path()), InputError);
  corpora::write_file(scratch.path() / "journal", "a campaign's state");
  EXPECT_NO_THROW(refuse_record_of_gate(scratch.path()));
}

TEST(OutFolder, IsRefusedWhereAFileIsInItsWay) {
  const GivenFolder scratch;
  const std::filesystem::path file = scratch.path() / "file";
  corpora::write_file(file, "text");
  EXPECT_NO_THROW(check_out(scratch.path()));
  EXPECT_NO_THROW(check_out(scratch.path() / "new/below"));
  EXPECT_THROW(check_out(file), InputError);
  EXPECT_THROW(check_out(file / "below"), InputError);
}

}  // namespace
}  // namespace lossgate::ci
