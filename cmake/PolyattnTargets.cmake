# What every target of the project has in common.
function(polyattn_target name)
  target_compile_features(${name} PUBLIC cxx_std_20)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wshadow)
  if(POLYATTN_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(POLYATTN_SANITIZE)
    target_compile_options(${name} PRIVATE
      -fsanitize=${POLYATTN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${name} PUBLIC -fsanitize=${POLYATTN_SANITIZE})
  endif()
endfunction()
