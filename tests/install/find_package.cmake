# Installs this build and consumes it.
include(${CMAKE_CURRENT_LIST_DIR}/consume.cmake)

install_and_consume(${BUILD_DIR} ${BINARY_DIR}/find_package)
if(HAS_COMMAND)
  run(${BINARY_DIR}/find_package/prefix/bin/polyattn --version)
endif()
