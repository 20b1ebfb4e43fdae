// SPDX-License-Identifier: Apache-2.0
#pragma once

// All that reference/lanes/approximate.h includes from elsewhere.
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "reference/spec/arithmetic.h"
#include "reference/spec/case.h"
#include "reference/spec/dtype.h"
#include "reference/spec/formats.h"
#include "reference/spec/masked.h"
#include "reference/spec/reduction.h"
#include "reference/spec/result.h"
#include "reference/spec/signature.h"
#include "reference/spec/tensor.h"
