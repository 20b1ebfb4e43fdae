// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/advantage_scaling.h"
#include "reference/losses/cispo.h"
#include "reference/losses/cross_entropy.h"
#include "reference/losses/dft.h"
#include "reference/losses/dpo.h"
#include "reference/losses/dppo.h"
#include "reference/losses/dro.h"
#include "reference/losses/entropy_bonus.h"
#include "reference/losses/gae.h"
#include "reference/losses/gmpo.h"
#include "reference/losses/group_advantage.h"
#include "reference/losses/grpo.h"
#include "reference/losses/jsd.h"
#include "reference/losses/kl_penalty.h"
#include "reference/losses/kto.h"
#include "reference/losses/linear_cross_entropy.h"
#include "reference/losses/linear_grpo.h"
#include "reference/losses/linear_jsd.h"
#include "reference/losses/log_prob.h"
#include "reference/losses/orpo.h"
#include "reference/losses/prompt_dedup.h"
#include "reference/losses/reinforce.h"
#include "reference/losses/rollout_correction.h"
#include "reference/losses/sapo.h"
#include "reference/losses/sparse_jsd.h"
#include "reference/losses/teacher_payload.h"
#include "reference/losses/value_clip.h"
#include "reference/losses/vespo.h"
#include "reference/losses/whitening.h"

namespace lossgate::reference {

/// All losses, in the order in which they are listed. A loss is a type with
///   static LossSignature signature();
///   template <class S> static void evaluate(const Inputs<S>&, const Outputs<S>&);
template <class... Losses>
struct LossList {
  /// Calls f.template operator()<Loss>() for every loss.
  template <class F>
  static void for_each(F&& f) {
    (f.template operator()<Losses>(), ...);
  }
};

using Catalog =
    LossList<Grpo, Reinforce, Dro, Cispo, Dppo, Sapo, Vespo, Gmpo, KlPenalty, EntropyBonus,
             ValueClip, Dpo, Kto, Orpo, LogProb, CrossEntropy, Dft, Jsd, SparseJsd, LinearGrpo,
             LinearCrossEntropy, LinearJsd, AdvantageScaling, GroupAdvantage, Gae, Whitening,
             RolloutCorrection, PromptDedup, TeacherPayload>;

}  // namespace lossgate::reference
