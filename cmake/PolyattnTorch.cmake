# Finds libtorch and sets POLYATTN_HAVE_TORCH; and what the targets that use it
# have in common.
set(POLYATTN_HAVE_TORCH OFF)
if(POLYATTN_TORCH STREQUAL "AUTO")
  # As a subproject polyattn builds the core alone, unless it is asked for more.
  if(PROJECT_IS_TOP_LEVEL)
    find_package(Torch QUIET)
  endif()
  if(NOT TORCH_FOUND)
    message(STATUS "Without torch: building the core alone (POLYATTN_TORCH=ON to insist)")
  endif()
elseif(POLYATTN_TORCH)
  find_package(Torch REQUIRED)
endif()
if(NOT TORCH_FOUND)
  return()
endif()
set(POLYATTN_HAVE_TORCH ON)
# at::parallel_for is a template in a header, and serial without OpenMP's pragmas.
# Without OpenMP of our own nothing is linked: the runtime that libtorch brings, of
# whatever make, has what they call.
find_package(OpenMP REQUIRED COMPONENTS CXX)
function(polyattn_torch_threads name)
  if(POLYATTN_OPENMP)
    target_link_libraries(${name} PRIVATE OpenMP::OpenMP_CXX)
  else()
    target_compile_options(${name} PRIVATE ${OpenMP_CXX_FLAGS})
  endif()
endfunction()

# torch's headers take 10 to 20 seconds to read: those that most files need are
# compiled once, and every target that uses them takes over the result. A header
# more costs each file: gcc instantiates the templates that its functions call
# again in every file, used or not (1.4 s for ATen, 2.5 s with torch/nn/module.h,
# 6 s for torch/torch.h).
file(WRITE ${PROJECT_BINARY_DIR}/torch_headers.cc.in "// The headers of torch, precompiled.\n")
configure_file(${PROJECT_BINARY_DIR}/torch_headers.cc.in
  ${PROJECT_BINARY_DIR}/torch_headers.cc COPYONLY)
add_library(polyattn_torch_headers OBJECT ${PROJECT_BINARY_DIR}/torch_headers.cc)
polyattn_target(polyattn_torch_headers)
set_target_properties(polyattn_torch_headers PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(polyattn_torch_headers PRIVATE ${TORCH_LIBRARIES})
polyattn_torch_threads(polyattn_torch_headers)
target_precompile_headers(polyattn_torch_headers PRIVATE
  <torch/types.h> <torch/nn/cloneable.h> <torch/nn/pimpl.h> <torch/nn/modules/linear.h>)

# What calls torch's ops and the kernels of the core spends no time of its own: in
# a release it is compiled for a quick build. Files with loops of their own say so
# (polyattn_hot_sources); gcc crashes on a precompiled header of another level.
polyattn_light_optimisation(polyattn_torch_headers)

function(polyattn_hot_sources)
  set_source_files_properties(${ARGN} PROPERTIES
    COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>" SKIP_PRECOMPILE_HEADERS ON
    SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# What a target that uses torch has in common with the others.
function(polyattn_torch_target name)
  polyattn_target(${name})
  polyattn_light_optimisation(${name})
  # gcc takes the precompiled header only under the flags it was made with, and
  # CMake would give -fPIE to programs.
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_compile_options(${name} PRIVATE -fPIC)
  else()
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  target_link_libraries(${name} PUBLIC ${TORCH_LIBRARIES})
  polyattn_torch_threads(${name})
  target_precompile_headers(${name} REUSE_FROM polyattn_torch_headers)
  # The templates of torch's headers take three seconds of every file. A few files
  # are compiled as one, few enough that a change is compiled within ten seconds.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
endfunction()
