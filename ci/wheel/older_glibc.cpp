// SPDX-License-Identifier: Apache-2.0
// Lets the wheel run on glibc 2.34, the oldest that a build on Debian 12 can reach: the runtime
// libraries of GCC, linked in statically, ask for two newer functions, which are written here with
// older ones.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

struct Search {
  ElfW(Addr) address;
  dl_find_object* found;
};

int look(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const ElfW(Phdr)* unwinding = nullptr;
  bool here = false;
  for (ElfW(Half) i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const ElfW(Addr) start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_EH_FRAME) unwinding = &header;
    here = here || (header.p_type == PT_LOAD && search->address >= start &&
                    search->address - start < header.p_memsz);
  }
  if (!here || !unwinding) return 0;
  search->found->dlfo_eh_frame = reinterpret_cast<void*>(info->dlpi_addr + unwinding->p_vaddr);
  return 1;
}

}  // namespace

/// Of glibc 2.35, for exceptions. Fills the one field that the unwinder reads.
extern "C" int _dl_find_object(void* address, dl_find_object* found) noexcept {
  *found = {};
  Search search{reinterpret_cast<ElfW(Addr)>(address), found};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

/// Of glibc 2.36, for std::random_device.
extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) std::abort();
  return number;
}
