// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "impl/external/session.h"
#include "reference/reference.h"

namespace lossgate::ci {

/// A loss that is not in the catalog. Its reference is the subject itself, asked in f64 with the
/// same stored values: it knows no better than the subject, and what it says is advice. Of a result
/// it asks for half of the digits of the compute format, at the scale of the largest entry of the
/// same output, and for no more than the function itself keeps where its inputs move by as much: a
/// result of 0 that is a difference of equals has a scale too. `subject` has a signature of its
/// own.
reference::Loss own_loss(const impl::Subject& subject, std::shared_ptr<impl::Session> session);

}  // namespace lossgate::ci
