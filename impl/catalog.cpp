// SPDX-License-Identifier: Apache-2.0
#include "impl/catalog.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "impl/cuda/grpo_host.h"
#include "impl/cuda/kernels.h"
#include "impl/faulty/cispo.h"
#include "impl/faulty/cross_entropy.h"
#include "impl/faulty/dft.h"
#include "impl/faulty/dpo.h"
#include "impl/faulty/dppo.h"
#include "impl/faulty/dro.h"
#include "impl/faulty/entropy_bonus.h"
#include "impl/faulty/gmpo.h"
#include "impl/faulty/grpo.h"
#include "impl/faulty/jsd.h"
#include "impl/faulty/kl_penalty.h"
#include "impl/faulty/kto.h"
#include "impl/faulty/linear_cross_entropy.h"
#include "impl/faulty/linear_grpo.h"
#include "impl/faulty/log_prob.h"
#include "impl/faulty/operations.h"
#include "impl/faulty/orpo.h"
#include "impl/faulty/reinforce.h"
#include "impl/faulty/sapo.h"
#include "impl/faulty/sparse_jsd.h"
#include "impl/faulty/value_clip.h"
#include "impl/faulty/vespo.h"

namespace lossgate::impl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "liblossgate_torch.so";

void append(std::vector<Implementation>& all, std::vector<Implementation> more) {
  std::ranges::move(more, std::back_inserter(all));
}

/// What is always there.
std::vector<Implementation> built_in() {
  std::vector<Implementation> all;
  all.push_back(grpo_host());
  append(all, grpo_kernels());
  append(all, value_clip_kernels());
  append(all, log_prob_kernels());
  append(all, jsd_kernels());
  append(all, sparse_jsd_kernels());
  append(all, linear_grpo_kernels());
  append(all, linear_jsd_kernels());
  append(all, eager_grpo_implementations());
  append(all, faulty_grpo_implementations());
  append(all, reinforce_implementations());
  append(all, dro_implementations());
  append(all, cispo_implementations());
  append(all, dppo_implementations());
  append(all, sapo_implementations());
  append(all, vespo_implementations());
  append(all, gmpo_implementations());
  append(all, jsd_implementations());
  append(all, sparse_jsd_implementations());
  append(all, log_prob_implementations());
  append(all, cross_entropy_implementations());
  append(all, dft_implementations());
  append(all, entropy_bonus_implementations());
  append(all, kl_penalty_implementations());
  append(all, value_clip_implementations());
  append(all, dpo_implementations());
  append(all, kto_implementations());
  append(all, orpo_implementations());
  append(all, linear_grpo_implementations());
  append(all, linear_cross_entropy_implementations());
  append(all, advantage_scaling_implementations());
  append(all, group_advantage_implementations());
  append(all, gae_implementations());
  append(all, whitening_implementations());
  append(all, rollout_correction_implementations());
  append(all, prompt_dedup_implementations());
  append(all, teacher_payload_implementations());
  return all;
}

std::vector<Implementation> sound_first(const std::vector<Implementation>& all) {
  std::vector<Implementation> sorted;
  for (bool faulty : {false, true}) {
    std::ranges::copy_if(all, std::back_inserter(sorted), [faulty](const Implementation& i) {
      return i.fault.has_value() == faulty;
    });
  }
  return sorted;
}

struct Torch {
  std::vector<Implementation> implementations;
  std::string status;
};

Torch open_torch() {
  const std::string path = torch_library();
  if (path.empty()) return {{}, std::string(kLibrary) + " is not beside the program"};
  // Never closed: the implementations point into it.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return {{}, dlerror()};
  using Register = void (*)(std::vector<Implementation>*);
  const auto add = reinterpret_cast<Register>(dlsym(library, "lossgate_register"));
  if (!add) return {{}, path + " has no lossgate_register"};
  Torch torch;
  add(&torch.implementations);
  return torch;
}

const Torch& torch() {
  static const Torch opened = open_torch();
  return opened;
}

std::vector<Implementation> build(bool with_torch) {
  std::vector<Implementation> all = built_in();
  if (with_torch) append(all, torch().implementations);
  return sound_first(all);
}

}  // namespace

const std::vector<Implementation>& catalog(bool with_torch) {
  if (!with_torch) {
    static const std::vector<Implementation> own = build(false);
    return own;
  }
  static const std::vector<Implementation> all = build(true);
  return all;
}

std::string_view torch_status() { return torch().status; }

std::string torch_library() {
  const char* named = std::getenv("LOSSGATE_TORCH_LIBRARY");
  if (named && *named) return named;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder : {program, program.parent_path() / "lib" / "lossgate"}) {
    if (fs::is_regular_file(folder / kLibrary, ignored)) return (folder / kLibrary).string();
  }
  return "";
}

}  // namespace lossgate::impl
