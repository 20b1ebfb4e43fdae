// SPDX-License-Identifier: Apache-2.0
#include "ci/devices.h"

#include <gtest/gtest.h>

#include "properties/verdict.h"

namespace lossgate::ci {
namespace {

/// A subject on two devices, of which the GPU has a finding.
report::RunRecord two_devices() {
  report::RunRecord record;
  for (const char* device : {"cuda", "cpu"}) {
    report::Subject& subject = record.subjects.emplace_back();
    subject.loss = "grpo";
    subject.device = device;
    subject.name = std::string("mine@") + device;
  }
  report::RecordedFinding& finding = record.findings.emplace_back();
  finding.loss = "grpo";
  finding.implementation = "mine@cuda";
  finding.property = "finite_backward";
  finding.dtype = "f32";
  finding.cause = "clamp after exp";
  finding.detail = "it is nan";
  return record;
}

TEST(Devices, SayThatAnotherOneHolds) {
  report::RunRecord record = two_devices();
  compare_devices(record);
  EXPECT_EQ(record.findings[0].detail, "it is nan; on cpu it holds");
}

TEST(Devices, SayThatAnotherOneShowsTheSame) {
  report::RunRecord record = two_devices();
  record.findings.push_back(record.findings[0]);
  record.findings[1].implementation = "mine@cpu";
  compare_devices(record);
  EXPECT_EQ(record.findings[0].detail, "it is nan; on cpu the same");
  EXPECT_EQ(record.findings[1].detail, "it is nan; on cuda the same");
}

TEST(Devices, SayThatAnotherOneFailsOtherwise) {
  report::RunRecord record = two_devices();
  cell(record, "grpo", "mine@cpu", "f32", "finite_backward")
      .verdicts[static_cast<std::size_t>(properties::Verdict::violated)] = 1;
  compare_devices(record);
  EXPECT_EQ(record.findings[0].detail, "it is nan; on cpu for another cause");
}

TEST(Devices, SayNothingOfASubjectThatHasOne) {
  report::RunRecord record = two_devices();
  record.subjects[0].name = record.findings[0].implementation = "mine";
  compare_devices(record);
  EXPECT_EQ(record.findings[0].detail, "it is nan");
}

}  // namespace
}  // namespace lossgate::ci
