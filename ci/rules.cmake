# SPDX-License-Identifier: Apache-2.0
# `describe B4` prints the rule as it was when the command was built.
set(rules ${PROJECT_SOURCE_DIR}/properties/README.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${rules})
file(READ ${rules} LOSSGATE_RULES)
configure_file(rules_text.cpp.in rules_text.cpp @ONLY)
target_sources(lossgate_ci PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/rules_text.cpp)
set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/rules_text.cpp PROPERTIES
  COMPILE_OPTIONS -Wno-overlength-strings)  # one text, one literal
