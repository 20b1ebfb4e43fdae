# SPDX-License-Identifier: Apache-2.0
if(LOSSGATE_TESTS)
  find_package(GTest REQUIRED CONFIG)
  find_package(benchmark REQUIRED CONFIG)
  include(GoogleTest)
  lossgate_precompiled(tests HEADERS <gmock/gmock.h> <gtest/gtest.h> <rapidcheck/gtest.h>
    LINKS GTest::gmock rapidcheck)
  set_target_properties(precompiled_tests PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(precompiled_tests PRIVATE -fPIE)  # as executables are
endif()

# lossgate_test(NAME SOURCES... LINKS...): one test executable for a folder, if it has tests. RapidCheck
# draws the same cases in every run.
function(lossgate_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINKS")
  if(arg_SOURCES AND LOSSGATE_TESTS)
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE ${arg_LINKS} GTest::gtest_main GTest::gmock rapidcheck)
    target_compile_definitions(${name} PRIVATE LOSSGATE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    if(NOT arg_SOURCES MATCHES "TARGET_OBJECTS")
      target_precompile_headers(${name} REUSE_FROM precompiled_tests)
    endif()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTIES ENVIRONMENT RC_PARAMS=seed=1)
  endif()
endfunction()
