/* SPDX-License-Identifier: Apache-2.0 */
/* A loss in a shared library, as lossgate asks it: impl/external/README.md. C99 or C++. */
#ifndef LOSSGATE_H
#define LOSSGATE_H
#include <stdint.h>

#define LOSSGATE_VERSION 1
enum { LOSSGATE_F64, LOSSGATE_F32, LOSSGATE_F16, LOSSGATE_BF16 }; /* dtypes; then: */
enum { LOSSGATE_I64 = 4, LOSSGATE_I32, LOSSGATE_U8, LOSSGATE_BOOL };
enum { LOSSGATE_DONE, LOSSGATE_NOT_COMPUTED, LOSSGATE_REFUSED }; /* what a loss returns */

typedef struct lossgate_array { /* in host memory, dense, the last axis fastest */
  const char* name;
  int32_t dtype, ndim;
  const int64_t* extents;
  void* data;
} lossgate_array;

typedef struct lossgate_call {
  /* A field, or what is to be filled: "loss", "gradient.FIELD", other outputs by their names. */
  const lossgate_array* (*array)(const struct lossgate_call* call, const char* name);
  /* An option, a fact such as "total_tokens", or "upstream"; NaN stands for none. */
  double (*number)(const struct lossgate_call* call, const char* name);
  /* A choice, or "reduction"; a number is its digits, and nothing is "none". */
  const char* (*word)(const struct lossgate_call* call, const char* name);
  char message[256]; /* why it is not computed, or refused */
} lossgate_call;

typedef struct lossgate_declaration {
  int32_t version, line;
  const char *file, *takes;
} lossgate_declaration;

#ifdef __cplusplus
#define LOSSGATE_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define LOSSGATE_EXPORT extern __attribute__((visibility("default")))
#endif

/* LOSSGATE_LOSS(ours, "log_prob mask clip_low") { ... return LOSSGATE_DONE; }
 * `takes` names the fields, options and facts that it reads; "*" stands for all. */
#define LOSSGATE_LOSS(function, takes)                                                            \
  LOSSGATE_EXPORT const lossgate_declaration function##_lossgate;                                 \
  const lossgate_declaration function##_lossgate = {LOSSGATE_VERSION, __LINE__, __FILE__, takes}; \
  LOSSGATE_EXPORT int function(lossgate_call* call);                                              \
  int function(lossgate_call* call)
#endif
