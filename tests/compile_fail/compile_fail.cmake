# What must not compile. A file has lines "// case N: text of the compiler's error" (a regular
# expression); with CASE=0 it must compile, with CASE=N it must fail with that text.
file(GLOB compile_fail_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/*.cpp")
foreach(source IN LISTS compile_fail_sources)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  cmake_path(GET source STEM name)
  file(STRINGS "${source}" cases REGEX "^// case [0-9]+: ")
  foreach(case IN LISTS cases ITEMS "// case 0: ")
    string(REGEX MATCH "^// case ([0-9]+): (.*)$" matched "${case}")
    set(test compile_fail.${name}.${CMAKE_MATCH_1})
    add_test(NAME ${test}
             COMMAND ${CMAKE_COMMAND} -D CASE=${CMAKE_MATCH_1} "-DEXPECT=${CMAKE_MATCH_2}" -D SOURCE=${source}
                     -P ${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/try.cmake -- ${CMAKE_CXX_COMPILER} -std=c++20
                     -I${PROJECT_SOURCE_DIR}/include -fsyntax-only)
    set_tests_properties(${test} PROPERTIES LABELS compile_fail ENVIRONMENT LC_ALL=C)
  endforeach()
endforeach()
