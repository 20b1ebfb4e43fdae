# SPDX-License-Identifier: Apache-2.0
# What the Python wheel holds besides impl/external/python (pyproject.toml). The stored cases lie above
# the command, which looks for them there.
if(LOSSGATE_STATIC)
  target_sources(lossgate PRIVATE wheel/older_glibc.cpp)
endif()
install(TARGETS lossgate RUNTIME DESTINATION lossgate/bin COMPONENT wheel EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/corpora/seeds DESTINATION lossgate/corpora COMPONENT wheel
  EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.case")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/regressions DESTINATION lossgate COMPONENT wheel
  EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.case")
