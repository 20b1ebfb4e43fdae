# SPDX-License-Identifier: Apache-2.0
# What Python sees of the library, from the venv that LibTorch lies in.
add_library(ranks_case_objects OBJECT ranks_case.cpp)
target_precompile_headers(ranks_case_objects REUSE_FROM lossgate_torch)
target_link_libraries(ranks_case_objects PRIVATE lossgate_impl libtorch)
add_executable(ranks_case $<TARGET_OBJECTS:ranks_case_objects>)
target_link_libraries(ranks_case PRIVATE lossgate_torch lossgate_impl libtorch)

set(python ${LOSSGATE_TORCH_ROOT}/../../../../bin/python)
if(EXISTS ${python})
  add_test(NAME ranks COMMAND ${python} ${CMAKE_CURRENT_SOURCE_DIR}/ranks.py
    $<TARGET_FILE:lossgate_torch> $<TARGET_FILE:ranks_case>)
  add_test(NAME operators COMMAND ${python} ${CMAKE_CURRENT_SOURCE_DIR}/operators_test.py
    $<TARGET_FILE:lossgate_torch>)
  set_tests_properties(ranks operators PROPERTIES TIMEOUT 300)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=address")
    # Python is not instrumented: the library finds the sanitizer in a shared runtime. What Python
    # itself leaves behind at its end is not ours.
    execute_process(OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE
      COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so)
    set_tests_properties(ranks operators PROPERTIES
      ENVIRONMENT "LD_PRELOAD=${runtime};ASAN_OPTIONS=detect_leaks=0")
  endif()
endif()
