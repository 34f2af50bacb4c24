# Install rules: find_package(servecap), pkg-config, and two Debian packages (CPack).
#
# Components: `dev` = headers, package files, the archive of the catalogue; `planner` = the program.
# libservecap-dev is of the machine's architecture, not "all", because it carries that archive.

include(CMakePackageConfigHelpers)
set(servecap_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/servecap")

install(TARGETS servecap EXPORT servecapTargets FILE_SET HEADERS COMPONENT dev)
install(TARGETS servecap_io servecap_csv EXPORT servecapIoTargets FILE_SET HEADERS COMPONENT dev)
install(TARGETS servecap_data EXPORT servecapDataTargets ARCHIVE COMPONENT dev)
foreach(part "" Io Data)
  install(EXPORT servecap${part}Targets NAMESPACE servecap:: DESTINATION "${servecap_cmake_dir}" COMPONENT dev)
endforeach()

configure_package_config_file(cmake/servecapConfig.cmake.in "${PROJECT_BINARY_DIR}/servecapConfig.cmake"
                              INSTALL_DESTINATION "${servecap_cmake_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/servecapConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/servecapConfig.cmake" "${PROJECT_BINARY_DIR}/servecapConfigVersion.cmake"
        DESTINATION "${servecap_cmake_dir}" COMPONENT dev)

file(RELATIVE_PATH servecap_pc_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" servecap_pc_up "${servecap_pc_up}")
foreach(pc servecap servecap-io servecap-data)
  configure_file("cmake/${pc}.pc.in" "${PROJECT_BINARY_DIR}/${pc}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${pc}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)
endforeach()
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/libservecap-dev" RENAME copyright COMPONENT dev)

if(SERVECAP_TOOLS)
  install(TARGETS planner RUNTIME COMPONENT planner)
  install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/planner" RENAME copyright COMPONENT planner)
  # The manual page and the completions come from the program itself, so they cannot differ from it.
  if(NOT CMAKE_CROSSCOMPILING)
    set(share "${PROJECT_BINARY_DIR}/share")
    file(MAKE_DIRECTORY "${share}")
    add_custom_command(OUTPUT "${share}/planner.1" "${share}/planner" "${share}/_planner" "${share}/planner.fish"
                       COMMAND planner completion man -o "${share}/planner.1"
                       COMMAND planner completion bash -o "${share}/planner"
                       COMMAND planner completion zsh -o "${share}/_planner"
                       COMMAND planner completion fish -o "${share}/planner.fish"
                       DEPENDS planner VERBATIM)
    add_custom_target(servecap_planner_share ALL DEPENDS "${share}/planner.1")
    install(FILES "${share}/planner.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT planner OPTIONAL)
    install(FILES "${share}/planner" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT planner OPTIONAL)
    install(FILES "${share}/_planner" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions" COMPONENT planner OPTIONAL)
    install(FILES "${share}/planner.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" COMPONENT planner OPTIONAL)
  endif()
endif()

if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME servecap)
  set(CPACK_PACKAGE_VENDOR "The servecap authors")
  set(CPACK_PACKAGE_CONTACT "The servecap authors <servecap@localhost>")
  set(CPACK_PACKAGE_HOMEPAGE_URL "${PROJECT_HOMEPAGE_URL}")
  set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
  set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_COMPONENTS_ALL dev planner)
  set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)

  set(CPACK_DEBIAN_DEV_PACKAGE_NAME libservecap-dev)
  set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_DEV_DESCRIPTION
      "Headers of a C++20 library, and its catalogue: does a model fit on these GPUs, will the engine start, how fast is it, what does a million tokens cost. Models, GPUs, prices and measured runs come with it.")
  set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
      "libexpected-dev, libfmt-dev, librange-v3-dev, libeigen3-dev, nlohmann-json3-dev, libcsv-dev")

  set(CPACK_DEBIAN_PLANNER_PACKAGE_NAME planner)
  set(CPACK_DEBIAN_PLANNER_PACKAGE_SECTION utils)
  set(CPACK_DEBIAN_PLANNER_DESCRIPTION
      "The program. Prints for a model and a set of GPUs: does it fit, will the engine start and which flag mends it,\nroom for tokens, speed with its interval, cost a million tokens, break-even against an API.")
  set(CPACK_DEBIAN_PLANNER_PACKAGE_SHLIBDEPS ON)
  include(CPack)
endif()
