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

  /// The case as a file; empty, or larger than fuzz::kMostText, where the text is not kept.
  void begin(std::string_view text);
  void progress();  ///< a sign of life
  void end();
  void explain(bool begins);  ///< what a case has shown, until it is told

  bool explaining() const;
  bool asking() const;                                       ///< not between two cases
  std::string text() const;                                  ///< empty where there is none
  std::chrono::duration<double> since_sign_of_life() const;  ///< 0 between two cases

 private:
  struct Page;
  void map();

  int descriptor_ = -1;
  Page* page_ = nullptr;
};

}  // namespace lossgate::ci
