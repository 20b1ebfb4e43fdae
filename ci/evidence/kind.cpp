// SPDX-License-Identifier: Apache-2.0
#include "ci/evidence/kind.h"

namespace lossgate::ci::evidence {

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"alarms",
       "Sound implementations in hostile cases on which nothing was calibrated: is one accused?",
       alarms},
      {"bias",
       "The mean of signed error ratios over many benign cases: what systematic error, too small "
       "for "
       "any one case, would it show?",
       bias},
      {"bounds",
       "The reference and two evaluations in a declared arithmetic against MPFR with 256 bits: is "
       "the truth inside the bounds, and how wide are they?",
       bounds},
      {"buckets",
       "Many failures of each implementation that is wrong on purpose: are those of one cause "
       "taken for one, and those of two for two?",
       buckets},
      {"filter",
       "Verdicts with the filter in double and without it, of sound implementations and of wrong "
       "ones: is one of them another?",
       filter},
      {"gated",
       "Losses that are brought, under hostile cases until a gate notices something: those of "
       "--config.",
       gated},
      {"null_answers",
       "Answers that say nothing of the input, given in place of a sound implementation's: does a "
       "gate accept one?",
       null_answers},
      {"recall",
       "Implementations that are wrong on purpose: how many hostile cases, and how much time, "
       "until "
       "a gate notices, and what benign cases show.",
       recall},
      {"sensitivity",
       "Faults of any size put into a sound implementation's answer: the smallest that is noticed, "
       "and the smallest that the bounds imply.",
       sensitivity},
  };
  return all;
}

}  // namespace lossgate::ci::evidence
