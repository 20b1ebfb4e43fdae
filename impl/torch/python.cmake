# SPDX-License-Identifier: Apache-2.0
# What Python sees of the library, from the venv that LibTorch lies in.
add_library(ranks_case_objects OBJECT ranks_case.cpp)
target_precompile_headers(ranks_case_objects REUSE_FROM lossgate_torch)
target_link_libraries(ranks_case_objects PRIVATE lossgate_impl libtorch)
add_executable(ranks_case $<TARGET_OBJECTS:ranks_case_objects>)
target_link_libraries(ranks_case PRIVATE lossgate_torch lossgate_impl libtorch)

# Python is not instrumented: a library finds its sanitizer in a shared runtime. What Python itself leaves
# behind at its end is not ours.
set(sanitizer "")
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=address")
  execute_process(OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so)
  set(sanitizer LD_PRELOAD=${runtime} ASAN_OPTIONS=detect_leaks=0)
endif()
set(LOSSGATE_TORCH_PYTHON ${LOSSGATE_TORCH_ROOT}/../../../../bin/python CACHE INTERNAL "")
set(LOSSGATE_TORCH_SANITIZER ${sanitizer} CACHE INTERNAL "")

# lossgate_torch_test(NAME ARGUMENT...): a script that torch's own Python runs.
function(lossgate_torch_test name)
  if(EXISTS ${LOSSGATE_TORCH_PYTHON})
    add_test(NAME ${name} COMMAND ${LOSSGATE_TORCH_PYTHON} ${ARGN})
    set_tests_properties(${name} PROPERTIES TIMEOUT 300 ENVIRONMENT "${LOSSGATE_TORCH_SANITIZER}")
  endif()
endfunction()

lossgate_torch_test(ranks ${CMAKE_CURRENT_SOURCE_DIR}/ranks.py
  $<TARGET_FILE:lossgate_torch> $<TARGET_FILE:ranks_case>)
lossgate_torch_test(operators ${CMAKE_CURRENT_SOURCE_DIR}/operators_test.py $<TARGET_FILE:lossgate_torch>)
lossgate_torch_test(operator_values ${CMAKE_CURRENT_SOURCE_DIR}/operator_values_test.py
  $<TARGET_FILE:lossgate_torch>)
