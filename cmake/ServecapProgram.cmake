# servecap_quick_start(target): a program whose process starts in the time of an empty one.
#
# Loading libstdc++, libfmt and libcsv costs more than a small plan does, so the program is linked
# statically where the system has the archives (SERVECAP_STATIC=OFF keeps it dynamic). Debian has no
# archive of libfmt: such a program takes fmt from its headers (property SERVECAP_FMT_HEADER_ONLY).

include(CheckCXXSourceCompiles)
option(SERVECAP_STATIC "Link the programs statically where that is possible" ON)

if(SERVECAP_STATIC AND NOT SERVECAP_SANITIZE)
  set(CMAKE_REQUIRED_LINK_OPTIONS -static)
  set(CMAKE_REQUIRED_INCLUDES "${SERVECAP_CSV_INCLUDE}")
  set(CMAKE_REQUIRED_LIBRARIES csv)
  check_cxx_source_compiles(
    "#include <string>\n#include <thread>\n#include <csv.h>\nint main() { csv_parser p; std::thread t([] {}); t.join(); return csv_init(&p, 0); }"
    SERVECAP_CAN_LINK_STATICALLY)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()

function(servecap_quick_start target)
  if(SERVECAP_STATIC AND SERVECAP_CAN_LINK_STATICALLY AND NOT SERVECAP_SANITIZE)
    set_target_properties(${target} PROPERTIES SERVECAP_FMT_HEADER_ONLY ON)
    target_link_options(${target} PRIVATE -static)
  endif()
  # Sections that nothing refers to are dropped: fewer pages to map and to touch.
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  target_link_options(${target} PRIVATE -Wl,--gc-sections)
endfunction()
