// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a function is compiled for: maths for both sides, a block program for the device under nvcc
/// and for the host elsewhere.
#ifdef __CUDACC__
#define LOSSGATE_HOST_DEVICE __host__ __device__
#define LOSSGATE_BLOCK_PROGRAM __device__
#else
#define LOSSGATE_HOST_DEVICE
#define LOSSGATE_BLOCK_PROGRAM
#endif
