# Consumes the sources as a subproject, then installs that build and consumes
# the package. Its build directory is kept: compiling the core is what costs.
include(${CMAKE_CURRENT_LIST_DIR}/consume.cmake)

set(build ${BINARY_DIR}/add_subdirectory/build)
build_and_run(${CMAKE_CURRENT_LIST_DIR}/add_subdirectory ${build}
  -D BUILD_SHARED_LIBS=${SHARED}
  -D CMAKE_BUILD_TYPE=Release
  -D CMAKE_CXX_FLAGS_RELEASE=-O0
  -D POLYATTN_FEW_TARGETS=ON
  -D POLYATTN_INSTALL=ON
  -D POLYATTN_OPENMP=${OPENMP}
  -D POLYATTN_SOURCE_DIR=${SOURCE_DIR})
install_and_consume(${build} ${BINARY_DIR}/add_subdirectory)
