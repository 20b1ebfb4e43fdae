// SPDX-License-Identifier: Apache-2.0
#include "impl/external/c/fenced_arrays.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace lossgate::impl {
namespace {

constexpr std::size_t kAlignment = 64;
/// Known words before an array: more would cost time, and a stray write that goes farther is seen
/// by luck alone.
constexpr std::size_t kBefore = 1024;

/// Of pages that nobody may touch, on either side: they cost addresses, no memory.
constexpr std::size_t kForbidden = std::size_t{1} << 20;

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

/// Byte by byte, so that it does not matter where a region begins.
std::byte unwritten_at(const std::byte* address) {
  const bool odd = reinterpret_cast<std::uintptr_t>(address) % 2 != 0;
  return static_cast<std::byte>(odd ? kUnwritten >> 8 : kUnwritten & 0xff);
}

bool all_unwritten(const std::byte* begin, const std::byte* end) {
  for (; begin < end; ++begin) {
    if (*begin != unwritten_at(begin)) return false;
  }
  return true;
}

const FencedArrays* told = nullptr;

void say(const char* text) {
  [[maybe_unused]] const ssize_t written = ::write(2, text, std::strlen(text));
}

void tell_fault(int signal, siginfo_t* info, void*) {
  const FencedArrays::Place place = told->place_of(info->si_addr);
  if (place.side) {
    say("it reached ");
    say(place.side);
    say(" of '");
    say(place.array);
    say("'\n");
  }
  ::raise(signal);  // the handler is reset, so this ends the process when it returns
}

}  // namespace

std::byte* FencedArrays::Fence::before() const {
  return std::max(pages, start - std::min<std::ptrdiff_t>(kBefore, start - pages));
}

FencedArrays::~FencedArrays() {
  for (const Fence& fence : fences_) {
    ::munmap(fence.pages - kForbidden, fence.room + 2 * kForbidden);
  }
}

std::byte* FencedArrays::add(std::string_view name, std::size_t bytes, std::size_t shift) {
  if (used_ == fences_.size()) fences_.emplace_back();
  Fence& fence = fences_[used_];
  const std::size_t page = page_size(), needed = bytes + shift + 2 * kAlignment;
  if (fence.room < needed) {
    if (fence.pages) ::munmap(fence.pages - kForbidden, fence.room + 2 * kForbidden);
    fence = {};
    const std::size_t room = (needed + page - 1) / page * page;
    void* map = ::mmap(nullptr, room + 2 * kForbidden, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    std::byte* pages = static_cast<std::byte*>(map) + kForbidden;
    if (::mprotect(pages, room, PROT_READ | PROT_WRITE) != 0) {
      ::munmap(map, room + 2 * kForbidden);
      throw std::bad_alloc();
    }
    fence.pages = pages;
    fence.room = room;
  }
  ++used_;
  fence.name = name;
  fence.bytes = bytes;
  const std::size_t last = (fence.room - bytes - shift) / kAlignment * kAlignment;
  fence.start = fence.pages + last + shift;
  for (std::byte* at = fence.before(); at < fence.end(); ++at) *at = unwritten_at(at);
  return fence.start;
}

std::optional<std::string> FencedArrays::trespass() const {
  for (std::size_t i = 0; i < used_; ++i) {
    const Fence& fence = fences_[i];
    if (!all_unwritten(fence.before(), fence.start)) {
      return "before the beginning of '" + fence.name + "'";
    }
    if (!all_unwritten(fence.start + fence.bytes, fence.end())) {
      return "behind the end of '" + fence.name + "'";
    }
  }
  return std::nullopt;
}

FencedArrays::Place FencedArrays::place_of(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  for (std::size_t i = 0; i < used_; ++i) {
    const Fence& fence = fences_[i];
    if (at < fence.pages - kForbidden || at >= fence.end() + kForbidden) continue;
    if (at < fence.start) return {"before the beginning", fence.name.c_str()};
    if (at >= fence.start + fence.bytes) return {"behind the end", fence.name.c_str()};
  }
  return {};
}

void tell_faults(const FencedArrays& arrays) {
  told = &arrays;
  // A stack of its own, for a fault may be that the other one is full.
  static std::array<std::byte, 1 << 16> stack;
  stack_t alternative{};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  ::sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = tell_fault;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND);
  for (const int signal : {SIGSEGV, SIGBUS}) ::sigaction(signal, &action, nullptr);
  // Whatever this program is built with, a division by zero ends the process as one.
  for (const int ending : {SIGFPE, SIGILL}) ::signal(ending, SIG_DFL);
}

}  // namespace lossgate::impl
