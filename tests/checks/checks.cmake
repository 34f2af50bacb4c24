# Checks of the source tree, as CMake scripts, so that nothing but CMake is needed to run them.
set(checks "${CMAKE_CURRENT_SOURCE_DIR}/checks")
foreach(check include_order umbrella sources)
  add_test(NAME check.${check} COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -P ${checks}/${check}.cmake)
endforeach()
# Writable objects of the library's own in a program that uses all of it would be global state.
find_program(SERVECAP_OBJDUMP objdump)
if(SERVECAP_OBJDUMP AND NOT SERVECAP_SANITIZE)
  add_test(NAME check.global_state COMMAND ${CMAKE_COMMAND} -D OBJDUMP=${SERVECAP_OBJDUMP}
           -D PROGRAMS=$<TARGET_FILE:servecap_tests> -P ${checks}/global_state.cmake)
endif()
# Every command that the documentation and the program's own help show.
if(TARGET planner AND NOT SERVECAP_SANITIZE)
  add_test(NAME check.docs_commands COMMAND ${CMAKE_COMMAND} -D PLANNER=$<TARGET_FILE:planner> -D SOURCE=${PROJECT_SOURCE_DIR}
           -P ${checks}/docs_commands.cmake)
endif()
