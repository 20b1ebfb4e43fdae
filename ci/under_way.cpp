// SPDX-License-Identifier: Apache-2.0
#include "ci/under_way.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "ci/errors.h"

namespace lossgate::ci {
namespace {

using Clock = std::chrono::steady_clock;  // the same in all processes

constexpr std::size_t kMostText = std::size_t{8} << 20;

std::int64_t now() { return Clock::now().time_since_epoch().count(); }

}  // namespace

struct UnderWay::Page {
  std::atomic<std::int64_t> sign_of_life;
  std::atomic<std::uint64_t> size;  ///< 0 between two cases
  char text[kMostText];
};

UnderWay::UnderWay() : descriptor_(::memfd_create("lossgate", MFD_CLOEXEC)) {
  if (descriptor_ < 0 || ::ftruncate(descriptor_, sizeof(Page)) != 0) {
    throw MachineError("no memory to share: " + std::generic_category().message(errno));
  }
  map();
}

UnderWay::UnderWay(int descriptor) : descriptor_(descriptor) { map(); }

void UnderWay::map() {
  void* at = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (at == MAP_FAILED) {
    throw MachineError("no memory to share: " + std::generic_category().message(errno));
  }
  page_ = static_cast<Page*>(at);
}

UnderWay::~UnderWay() {
  ::munmap(page_, sizeof(Page));
  ::close(descriptor_);
}

void UnderWay::begin(std::string_view text) {
  progress();
  const std::size_t size = text.size() <= kMostText ? text.size() : 1;
  std::memcpy(page_->text, text.data(), size);
  page_->size = size;
}

void UnderWay::progress() { page_->sign_of_life = now(); }

void UnderWay::end() { page_->size = 0; }

std::string UnderWay::text() const { return {page_->text, page_->size.load()}; }

std::chrono::duration<double> UnderWay::since_sign_of_life() const {
  if (page_->size == 0) return std::chrono::duration<double>(0.0);
  return Clock::duration(now() - page_->sign_of_life);
}

}  // namespace lossgate::ci
