// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/catalog.h"

#include <ATen/Parallel.h>

void lossgate_register(std::vector<lossgate::impl::Implementation>* implementations) {
  at::set_num_threads(1);
  implementations->push_back(lossgate::impl::grpo_implementation());
}
