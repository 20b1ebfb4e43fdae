// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace lossgate::ci {

/// The case that a process is asking right now, in memory that outlives it: whoever watches sees
/// what crashed it, or what it hangs on, and nobody has to be told of each case.
class UnderWay {
 public:
  UnderWay();                         ///< new memory; throws MachineError
  explicit UnderWay(int descriptor);  ///< that of another process
  ~UnderWay();
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  int descriptor() const { return descriptor_; }

  void begin(std::string_view text);  ///< one that is too large is not kept
  void progress();                    ///< a sign of life
  void end();

  std::string text() const;                                  ///< empty between two cases
  std::chrono::duration<double> since_sign_of_life() const;  ///< 0 between two cases

 private:
  struct Page;
  void map();

  int descriptor_ = -1;
  Page* page_ = nullptr;
};

}  // namespace lossgate::ci
