// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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
      : problem_(problem), positions_(positions), entries_(problem.outputs.size()) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      entries_[i].resize(static_cast<std::size_t>(element_count(problem.outputs[i].extents)));
    }
  }

  void entry(std::size_t output, std::int64_t index, const Lanes& value) override {
    Approximate* entries = entries_[output].data();
    if (problem_.outputs[output].kind == OutputKind::loss) {
      entries[0] = {value.v[0], value.err[0], value.peak[0], value.half[0]};
      return;
    }
    const auto* pack = positions_.find(index / problem_.tokens, index % problem_.tokens);
    for (std::int64_t i = 0; pack && i < pack->count; ++i) {
      entries[pack->at[static_cast<std::size_t>(i)]] = {value.v[i], value.err[i], value.peak[i],
                                                        value.half[i]};
    }
  }

  Approximation take() { return std::move(entries_); }

 private:
  const Problem& problem_;
  const Positions& positions_;
  Approximation entries_;
};

template <class L>
std::optional<Approximation> approximate_by_lanes(const Problem& problem,
                                                  const Arithmetic& arithmetic) {
  const Positions positions(problem);
  const LaneScope scope(arithmetic, positions);
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
