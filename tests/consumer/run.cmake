# cmake -D PROGRAMS=<list> -P run.cmake, in the folder that holds them: all must succeed.
cmake_minimum_required(VERSION 3.25)
foreach(program IN LISTS PROGRAMS)
  execute_process(COMMAND "./${program}" RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${program}: ${status}")
  endif()
endforeach()
