// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "reference/lanes/sums.h"
#include "reference/one_plus.h"
#include "reference/problem.h"

namespace lossgate::reference {
inline namespace LOSSGATE_LANES_NAMESPACE {

/// The valid positions of a case, some of one sequence in each pack. To a formula the packs of a
/// sequence are its tokens, all of them valid.
class Positions {
 public:
  struct Pack {
    std::array<std::int32_t, kLanes> at;  ///< positions; the last one again where there are no more
    std::int32_t count;                   ///< how many are positions of their own

    bool in_a_row() const { return count == kLanes && at.back() - at.front() == kLanes - 1; }
  };

  explicit Positions(const Problem& problem) {
    const auto valid = problem.valid.begin();
    packs_.reserve(static_cast<std::size_t>(problem.token_count / kLanes + problem.sequences));
    first_.reserve(static_cast<std::size_t>(problem.sequences) + 1);
    for (std::int64_t s = 0; s < problem.sequences; ++s) {
      first_.push_back(std::ssize(packs_));
      const std::int64_t begin = s * problem.tokens;
      std::int64_t seen = 0;
      for (std::int64_t at = begin; at < begin + problem.tokens; ++at) {
        if (!valid[at]) continue;
        if (seen % kLanes == 0) packs_.push_back({.at = {}, .count = kLanes});
        packs_.back().at[static_cast<std::size_t>(seen++ % kLanes)] = static_cast<std::int32_t>(at);
      }
      if (seen % kLanes != 0) close(packs_.back(), seen % kLanes);
      most_ = std::max(most_, std::ssize(packs_) - first_.back());
    }
    first_.push_back(std::ssize(packs_));
  }

  std::int64_t most() const { return most_; }  ///< packs of a sequence

  /// Null behind the last pack of the sequence.
  const Pack* find(std::int64_t s, std::int64_t t) const {
    const std::int64_t at = first_[static_cast<std::size_t>(s)] + t;
    if (at >= first_[static_cast<std::size_t>(s) + 1]) return nullptr;
    return &packs_[static_cast<std::size_t>(at)];
  }

 private:
  static void close(Pack& pack, std::int64_t count) {
    pack.count = static_cast<std::int32_t>(count);
    const auto end = pack.at.begin() + count;
    std::fill(end, pack.at.end(), *(end - 1));
  }

  std::vector<Pack> packs_;
  std::vector<std::int64_t> first_;
  std::int64_t most_ = 0;
};

}  // namespace LOSSGATE_LANES_NAMESPACE

template <>
struct Entry<Lanes> {
  static Lanes constant(Real value) {
    const auto v = static_cast<double>(value);
    const double size = std::fabs(v);
    const bool exact = round_to(lanes::scope->arithmetic.compute, v) == value;
    const double lost = size < lanes::scope->arithmetic.flush ? size : 0.0;
    const double err = exact ? lost : lanes::scope->roundoff * size + lanes::scope->eta;
    return {all_lanes(v), all_lanes(err), all_lanes(size + kThreshold * err), {}};
  }
};

template <>
inline Lanes one_plus<Lanes>(Real x) {
  Lanes sum = constant<Lanes>(1.0L + x);
  const Lanes option = constant<Lanes>(x);
  sum.err += option.err;
  sum.peak = larger(larger(sum.peak, option.peak), lanes::most(sum));
  return sum;
}

template <>
class FieldReader<Lanes> {
 public:
  FieldReader(const Tensor& tensor, std::int64_t /*first_key*/) : tensor_(&tensor) {}

  LOSSGATE_LANEWISE Lanes operator()(std::int64_t s, std::int64_t t) const {
    const Positions::Pack& pack = *lanes::scope->positions.find(s, t);
    const Doubles value = tensor_->dtype == Dtype::f32 ? read<float>(pack) : decoded(pack);
    const Doubles size = size_of_each(value);
    lanes::require(size <= lanes::scope->fits);
    return {value, or_zero(size < lanes::scope->flush, size), size, {}};
  }

 private:
  template <class T>
  LOSSGATE_LANEWISE Doubles read(const Positions::Pack& pack) const {
    std::array<T, kLanes> elements;
    if (pack.in_a_row()) {
      std::memcpy(elements.data(), tensor_->element(pack.at.front()), sizeof elements);
    } else {
      for (std::size_t i = 0; i < kLanes; ++i) {
        std::memcpy(&elements[i], tensor_->element(pack.at[i]), sizeof(T));
      }
    }
    Doubles value;
    for (int i = 0; i < kLanes; ++i) value[i] = elements[static_cast<std::size_t>(i)];
    return value;
  }

  LOSSGATE_LANEWISE Doubles decoded(const Positions::Pack& pack) const {
    Doubles value;
    for (int i = 0; i < kLanes; ++i) value[i] = tensor_->at(pack.at[static_cast<std::size_t>(i)]);
    return value;
  }

  const Tensor* tensor_;
};

template <>
inline std::int64_t Inputs<Lanes>::tokens() const {
  return lanes::scope->positions.most();
}

/// Whether the sequence has such a pack, whose lanes are the live ones from here on.
template <>
inline bool Inputs<Lanes>::valid(std::int64_t sequence, std::int64_t token) const {
  const Positions::Pack* pack = lanes::scope->positions.find(sequence, token);
  if (!pack) return false;
  for (int i = 0; i < kLanes; ++i) lanes::scope->live[i] = i < pack->count ? -1 : 0;
  return true;
}

}  // namespace lossgate::reference
