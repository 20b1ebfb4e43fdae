/* SPDX-License-Identifier: Apache-2.0 */
/* The fused losses for whoever has memory and, on a GPU, a stream: no framework is linked. Arrays
 * and options go by the names of `lossgate describe LOSS`. C99 or C++. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOSSGATE_FUSED_VERSION 1

/* [sequences, tokens], or [sequences, tokens, n] with the last axis dense. Strides are in elements.
 */
typedef struct {
  const char* name;
  void* data;
  int32_t dtype; /* f64, f32, f16, bf16, i64, i32, u8, bool, from 0 on */
  int64_t sequence_stride, token_stride;
} lossgate_fused_array;

typedef struct {
  const char* name;
  const char* choice; /* NULL where it is a number */
  double number;      /* NaN: none */
} lossgate_fused_option;

typedef struct {
  const char* loss; /* grpo, value_clip, log_prob, jsd, sparse_jsd, logits_grpo */
  const char* reduction;
  int64_t sequences, tokens, vocab, support;
  int64_t total_tokens, total_sequences; /* of the whole step */
  /* The fields; "loss" (f32, one number) and the outputs; "gradient.FIELD" where it is asked for,
   * with "upstream" (f32, one number; 1 where it is absent); and for the time of the call
   * "weighted" [sequences, tokens], "row_tokens" [sequences] and what lossgate_fused_memory names.
   */
  const lossgate_fused_array* arrays;
  size_t array_count;
  const lossgate_fused_option* options;
  size_t option_count;
  int32_t device; /* of a GPU; -1: the arrays are in the host's memory */
  void* stream;
  char message[256]; /* why it was refused: the argument at fault comes first */
} lossgate_fused_call;

/* 0: computed on the host, or started on the stream, for which nothing waits. 1: refused. */
__attribute__((visibility("default"))) int lossgate_fused(lossgate_fused_call* call);

/* The [sequences, tokens] arrays of f32 that a loss needs besides, separated by spaces; NULL: no
 * such loss. */
__attribute__((visibility("default"))) const char* lossgate_fused_memory(const char* loss);

/* Whether this library holds the form for a GPU. */
__attribute__((visibility("default"))) int lossgate_fused_has_device_form(void);

#ifdef __cplusplus
}
#endif
