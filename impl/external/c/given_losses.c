/* SPDX-License-Identifier: Apache-2.0 */
/* Losses as users bring them in a shared library: one that is sound, some that are not, and some that
 * do not even answer. All are value_clip with the mean over valid tokens and no clip, in f32. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "lossgate.h"

#define TAKES "value return mask total_tokens"

typedef struct {
  const float *value, *target;
  const unsigned char* mask;
  float *loss, *gradient, *per_token;
  int64_t count, valid;
} batch;

static batch read_batch(const lossgate_call* call) {
  const lossgate_array* value = call->array(call, "value");
  batch b = {value->data,
             call->array(call, "return")->data,
             call->array(call, "mask")->data,
             call->array(call, "loss")->data,
             call->array(call, "gradient.value")->data,
             call->array(call, "per_token")->data,
             1,
             0};
  for (int i = 0; i < value->ndim; ++i) b.count *= value->extents[i];
  for (int64_t i = 0; i < b.count; ++i) b.valid += b.mask[i] != 0;
  return b;
}

static int compute(lossgate_call* call, double scale) {
  const batch b = read_batch(call);
  double sum = 0, upstream = call->number(call, "upstream");
  for (int64_t i = 0; i < b.count; ++i) {
    const double d = b.mask[i] ? (double)b.value[i] - b.target[i] : 0;
    b.per_token[i] = (float)(0.5 * d * d);
    sum += 0.5 * d * d;
    b.gradient[i] = (float)(d * scale * upstream);
  }
  *b.loss = (float)(sum * scale);
  return LOSSGATE_DONE;
}

static double global_mean(const lossgate_call* call) {
  return 1 / fmax(1, call->number(call, "total_tokens"));
}

static int odd(const lossgate_call* call) { return read_batch(call).valid % 2 == 1; }

LOSSGATE_LOSS(sound, TAKES) { return compute(call, global_mean(call)); }
LOSSGATE_LOSS(over_all_positions, TAKES) { return compute(call, 1.0 / read_batch(call).count); }
LOSSGATE_LOSS(over_own_tokens, TAKES) { return compute(call, 1 / fmax(1, read_batch(call).valid)); }
LOSSGATE_LOSS(empty_divisor, TAKES) { return compute(call, 1.0 / read_batch(call).valid); }
LOSSGATE_LOSS(half_the_gradient, TAKES) {
  const batch b = read_batch(call);
  compute(call, global_mean(call));
  for (int64_t i = 0; i < b.count; ++i) b.gradient[i] /= 2;
  return LOSSGATE_DONE;
}
LOSSGATE_LOSS(takes_no_facts, "value return mask") {
  return compute(call, 1 / fmax(1, read_batch(call).valid));
}

LOSSGATE_LOSS(asks_for_memory, TAKES) {
  volatile char* scratch = malloc((size_t)1 << 30); /* which no optimizer leaves out */
  if (!scratch) {
    snprintf(call->message, sizeof call->message, "no gigabyte is left");
    return LOSSGATE_REFUSED;
  }
  scratch[1 << 20] = 1;
  free((void*)scratch);
  return compute(call, global_mean(call));
}

/* As what is compiled with -ffast-math does when it is loaded. */
static void flush_to_zero(void) {
#if defined(__SSE2__)
  _mm_setcsr(_mm_getcsr() | 0x8000);
#elif defined(__aarch64__)
  uint64_t word;
  __asm__ volatile("mrs %0, fpcr" : "=r"(word));
  __asm__ volatile("msr fpcr, %0" : : "r"(word | 1 << 24));
#endif
}

LOSSGATE_LOSS(flushes_once, TAKES) {
  static int begun;
  if (!begun++) flush_to_zero();
  return compute(call, global_mean(call));
}

LOSSGATE_LOSS(loads_once, TAKES) {
  static int begun;
  if (!begun++ && dlopen("libresolv.so.2", RTLD_NOW)) flush_to_zero();
  return compute(call, global_mean(call));
}

/* What goes wrong for an odd number of valid tokens, so that a run shows that it goes on. */
#define IF_ODD(name, what)                  \
  LOSSGATE_LOSS(name, TAKES) {              \
    const int odd_count = odd(call);        \
    const batch b = read_batch(call);       \
    (void)b;                                \
    compute(call, global_mean(call));       \
    if (odd_count) {                        \
      what;                                 \
    }                                       \
    return LOSSGATE_DONE;                   \
  }
IF_ODD(segfaults, *(volatile int*)8 = 1)
IF_ODD(aborts, abort())
IF_ODD(divides, raise(SIGFPE))
IF_ODD(exits, _exit(7))
IF_ODD(exits_well, exit(0))
IF_ODD(hangs, for (;;) pause())
IF_ODD(spins, for (volatile int i = 0;;) i = 1 - i)
IF_ODD(leaves_a_child, if (fork() == 0) for (;;) pause(); for (;;) pause())
IF_ODD(closes, for (int i = 3; i < 64; ++i) close(i))
IF_ODD(answers_garbage, for (int i = 3; i < 64; ++i) if (write(i, "garbage ", 8) < 0) continue)
IF_ODD(overruns, memset(b.gradient, 0, sizeof(float) * (size_t)(b.count + 3)))
IF_ODD(underruns, b.gradient[-2] = 1)
IF_ODD(runs_away, memset(b.gradient, 0, 1 << 20))
IF_ODD(reads_away, *b.loss += b.value[1 << 12])
IF_ODD(writes_inputs, ((float*)(uintptr_t)b.target)[0] += 1)
IF_ODD(rounds_upward, fesetround(FE_UPWARD))
IF_ODD(flushes, flush_to_zero())
IF_ODD(returns_garbage, return 700)
IF_ODD(leaves_loss, memcpy(b.loss, "\365\377\365\377", 4))
IF_ODD(refuses, snprintf(call->message, sizeof call->message, "%d is odd", (int)b.valid);
       return LOSSGATE_REFUSED)
IF_ODD(does_not_compute, strcpy(call->message, "even counts alone"); return LOSSGATE_NOT_COMPUTED)
IF_ODD(says_no_utf_8, strcpy(call->message, "\377\376"); return LOSSGATE_REFUSED)
IF_ODD(overflows_the_stack, char deep[1 << 26]; for (size_t i = 0; i < sizeof deep; i += 512)
                                ((volatile char*)deep)[i] = 1)

LOSSGATE_LOSS(prints, TAKES) {
  printf("to standard output\n");
  fflush(stdout);
  if (write(1, "and past it\n", 12) < 0 || getchar() != EOF) return 1;
  return compute(call, global_mean(call));
}
LOSSGATE_LOSS(forks, TAKES) {
  fork(); /* both return */
  return compute(call, global_mean(call));
}
LOSSGATE_LOSS(leaves_gradient, TAKES) {
  const batch b = read_batch(call);
  float* kept = malloc(sizeof(float) * (size_t)(b.count + 1));
  memcpy(kept, b.gradient, sizeof(float) * (size_t)b.count);
  compute(call, global_mean(call));
  for (int64_t i = 1; i < b.count; i += 2) b.gradient[i] = kept[i];
  free(kept);
  return LOSSGATE_DONE;
}
LOSSGATE_LOSS(asks_for_more, TAKES) {
  return call->array(call, "old_value") ? LOSSGATE_DONE : compute(call, global_mean(call));
}
LOSSGATE_LOSS(asks_for_what_is_not, TAKES) { return (int)*(float*)call->array(call, "valeu")->data; }
LOSSGATE_LOSS(asks_for_a_number, TAKES " clip_form") {
  return (int)call->number(call, "clip_form") + compute(call, global_mean(call));
}
LOSSGATE_LOSS(misspells, "value retrun mask") { return compute(call, 1); }

int undeclared(const float* value);
int undeclared(const float* value) { return (int)*value; }

extern const lossgate_declaration newer_lossgate;
const lossgate_declaration newer_lossgate = {LOSSGATE_VERSION + 1, 1, "newer.c", TAKES};
int newer(lossgate_call* call);
int newer(lossgate_call* call) { return compute(call, 1); }
