# SPDX-License-Identifier: Apache-2.0
# What most sources include takes longer to parse than the source itself: it is parsed once for each of
# these kinds. They hold nothing of lossgate. What they forgive is that a file leaves out one of these
# headers: a build with -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON shows it.
set(of_std <algorithm> <array> <bit> <charconv> <chrono> <cmath> <cstdint> <filesystem> <fstream>
  <functional> <limits> <map> <memory> <numeric> <optional> <ranges> <set> <span> <sstream> <stdexcept>
  <string> <string_view> <tuple> <utility> <variant> <vector>)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "")

# A library that lies in the checkout itself is known by its files: the cache must not hand out what another
# checkout has precompiled of its own, or each header is defined twice.
set(of_this_checkout ${PROJECT_BINARY_DIR}/this_checkout.h)
file(CONFIGURE OUTPUT ${of_this_checkout} CONTENT "static_assert(true, \"${PROJECT_SOURCE_DIR}\");")

# lossgate_precompiled(NAME [HEADERS header...] [LINKS target...])
function(lossgate_precompiled name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;LINKS")
  add_library(precompiled_${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_compile_definitions(precompiled_${name} PRIVATE LOSSGATE_PRECOMPILED_${name})  # for ccache
  target_precompile_headers(precompiled_${name} PRIVATE ${of_std} ${arg_HEADERS})
  target_link_libraries(precompiled_${name} PRIVATE ${arg_LINKS})
endfunction()

lossgate_precompiled(std)
lossgate_precompiled(text HEADERS <nlohmann/json.hpp> <fmt/format.h> <fmt/ranges.h>
  LINKS nlohmann_json::nlohmann_json ${fmt})
