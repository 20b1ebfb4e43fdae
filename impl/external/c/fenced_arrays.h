// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lossgate::impl {

/// What stands in memory that nobody has written: NaN in every floating-point format, with digits
/// that no operation makes.
inline constexpr std::uint16_t kUnwritten = 0xfff5;

/// The memory of one call's arrays. Between an array and the next one lie words that are known,
/// and pages that nobody may touch.
class FencedArrays {
 public:
  FencedArrays() = default;
  ~FencedArrays();
  FencedArrays(const FencedArrays&) = delete;
  FencedArrays& operator=(const FencedArrays&) = delete;

  /// Room for an array, unwritten, `shift` bytes behind a multiple of 64. Its end is at most 63
  /// bytes before a page that nobody may touch. Throws std::bad_alloc.
  std::byte* add(std::string_view name, std::size_t bytes, std::size_t shift);

  /// Forgets the arrays; their memory will be used again.
  void clear() { used_ = 0; }

  /// The first place beside an array where something was written.
  std::optional<std::string> trespass() const;

  /// Where an address lies: "behind the end of 'mask'"; empty where in none of the fences.
  /// Allocates nothing, for it is asked in a signal handler.
  struct Place {
    const char* side = nullptr;
    const char* array = nullptr;
  };
  Place place_of(const void* address) const;

 private:
  struct Fence {
    std::byte* pages = nullptr;  ///< the first that may be written
    std::size_t room = 0;
    std::byte* start = nullptr;
    std::size_t bytes = 0;
    std::string name;

    std::byte* end() const { return pages + room; }
    std::byte* before() const;  ///< where the known words before the array begin
  };

  std::vector<Fence> fences_;
  std::size_t used_ = 0;
};

/// From now on, a fault at an address in one of the fences is told on standard error before it ends
/// the process. For a process that has no other use.
void tell_faults(const FencedArrays& arrays);

}  // namespace lossgate::impl
