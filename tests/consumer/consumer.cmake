# Other people's projects: from an installed prefix (find_package, pkg-config), from the source tree
# (add_subdirectory, FetchContent), and from the Debian packages.
set(consumer "${CMAKE_CURRENT_SOURCE_DIR}/consumer")
set(consumer_prefix "${CMAKE_CURRENT_BINARY_DIR}/consumer/prefix")

add_test(NAME consumer.install COMMAND ${CMAKE_COMMAND} --install "${PROJECT_BINARY_DIR}" --prefix "${consumer_prefix}")
set_tests_properties(consumer.install PROPERTIES FIXTURES_SETUP installed LABELS consumer RESOURCE_LOCK build)

function(servecap_consumer how)
  add_test(NAME consumer.${how}
           COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test "${consumer}/project" "${CMAKE_CURRENT_BINARY_DIR}/consumer/${how}"
                   --build-generator "${CMAKE_GENERATOR}" --build-project consumer
                   --build-options -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DHOW=${how} ${ARGN}
                   --test-command ${CMAKE_COMMAND} -D "PROGRAMS=bytes$<SEMICOLON>catalogue" -P "${consumer}/run.cmake")
  set_tests_properties(consumer.${how} PROPERTIES LABELS consumer)
endfunction()
servecap_consumer(find_package -DCMAKE_PREFIX_PATH=${consumer_prefix} -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
set_tests_properties(consumer.find_package PROPERTIES FIXTURES_REQUIRED installed)
servecap_consumer(add_subdirectory -DSERVECAP_SOURCE=${PROJECT_SOURCE_DIR})
servecap_consumer(FetchContent -DSERVECAP_SOURCE=${PROJECT_SOURCE_DIR})

find_program(SERVECAP_PKG_CONFIG pkg-config)
if(SERVECAP_PKG_CONFIG)
  add_test(NAME consumer.pkg_config
           COMMAND ${CMAKE_COMMAND} -D CXX=${CMAKE_CXX_COMPILER} -D PKG_CONFIG=${SERVECAP_PKG_CONFIG} -D PREFIX=${consumer_prefix}
                   -D LIBDIR=${CMAKE_INSTALL_LIBDIR} -D SOURCE=${consumer}/project -D OUT=${CMAKE_CURRENT_BINARY_DIR}/consumer/pkg_config
                   -P ${consumer}/pkg_config.cmake)
  set_tests_properties(consumer.pkg_config PROPERTIES FIXTURES_REQUIRED installed LABELS consumer)
endif()

# Bytes alone: no header of Eigen, fmt, JSON, CSV or range-v3 is opened.
add_test(NAME consumer.bytes_only
         COMMAND ${CMAKE_COMMAND} -D CXX=${CMAKE_CXX_COMPILER} -D INCLUDE=${PROJECT_SOURCE_DIR}/include
                 -D FILE=${consumer}/project/bytes.cpp -P ${consumer}/bytes_only.cmake)
set_tests_properties(consumer.bytes_only PROPERTIES LABELS consumer)

find_program(SERVECAP_DPKG dpkg)
if(SERVECAP_DPKG AND TARGET planner)
  add_test(NAME consumer.deb
           COMMAND ${CMAKE_COMMAND} -D CPACK=${CMAKE_CPACK_COMMAND} -D DPKG=${SERVECAP_DPKG} -D CONFIG=${PROJECT_BINARY_DIR}/CPackConfig.cmake
                   -D CXX=${CMAKE_CXX_COMPILER} -D SOURCE=${consumer}/project -D OUT=${CMAKE_CURRENT_BINARY_DIR}/consumer/deb
                   -P ${consumer}/deb.cmake)
  set_tests_properties(consumer.deb PROPERTIES LABELS consumer RESOURCE_LOCK build)
endif()
