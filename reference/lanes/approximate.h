// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "reference/filter.h"
#include "reference/lanes/positions.h"
#include "reference/losses/catalog.h"

namespace lossgate::reference {
inline namespace LOSSGATE_LANES_NAMESPACE {

/// Takes the lanes of each pack apart. What is masked is never written: it is an exact 0.
class Collecting final : public Sink<Lanes> {
 public:
  Collecting(const Problem& problem, const Positions& positions)
      : problem_(problem), positions_(positions) {
    entries_.reserve(problem.outputs.size());
    for (const OutputInfo& output : problem.outputs) {
      entries_.emplace_back(static_cast<std::size_t>(element_count(output.extents)));
    }
  }

  void entry(std::size_t output, std::int64_t index, const Lanes& value) override {
    static constexpr Positions::Pack kFirst = {.at = {}, .count = 1};
    const bool loss = problem_.outputs[output].kind == OutputKind::loss;
    const Positions::Pack* pack =
        loss ? &kFirst : positions_.find(index / problem_.tokens, index % problem_.tokens);
    if (!pack) return;
    ApproximateEntries& entries = entries_[output];
    put(*pack, value.v, entries.v.data());
    put(*pack, value.err, entries.err.data());
    put(*pack, value.peak, entries.peak.data());
    put(*pack, value.half, entries.half.data());
  }

  Approximation take() { return std::move(entries_); }

 private:
  LOSSGATE_LANEWISE static void put(const Positions::Pack& pack, Doubles x, double* entries) {
    if (pack.in_a_row()) {
      std::memcpy(entries + pack.at.front(), &x, sizeof x);
      return;
    }
    for (int i = 0; i < pack.count; ++i) entries[pack.at[static_cast<std::size_t>(i)]] = x[i];
  }

  const Problem& problem_;
  const Positions& positions_;
  Approximation entries_;
};

template <class L>
std::optional<Approximation> approximate_by_lanes(const Problem& problem,
                                                  const Arithmetic& arithmetic) {
  if (std::ssize(problem.valid) > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  const Positions positions(problem);
  const Arithmetic scaled = behind(problem.c.upstream, arithmetic);
  const LaneScope scope(scaled, positions);
  Collecting sink(problem, positions);
  L::template evaluate<Lanes>(Inputs<Lanes>(problem, arithmetic.form),
                              Outputs<Lanes>(problem, sink));
  if (any(scope.doubt)) return std::nullopt;
  return sink.take();
}

/// Of the loss at this place of the catalog, null where it has no filter.
inline Approximator approximator_by_lanes(std::size_t place) {
  Approximator found = nullptr;
  std::size_t at = 0;
  Catalog::for_each([&]<class L>() {
    if constexpr (requires { L::kByPosition; }) {
      if (at == place) found = &approximate_by_lanes<L>;
    }
    ++at;
  });
  return found;
}

}  // namespace LOSSGATE_LANES_NAMESPACE
}  // namespace lossgate::reference
