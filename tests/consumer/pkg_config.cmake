# Compiles and runs the consumer with what pkg-config says of an installed prefix, and nothing else.
cmake_minimum_required(VERSION 3.25)
file(MAKE_DIRECTORY "${OUT}")
set(ENV{PKG_CONFIG_PATH} "${PREFIX}/${LIBDIR}/pkgconfig")
foreach(program bytes:servecap catalogue:servecap-data)
  string(REPLACE ":" ";" pair "${program}")
  list(GET pair 0 name)
  list(GET pair 1 package)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs ${package} OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  execute_process(COMMAND ${CXX} -std=c++20 "${SOURCE}/${name}.cpp" -o "${OUT}/${name}" ${flags} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${OUT}/${name}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
