# SPDX-License-Identifier: Apache-2.0
# The command from outside, over implementations made for its tests. Their catalog stands before that
# of the library, which is then not taken from the archive.
add_executable(lossgate_fake main.cpp fake/catalog.cpp)
target_link_libraries(lossgate_fake PRIVATE lossgate_ci)

foreach(test IN ITEMS help usage case_files out_folder verdicts without_causes same_verdicts containment interruption
    acceptance reports listing minimise share)
  add_test(NAME command.${test} COMMAND ${PROJECT_SOURCE_DIR}/ci/command_test.sh ${test}
    $<TARGET_FILE:lossgate_fake> ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/command_test)
  set_tests_properties(command.${test} PROPERTIES TIMEOUT 300)
endforeach()

foreach(test IN ITEMS verdicts usage resumption mending found_besides kills containment troubles shards recipes interruption unexplained
    full acceptance first_turns reproducible)
  add_test(NAME fuzz.${test} COMMAND ${PROJECT_SOURCE_DIR}/ci/fuzz_test.sh ${test}
    $<TARGET_FILE:lossgate_fake> ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/fuzz_test)
  set_tests_properties(fuzz.${test} PROPERTIES TIMEOUT 300)
endforeach()
add_test(NAME fuzz.founding COMMAND ${PROJECT_SOURCE_DIR}/ci/fuzz_test.sh founding
  $<TARGET_FILE:lossgate> ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/fuzz_test)
set_tests_properties(fuzz.founding PROPERTIES TIMEOUT 900)

# What a user brings is asked beside none of LibTorch's, which takes every process most of a second to open.
set(without_torch LOSSGATE_TORCH_LIBRARY=none)

# Losses that a user brings (their cost: the longest tests begin first), with the Python that ci/setup.sh gives torch.
set(interpreter ${PROJECT_SOURCE_DIR}/.venv/bin/python)
if(LOSSGATE_TORCH AND EXISTS ${interpreter})
  foreach(test IN ITEMS verdicts starts state contract proposals arithmetic orders asked containment length
      optional_field operations mistakes own_loss own_overflow difference_of_equals
      under_autocast)
    set(script brought_test.sh)
    if(test MATCHES "own_loss|own_overflow|difference_of_equals|under_autocast")
      set(script brought_signed_test.sh)
    elseif(test MATCHES "starts|state|containment")
      set(script brought_process_test.sh)
    endif()
    add_test(NAME brought.${test} COMMAND ${PROJECT_SOURCE_DIR}/ci/${script} ${test}
      $<TARGET_FILE:lossgate> ${interpreter} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/brought_test)
    set_tests_properties(brought.${test} PROPERTIES TIMEOUT 600 COST 100 ENVIRONMENT ${without_torch})
  endforeach()
  foreach(test IN ITEMS found faults scaled terms averages one_parameter in_16_bits near_misses hostile ties
      groups right_padding shifted expanded outputs on_policy)
    set(script identify_test.sh)
    if(test MATCHES "groups|right_padding|shifted|expanded|outputs|on_policy")
      set(script identify_ways_test.sh)
    endif()
    add_test(NAME identify.${test} COMMAND ${PROJECT_SOURCE_DIR}/ci/${script} ${test}
      $<TARGET_FILE:lossgate> ${interpreter} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/identify_test)
    set_tests_properties(identify.${test} PROPERTIES TIMEOUT 600 ENVIRONMENT ${without_torch})
  endforeach()
endif()

# The fused losses as torch hands them out.
if(TARGET lossgate_torch AND EXISTS ${interpreter} AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=address")
  add_test(NAME fused.gate COMMAND lossgate gate --config ${PROJECT_SOURCE_DIR}/impl/cuda/fused/lossgate.toml
    --profile hostile --cases 60 --jobs 1 --out ${PROJECT_BINARY_DIR}/brought_test/fused
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(fused.gate PROPERTIES TIMEOUT 600
    ENVIRONMENT LOSSGATE_FUSED=$<TARGET_FILE:lossgate_fused>)
endif()

# Each fault twice; `python ci/containment.py LOSSGATE PYTHON` does each a hundred times.
if(LOSSGATE_TORCH AND EXISTS ${interpreter})
  add_test(NAME brought.faults COMMAND ${interpreter} ${PROJECT_SOURCE_DIR}/ci/containment.py
    $<TARGET_FILE:lossgate> ${interpreter} 2)
  set_tests_properties(brought.faults PROPERTIES TIMEOUT 600 COST 200 ENVIRONMENT ${without_torch})
endif()

# What is installed besides the command: the pytest plugin, the watch, `lossgate demo`, annotations; and
# what the command makes of Python.
set(python ${PROJECT_SOURCE_DIR}/impl/external/python)
foreach(test IN ITEMS plugin watch explain emission command annotate)
  set(run ${python}/${test}_test.py)
  set(environment LOSSGATE_PROGRAM=$<TARGET_FILE:lossgate> PYTHONPATH=${python} PYTHONDONTWRITEBYTECODE=1)
  if(test MATCHES "explain|emission")
    set(run ${PROJECT_SOURCE_DIR}/ci/${test}_test.py)
    list(APPEND environment ${without_torch})
  endif()
  if(NOT test MATCHES "command|annotate")
    set(run -m pytest -q -p no:cacheprovider ${run})
  endif()
  if(LOSSGATE_TORCH AND EXISTS ${interpreter})
    add_test(NAME python.${test} COMMAND ${interpreter} ${run})
  else()
    add_test(NAME python.${test} COMMAND ${CMAKE_COMMAND} -E echo
      "left out: no Python with torch and pytest in .venv, or LOSSGATE_TORCH=OFF; see ci/setup.sh")
  endif()
  set_tests_properties(python.${test} PROPERTIES TIMEOUT 600
    SKIP_REGULAR_EXPRESSION "^left out: ;No module named pytest" ENVIRONMENT "${environment}")
endforeach()

# The forms for machines, against their schemas.
if(NOT EXISTS ${interpreter})
  set(schema_interpreter python3)
else()
  set(schema_interpreter ${interpreter})
endif()
add_test(NAME python.forms COMMAND ${schema_interpreter} ${PROJECT_SOURCE_DIR}/report/forms_test.py)
set_tests_properties(python.forms PROPERTIES TIMEOUT 600 SKIP_REGULAR_EXPRESSION "^left out: "
  ENVIRONMENT "LOSSGATE_PROGRAM=$<TARGET_FILE:lossgate_fake>;PYTHONDONTWRITEBYTECODE=1")

# The page in a browser, with a Python that has playwright.
set(LOSSGATE_BROWSER_PYTHON python3 CACHE STRING "A Python with playwright and axe-playwright-python")
add_test(NAME python.page
  COMMAND ${LOSSGATE_BROWSER_PYTHON} ${PROJECT_SOURCE_DIR}/report/page_test.py)
set_tests_properties(python.page PROPERTIES TIMEOUT 900 RUN_SERIAL ON
  SKIP_REGULAR_EXPRESSION "^left out: "
  ENVIRONMENT "LOSSGATE_PROGRAM=$<TARGET_FILE:lossgate_fake>;PYTHONDONTWRITEBYTECODE=1")

# Losses in a shared library.
foreach(test IN ITEMS verdicts containment mistakes documentation throwing unopened)
  add_test(NAME library.${test} COMMAND ${PROJECT_SOURCE_DIR}/ci/library_test.sh ${test}
    $<TARGET_FILE:lossgate> ${PROJECT_BINARY_DIR}/bin/given_losses.so ${CMAKE_CXX_COMPILER}
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/library_test)
  set_tests_properties(library.${test} PROPERTIES TIMEOUT 600 ENVIRONMENT ${without_torch})
endforeach()

# Our own implementations as a user's library. Their `train` stands before that of the library, which
# is then not taken from the archive.
add_library(given_implementations MODULE recall/implementations.cpp)
set_target_properties(given_implementations PROPERTIES PREFIX "")
target_link_libraries(given_implementations PRIVATE lossgate_impl lossgate_reference)
target_link_options(given_implementations PRIVATE -Wl,-Bsymbolic -Wl,--exclude-libs,ALL)
add_executable(library_recall recall/library_recall.cpp)
target_link_libraries(library_recall PRIVATE
  lossgate_external lossgate_impl lossgate_reference lossgate_report ${fmt})
add_test(NAME library.recall COMMAND library_recall $<TARGET_FILE:lossgate>
  $<TARGET_FILE:given_implementations> ${PROJECT_BINARY_DIR}/library_recall 12)
set_tests_properties(library.recall PROPERTIES TIMEOUT 1200 COST 300 ENVIRONMENT ${without_torch})
