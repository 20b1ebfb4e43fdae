// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "corpora/safetensors.h"
#include "impl/external/c/fenced_arrays.h"
#include "impl/external/c/library.h"
#include "reference/spec/signature.h"
#include "reference/spec/tensor.h"

namespace lossgate::impl {

/// What a `hello` says of the loss, as far as a shared library needs it.
struct LibraryLoss {
  struct Array {
    std::string name;
    std::vector<Axis> axes;
    bool differentiable = false;   ///< of a field
    std::optional<Dtype> dtype{};  ///< of an output, where it does not follow the fields
  };
  std::string id;
  std::vector<Array> fields, outputs;
  std::vector<std::string> options;
  bool scalar = false;  ///< whether it has a loss, not outputs alone
};

/// One call of a function in a shared library: the arrays and numbers that it is given, what it
/// asked for, and what it left behind.
class LibraryCall {
 public:
  /// Lays out the tensors and numbers of a `step`. Throws SubjectError where outputs cannot be
  /// sized. `arrays` must not be used for another call before this one is over.
  LibraryCall(const LibraryFunction& function, const LibraryLoss& loss,
              const std::set<std::string, std::less<>>& taken, const corpora::TensorFile& step,
              FencedArrays& arrays);
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;

  /// Calls the function; what it returns.
  int run() { return function_.call(&face_); }

  /// What it asked for and does not take, or what does not exist.
  const std::string& complaint() const { return complaint_; }
  /// What it said before it returned.
  std::string message() const;
  /// The fields whose bits changed.
  std::vector<std::string> mutated() const;

  struct Filled {
    std::vector<std::pair<std::string, Tensor>> tensors;
    std::string complaint;  ///< what is not written and should be
    std::string output;     ///< of the complaint
  };
  Filled filled() const;

 private:
  /// What the library sees; its functions find the call behind it.
  struct Face : lossgate_call {
    LibraryCall* self = nullptr;
  };
  struct Laid {
    std::string name;
    Dtype dtype;
    Extents extents;
    std::byte* data = nullptr;
    const Tensor* input = nullptr;  ///< null: to be filled
    bool required = false;
    lossgate_array face{};

    std::size_t count() const { return static_cast<std::size_t>(element_count(extents)); }
    std::size_t bytes() const { return count() * size_of(dtype); }
  };

  void lay(Laid laid, bool shifted);
  void lay_outputs(const corpora::TensorFile& step);
  Extents extents_of(const LibraryLoss::Array& array, const corpora::TensorFile& step) const;
  const Laid* find(std::string_view name) const;
  const std::string* value(std::string_view name);
  void complain(const std::string& what);

  static const lossgate_array* array(const lossgate_call* call, const char* name);
  static double number(const lossgate_call* call, const char* name);
  static const char* word(const lossgate_call* call, const char* name);

  const LibraryFunction& function_;
  const LibraryLoss& loss_;
  const std::set<std::string, std::less<>>& taken_;
  FencedArrays& arrays_;
  std::deque<Laid> laid_;  ///< whose addresses stay
  std::map<std::string, std::string, std::less<>> values_;
  std::string complaint_;
  Face face_;
};

}  // namespace lossgate::impl
