# Golden outputs of the program. tests/golden/NAME.args holds the arguments, one a line (a first line
# "# exit N" states another exit status than 0); NAME.txt (or .json, .md, .csv, .svg) is the standard
# output that is expected, to the byte. A line "# into docs/FILE" keeps the output there, so that a document
# cannot drift from the program. Refresh all of them with
#   cmake -D PLANNER=build/release/planner -D UPDATE=1 -P tests/golden/compare.cmake
file(GLOB golden_args CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/golden/*.args")
if(TARGET planner)
  foreach(args IN LISTS golden_args)
    cmake_path(GET args STEM LAST_ONLY name)
    add_test(NAME golden.${name} COMMAND ${CMAKE_COMMAND} -D PLANNER=$<TARGET_FILE:planner> -D ONLY=${name}
             -P ${CMAKE_CURRENT_SOURCE_DIR}/golden/compare.cmake)
    set_tests_properties(golden.${name} PROPERTIES LABELS golden)
  endforeach()
endif()
