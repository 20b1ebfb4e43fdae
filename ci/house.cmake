# SPDX-License-Identifier: Apache-2.0
# The rules of the house as tests: layers, words, commit subjects, headers, a build without LibTorch.
if(NOT LOSSGATE_TESTS)
  return()
endif()
foreach(rule IN ITEMS layers words files commit_message gpu)
  add_test(NAME house.${rule} COMMAND ${PROJECT_SOURCE_DIR}/ci/${rule}_test.sh)
endforeach()
find_program(PYTHON3 python3 REQUIRED)
foreach(script IN ITEMS ptxas gpu_page bench warm_python)
  add_test(NAME house.${script} COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/ci/${script}_test.py)
endforeach()

# Every header compiles alone, with what its folder may see. Most are what a source of the build
# includes first, which shows it; the others get a source that has nothing else.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/reference/*.cpp ${PROJECT_SOURCE_DIR}/impl/*.cpp
  ${PROJECT_SOURCE_DIR}/corpora/*.cpp ${PROJECT_SOURCE_DIR}/properties/*.cpp
  ${PROJECT_SOURCE_DIR}/fuzz/*.cpp ${PROJECT_SOURCE_DIR}/regressions/*.cpp
  ${PROJECT_SOURCE_DIR}/report/*.cpp ${PROJECT_SOURCE_DIR}/ci/*.cpp)
list(FILTER sources EXCLUDE REGEX "^impl/torch/|^ci/mutants/|^fuzz/targets/")
set(shown)
foreach(source IN LISTS sources)
  file(STRINGS ${PROJECT_SOURCE_DIR}/${source} first REGEX "^#include" LIMIT_COUNT 1)
  if(first MATCHES "\"(.*)\"")
    list(APPEND shown ${CMAKE_MATCH_1})
  endif()
endforeach()
function(lossgate_headers folder)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  if(NOT folder STREQUAL "impl/torch")
    list(FILTER headers EXCLUDE REGEX "^impl/torch/")
  endif()
  list(REMOVE_ITEM headers ${shown})
  set(sources)
  foreach(header IN LISTS headers)
    set(source ${PROJECT_BINARY_DIR}/headers/${header}.cpp)
    file(GENERATE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  if(sources)
    string(REPLACE / _ name ${folder}_headers)
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${sources})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE ${ARGN})
    add_dependencies(headers ${name})
  endif()
endfunction()

add_custom_target(headers)
lossgate_headers(reference lossgate_eigen)
lossgate_headers(impl)
lossgate_headers(corpora nlohmann_json::nlohmann_json)
lossgate_headers(properties)
lossgate_headers(fuzz rapidcheck lossgate_eigen)
lossgate_headers(regressions)
lossgate_headers(report nlohmann_json::nlohmann_json fmt::fmt)
lossgate_headers(ci CLI11::CLI11 nlohmann_json::nlohmann_json fmt::fmt)
if(LOSSGATE_TORCH)
  lossgate_headers(impl/torch lossgate_impl libtorch)
  if(TARGET impl_torch_headers)  # LibTorch's own headers would cost 10 s each
    target_precompile_headers(impl_torch_headers REUSE_FROM lossgate_torch)
  endif()
endif()
# What a source includes first is looked up anew.
add_test(NAME house.headers COMMAND sh -c
  "\"$0\" \"$1\" --log-level=WARNING >/dev/null && \"$0\" --build \"$1\" --target headers"
  ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR})
set_tests_properties(house.headers PROPERTIES RUN_SERIAL ON)

# What is compiled for wider vectors stays behind the question whether the machine has them.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_test(NAME house.lanes COMMAND_EXPAND_LISTS COMMAND
    ${PROJECT_SOURCE_DIR}/reference/lanes/objects_test.sh $<TARGET_OBJECTS:lossgate_reference>)
endif()

# The product without LibTorch, in a build folder of its own.
if(LOSSGATE_TORCH AND TARGET lossgate)
  add_test(NAME house.no_torch COMMAND ${PROJECT_SOURCE_DIR}/ci/no_torch_test.sh
    ${PROJECT_BINARY_DIR}-no-torch)  # as deep as this one, or ccache would not know the paths
  set_tests_properties(house.no_torch PROPERTIES RUN_SERIAL ON LABELS slow)
endif()
