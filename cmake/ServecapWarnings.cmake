# Warnings and sanitizers for our own targets; never on the INTERFACE targets that consumers link.

function(servecap_own target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Werror)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

if(SERVECAP_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
