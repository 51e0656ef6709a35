# Installs this build and consumes it.
include(${CMAKE_CURRENT_LIST_DIR}/consume.cmake)

install_and_consume(${BUILD_DIR} ${BINARY_DIR}/find_package)
if(HAS_TORCH)
  file(REMOVE_RECURSE ${BINARY_DIR}/find_torch)
  build_and_run(${CMAKE_CURRENT_LIST_DIR}/find_torch ${BINARY_DIR}/find_torch
    -D polyattn_ROOT=${BINARY_DIR}/find_package/prefix
    -D Torch_DIR=${TORCH_DIR})
endif()
if(HAS_COMMAND)
  run(${BINARY_DIR}/find_package/prefix/bin/polyattn --version)
endif()
