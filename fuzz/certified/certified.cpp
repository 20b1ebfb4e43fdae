// SPDX-License-Identifier: Apache-2.0
#include "fuzz/certified/certified.h"

#include "reference/losses/catalog.h"

namespace lossgate::fuzz {

const std::vector<CertifiedLoss>& certified_losses() {
  static const std::vector<CertifiedLoss> losses = [] {
    using namespace reference;
    std::vector<CertifiedLoss> all;
    Catalog::for_each([&]<class L>() {
      all.push_back({*find_loss(L::signature().id), &L::template evaluate<Precise>,
                     &L::template evaluate<Textbook>, &L::template evaluate<Adversary>});
    });
    return all;
  }();
  return losses;
}

}  // namespace lossgate::fuzz
