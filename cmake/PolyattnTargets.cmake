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

# Files whose time goes into headers that they share (JSON, the command line) are
# compiled several at a time. A name in an anonymous namespace is then to be unique
# in its room, and test files have a namespace each.
function(polyattn_compile_together name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 14)
endfunction()
