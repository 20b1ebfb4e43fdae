# SPDX-License-Identifier: Apache-2.0
# What the Python wheel holds besides Python (pyproject.toml). The stored cases lie above the command, which
# looks for them there.
if(LOSSGATE_STATIC)
  foreach(carried IN ITEMS lossgate lossgate_fused impl_test fused_test kernel_benchmark)  # ci/gpu.sh takes all
    if(TARGET ${carried})
      target_sources(${carried} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/wheel/older_glibc.cpp)
    endif()
  endforeach()
endif()
install(TARGETS lossgate RUNTIME DESTINATION lossgate/bin COMPONENT wheel EXCLUDE_FROM_ALL)
install(TARGETS lossgate_fused LIBRARY DESTINATION lossgate_fused COMPONENT wheel EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/corpora/seeds DESTINATION lossgate/corpora COMPONENT wheel
  EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.case")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/regressions DESTINATION lossgate COMPONENT wheel
  EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.case")
