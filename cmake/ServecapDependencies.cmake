# What servecap needs, from the system's packages; FetchContent only when asked for (SERVECAP_FETCH).

if(SERVECAP_FETCH)
  include(FetchContent)
  FetchContent_Declare(fmt GIT_REPOSITORY https://github.com/fmtlib/fmt.git GIT_TAG 9.1.0 FIND_PACKAGE_ARGS NAMES fmt)
  FetchContent_Declare(range-v3 GIT_REPOSITORY https://github.com/ericniebler/range-v3.git GIT_TAG 0.12.0
                       FIND_PACKAGE_ARGS NAMES range-v3)
  FetchContent_Declare(tl-expected GIT_REPOSITORY https://github.com/TartanLlama/expected.git GIT_TAG v1.0.0
                       FIND_PACKAGE_ARGS NAMES tl-expected)
  FetchContent_Declare(nlohmann_json GIT_REPOSITORY https://github.com/nlohmann/json.git GIT_TAG v3.11.2
                       FIND_PACKAGE_ARGS NAMES nlohmann_json)
  FetchContent_Declare(CLI11 GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git GIT_TAG v2.1.2
                       FIND_PACKAGE_ARGS NAMES CLI11)
  FetchContent_Declare(Eigen3 GIT_REPOSITORY https://gitlab.com/libeigen/eigen.git GIT_TAG 3.4.0
                       FIND_PACKAGE_ARGS NAMES Eigen3)
  FetchContent_MakeAvailable(fmt range-v3 tl-expected nlohmann_json Eigen3)
  if(SERVECAP_TOOLS)
    FetchContent_MakeAvailable(CLI11)
  endif()
else()
  find_package(fmt REQUIRED CONFIG)
  find_package(range-v3 REQUIRED CONFIG)
  find_package(tl-expected REQUIRED CONFIG)
  find_package(Eigen3 REQUIRED CONFIG)
  find_package(nlohmann_json REQUIRED CONFIG)
  if(SERVECAP_TOOLS)
    find_package(CLI11 REQUIRED CONFIG)
  endif()
endif()
find_package(Threads REQUIRED)

# libcsv has no CMake files of its own.
find_path(SERVECAP_CSV_INCLUDE csv.h)
find_library(SERVECAP_CSV_LIBRARY csv)
if(NOT SERVECAP_CSV_INCLUDE OR NOT SERVECAP_CSV_LIBRARY)
  message(FATAL_ERROR "libcsv not found: install libcsv-dev, or set SERVECAP_CSV_INCLUDE and SERVECAP_CSV_LIBRARY")
endif()
add_library(servecap_csv INTERFACE)
set_target_properties(servecap_csv PROPERTIES EXPORT_NAME csv)
target_link_libraries(servecap_csv INTERFACE csv)
