// SPDX-License-Identifier: Apache-2.0
#include "ci/under_way.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "ci/errors.h"
#include "fuzz/engine.h"

namespace lossgate::ci {
namespace {

using Clock = std::chrono::steady_clock;  // the same in all processes

std::int64_t now() { return Clock::now().time_since_epoch().count(); }

}  // namespace

struct UnderWay::Page {
  std::atomic<std::int64_t> sign_of_life;
  std::atomic<bool> asking, explaining;
  std::atomic<std::uint64_t> size;
  char text[fuzz::kMostText];
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
  const std::size_t size = text.size() <= fuzz::kMostText ? text.size() : 0;
  if (size > 0) std::memcpy(page_->text, text.data(), size);
  page_->size = size;
  page_->asking = true;
}

void UnderWay::progress() { page_->sign_of_life = now(); }

void UnderWay::end() {
  page_->asking = false;
  page_->size = 0;
}

void UnderWay::explain(bool begins) { page_->explaining = begins; }

bool UnderWay::explaining() const { return page_->explaining; }

bool UnderWay::asking() const { return page_->asking; }

std::string UnderWay::text() const { return {page_->text, page_->size.load()}; }

std::chrono::duration<double> UnderWay::since_sign_of_life() const {
  if (!asking()) return std::chrono::duration<double>(0.0);
  return Clock::duration(now() - page_->sign_of_life);
}

}  // namespace lossgate::ci
