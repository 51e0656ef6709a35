# Install rules and the package that find_package(polyattn) reads.
include(CMakePackageConfigHelpers)

set(polyattn_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/polyattn)

install(TARGETS polyattn_core EXPORT polyattnTargets)
set(left_out)
if(POLYATTN_HAVE_IO)
  install(TARGETS polyattn_io EXPORT polyattnTargets)
else()
  list(APPEND left_out PATTERN io EXCLUDE)
endif()
# An export of its own, which only those load who ask for these components and
# so have torch.
if(POLYATTN_HAVE_TORCH)
  set(polyattn_torch_targets polyattn_torch polyattn_nn polyattn_models)
  install(TARGETS ${polyattn_torch_targets} EXPORT polyattnTorchTargets)
  install(EXPORT polyattnTorchTargets
    NAMESPACE polyattn::
    DESTINATION ${polyattn_package_dir})
  set_target_properties(${polyattn_torch_targets} PROPERTIES INSTALL_RPATH "$ORIGIN")
else()
  foreach(room torch nn models)
    list(APPEND left_out PATTERN ${room} EXCLUDE)
  endforeach()
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/polyattn
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" ${left_out})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/polyattn)
install(EXPORT polyattnTargets
  NAMESPACE polyattn::
  DESTINATION ${polyattn_package_dir})

get_target_property(polyattn_core_type polyattn_core TYPE)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/polyattnConfig.cmake.in
  ${PROJECT_BINARY_DIR}/polyattnConfig.cmake
  INSTALL_DESTINATION ${polyattn_package_dir})
# Before 1.0 a minor version may break its callers.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/polyattnConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(
  FILES
    ${PROJECT_BINARY_DIR}/polyattnConfig.cmake
    ${PROJECT_BINARY_DIR}/polyattnConfigVersion.cmake
  DESTINATION ${polyattn_package_dir})

if(POLYATTN_CLI)
  # The programs find a shared core beside bin/, wherever the prefix is moved.
  file(RELATIVE_PATH bin_to_lib
    ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  foreach(program polyattn polyattn-bench polyattn-train)
    if(TARGET ${program})
      set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
    endif()
  endforeach()
endif()
