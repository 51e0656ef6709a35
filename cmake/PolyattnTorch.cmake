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
# at::parallel_for is a template in a header, and serial without this.
find_package(OpenMP REQUIRED COMPONENTS CXX)

# torch's headers take 10 to 20 seconds to read: they are compiled once, and
# every target that uses them takes over the result.
file(WRITE ${PROJECT_BINARY_DIR}/torch_headers.cc.in "// The headers of torch, precompiled.\n")
configure_file(${PROJECT_BINARY_DIR}/torch_headers.cc.in
  ${PROJECT_BINARY_DIR}/torch_headers.cc COPYONLY)
add_library(polyattn_torch_headers OBJECT ${PROJECT_BINARY_DIR}/torch_headers.cc)
polyattn_target(polyattn_torch_headers)
set_target_properties(polyattn_torch_headers PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(polyattn_torch_headers PRIVATE ${TORCH_LIBRARIES} OpenMP::OpenMP_CXX)
target_precompile_headers(polyattn_torch_headers PRIVATE <torch/torch.h>)

# What a target that uses torch has in common with the others.
function(polyattn_torch_target name)
  polyattn_target(${name})
  # gcc takes the precompiled header only under the flags it was made with, and
  # CMake would give -fPIE to programs.
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_compile_options(${name} PRIVATE -fPIC)
  else()
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  target_link_libraries(${name} PUBLIC ${TORCH_LIBRARIES} PRIVATE OpenMP::OpenMP_CXX)
  target_precompile_headers(${name} REUSE_FROM polyattn_torch_headers)
  # A file that includes torch takes seven seconds before its own first line is
  # compiled: even from the precompiled header gcc instantiates torch's
  # templates anew. So several are compiled as one.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 9)
endfunction()
