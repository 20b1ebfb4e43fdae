// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/cuda/grpo_block.h"
#include "impl/cuda/jsd_block.h"
#include "impl/cuda/log_prob_block.h"
#include "impl/cuda/logits_grpo_block.h"
#include "impl/cuda/sparse_jsd_block.h"
#include "impl/cuda/value_block.h"

struct CUstream_st;

/// Starts a loss's kernels on a stream and waits for nothing: all can be captured in a graph.
/// Arrays lie in the memory of the current device and have been checked. Each is there for float,
/// Bf16 and F16; a Refusal names the kernel that the driver would not start.
namespace lossgate::impl {

using Stream = CUstream_st*;

/// The sum of terms that are there: the last kernel of every loss.
void launch(const TokenArrays& batch, float* loss, Stream stream);

template <class Stored>
void launch(const GrpoArrays<Stored>& arrays, float* loss, Stream stream);

template <class Stored>
void launch(const ValueArrays<Stored>& arrays, float* loss, Stream stream);

template <class Stored>
void launch(const LogProbArrays<Stored>& arrays, float* loss, Stream stream);

template <class Stored>
void launch(const LogitsGrpoArrays<Stored>& arrays, float* loss, Stream stream);

template <class Stored>
void launch(const JsdArrays<Stored>& arrays, float* loss, Stream stream);

template <class Stored>
void launch(const SparseJsdArrays<Stored>& arrays, float* loss, Stream stream);

}  // namespace lossgate::impl
