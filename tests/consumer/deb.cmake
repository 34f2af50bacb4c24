# Makes the two Debian packages, installs them into an empty root with dpkg, runs the program from
# there and builds the consumer against the headers from there.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${OUT}")
set(root "${OUT}/root")
file(MAKE_DIRECTORY "${root}/var/lib/dpkg/info" "${root}/var/lib/dpkg/updates")
file(WRITE "${root}/var/lib/dpkg/status" "")
execute_process(COMMAND ${CPACK} --config ${CONFIG} -B ${OUT} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
foreach(package libservecap-dev planner)
  file(GLOB deb "${OUT}/${package}_*.deb")
  list(LENGTH deb count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${count} packages ${package}")
  endif()
  execute_process(COMMAND ${DPKG} --root=${root} --force-not-root --force-depends --force-bad-path --log=${OUT}/log -i ${deb}
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endforeach()

execute_process(COMMAND "${root}/usr/bin/planner" --version OUTPUT_VARIABLE version RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "planner --version: exit ${status}")
endif()
foreach(file share/man/man1/planner.1 share/bash-completion/completions/planner share/zsh/vendor-completions/_planner
        share/fish/vendor_completions.d/planner.fish)
  if(NOT EXISTS "${root}/usr/${file}" AND NOT EXISTS "${root}/usr/${file}.gz")
    message(FATAL_ERROR "the package has no ${file}")
  endif()
endforeach()
execute_process(COMMAND "${root}/usr/bin/planner" list gpus OUTPUT_VARIABLE gpus RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR NOT gpus MATCHES "b300")
  message(FATAL_ERROR "planner list gpus: exit ${status}\n${gpus}")
endif()

file(GLOB_RECURSE archive "${root}/usr/lib/*/libservecap_data.a" "${root}/usr/lib/libservecap_data.a")
execute_process(COMMAND ${CXX} -std=c++20 -I${root}/usr/include "${SOURCE}/catalogue.cpp" -o "${OUT}/catalogue" ${archive} -lcsv -lfmt
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${OUT}/catalogue" COMMAND_ERROR_IS_FATAL ANY)
