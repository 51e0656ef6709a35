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
  # The fuzzer looks for new ways through parsers, not through kernels or tests.
  if(POLYATTN_FUZZ AND NOT name MATCHES "kernel|_test$")
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# Text, options, records, tests: what does not compute. -O3 takes a third longer
# to compile than -O1, and nobody would see the difference.
function(polyattn_light_optimisation name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Files whose time goes into headers that they share (JSON, the command line) are
# compiled several at a time: with a precompiled header instead they take twice as
# long. A name in an anonymous namespace is then to be unique in its room, and test
# files have a namespace each.
function(polyattn_compile_together name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 14)
endfunction()

# What makes the builds of people who work on polyattn shorter, where they have it.
if(PROJECT_IS_TOP_LEVEL)
  find_program(POLYATTN_CCACHE ccache)
  if(POLYATTN_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${POLYATTN_CCACHE})
  endif()
  find_program(POLYATTN_MOLD mold)
  if(POLYATTN_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_link_options(-fuse-ld=mold)
  endif()
  mark_as_advanced(POLYATTN_CCACHE POLYATTN_MOLD)
endif()
