# What the install tests share. Variables: tests/install/CMakeLists.txt.

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# build_and_run(source binary option...): configures and builds the consumer in
# `source`, then runs its program.
function(build_and_run source binary)
  run(${CMAKE_COMMAND} --no-warn-unused-cli
    -S ${source} -B ${binary} -G ${GENERATOR}
    -D CMAKE_CXX_COMPILER=${COMPILER}
    -D hwy_DIR=${HWY_DIR}
    ${ARGN})
  run(${CMAKE_COMMAND} --build ${binary})
  run(${binary}/consumer)
endfunction()

# Installs the build tree `build` below `work`, and consumes the package there.
# Both start empty, so that nothing old can stand in for what is missing.
function(install_and_consume build work)
  file(REMOVE_RECURSE ${work}/prefix ${work}/consumer)
  run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
  build_and_run(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/find_package ${work}/consumer
    -D polyattn_ROOT=${work}/prefix)
endfunction()
